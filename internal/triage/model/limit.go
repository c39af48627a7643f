package model

import (
	"sync"
	"time"
)

// limits are the times that a server is given.
type limits struct {
	// identify bounds a question about the server itself.
	identify time.Duration
	// least and most bound how long an answer may take, and first is the bound
	// before anything was measured: servers load a model at the first question.
	least, first, most time.Duration
	// openFor is how long a breaker stays open.
	openFor time.Duration
	// recheck is how long a server's identity is believed.
	recheck time.Duration
}

func usualLimits() limits {
	return limits{
		identify: 10 * time.Second, least: 10 * time.Second, first: 3 * time.Minute, most: 10 * time.Minute,
		openFor: openFor, recheck: time.Minute,
	}
}

// completionCost is what writing a token takes against reading one: about 40
// times on a graphics card, about 10 on a processor.
const completionCost = 20

// pace is how long a server takes for a token that it reads.
type pace struct {
	mu       sync.Mutex
	perToken time.Duration
}

// measure takes an answer into account. A slower one counts at once, a faster
// one little by little.
func (p *pace) measure(a Answer) {
	read := a.PromptTokens - max(a.CachedTokens, 0)
	per := a.Took / time.Duration(max(read+completionCost*a.CompletionTokens, 1))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.perToken = p.perToken - p.perToken/8 + per/8; per > p.perToken {
		p.perToken = per
	}
}

// timeout returns how long an answer may take: three times what was measured,
// for the tokens that the question has at most.
func (p *pace) timeout(l limits, prompt, completion int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.perToken == 0 {
		return l.first
	}
	return min(max(3*p.perToken*time.Duration(prompt+completionCost*completion), l.least), l.most)
}
