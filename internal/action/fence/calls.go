package fence

import (
	"sync"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
)

const (
	// remembered is for how long calls are remembered, and mostCalls how many are.
	remembered = 5 * time.Minute
	mostCalls  = 20_000
)

// call is a call that the process made, and that may be repeated by mistake if the
// database loses it.
type call struct {
	outbox.Lease
	externalID, source, tool string
	effect                   envelope.Effect
	at                       time.Time
	// outcome is that of the call, if it is settled; without the tool's answer.
	outcome outbox.Settlement
	settled bool
}

// calls are those of the last minutes, in the order of their starts.
type calls struct {
	mu    sync.Mutex
	last  map[outbox.Lease]*call
	order []*call
}

// Started remembers calls that are about to be made. Reads are not remembered.
func (g *Guard) Started(items []*outbox.Item, now time.Time) {
	g.calls.mu.Lock()
	defer g.calls.mu.Unlock()
	c := &g.calls
	if c.last == nil {
		c.last = make(map[outbox.Lease]*call)
	}
	for _, it := range items {
		if it.Effect == envelope.EffectRead {
			continue
		}
		made := &call{Lease: it.Lease, externalID: it.ExternalID, source: it.Source, tool: it.Tool, effect: it.Effect, at: now}
		c.last[it.Lease] = made
		c.order = append(c.order, made)
	}
	old := 0
	for old < len(c.order) && (len(c.order)-old > mostCalls || now.Sub(c.order[old].at) > remembered) {
		delete(c.last, c.order[old].Lease)
		old++
	}
	c.order = c.order[old:]
}

// Settled remembers the outcomes of calls. What returned to the outbox certainly had no
// effect, or may be repeated, and is forgotten.
func (g *Guard) Settled(batch []outbox.Settlement) {
	g.calls.mu.Lock()
	defer g.calls.mu.Unlock()
	for i := range batch {
		made := g.calls.last[batch[i].Lease]
		switch {
		case made == nil:
		case batch[i].Status == envelope.StatusPending:
			delete(g.calls.last, made.Lease)
		default:
			made.outcome, made.settled = batch[i], true
			made.outcome.Result, made.outcome.UnusedPermit, made.outcome.CloseBucketFor = nil, outbox.Permit{}, 0
		}
	}
}

// made returns the calls that are remembered, the newest of each action.
func (g *Guard) made() []call {
	g.calls.mu.Lock()
	defer g.calls.mu.Unlock()
	newest := make(map[envelope.ActionID]int)
	var all []call
	for _, c := range g.calls.order {
		if g.calls.last[c.Lease] != c {
			continue
		}
		if at, ok := newest[c.Action]; ok {
			all[at] = *c
			continue
		}
		newest[c.Action] = len(all)
		all = append(all, *c)
	}
	return all
}
