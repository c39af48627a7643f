package policy

import "sync"

// maxRemembered bounds a Decider. A tenant has few distinct rules, so that
// reaching it means that rules have changed many times.
const maxRemembered = 4096

// Decider is Decide with a memory: a decision depends on which rules spoke,
// not on the tool, so that few distinct ones are made over and over. It holds
// no more than a few thousand, and is safe for concurrent use.
type Decider struct {
	mu   sync.RWMutex
	made map[facts]Decision
}

// NewDecider returns a Decider that remembers nothing yet.
func NewDecider() *Decider {
	return &Decider{made: make(map[facts]Decision)}
}

// Decide returns what the function Decide returns for the same input.
func (d *Decider) Decide(in Input) Decision {
	f := gather(&in)
	d.mu.RLock()
	decision, ok := d.made[f]
	d.mu.RUnlock()
	if ok {
		return decision
	}

	decision = conclude(f)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.made) >= maxRemembered {
		clear(d.made)
	}
	d.made[f] = decision
	return decision
}
