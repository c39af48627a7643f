package model

import (
	"sync"
	"time"
)

// limits are the timeouts for a server.
type limits struct {
	// identify is the timeout of a request about the server itself.
	identify time.Duration
	// least and most bound the timeout of an answer. first is the timeout
	// before any measurement, since servers load a model at the first question.
	least, first, most time.Duration
	// openFor is how long a breaker stays open.
	openFor time.Duration
	// recheck is how long a server's identity stays valid.
	recheck time.Duration
}

func usualLimits() limits {
	return limits{
		identify: 10 * time.Second, least: 10 * time.Second, first: 3 * time.Minute, most: 10 * time.Minute,
		openFor: openFor, recheck: time.Minute,
	}
}

// completionCost is the cost of writing a token relative to reading one: about
// 40 on a graphics card, about 10 on a processor.
const completionCost = 20

// pace measures how long a server takes per token that it reads.
type pace struct {
	mu       sync.Mutex
	perToken time.Duration
}

// measure adds a measurement. The estimate rises immediately and falls
// gradually.
func (p *pace) measure(a Answer) {
	read := a.PromptTokens - max(a.CachedTokens, 0)
	per := a.Took / time.Duration(max(read+completionCost*a.CompletionTokens, 1))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.perToken = p.perToken - p.perToken/8 + per/8; per > p.perToken {
		p.perToken = per
	}
}

// timeout returns the timeout of an answer: three times the estimate for the
// largest number of tokens.
func (p *pace) timeout(l limits, prompt, completion int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.perToken == 0 {
		return l.first
	}
	return min(max(3*p.perToken*time.Duration(prompt+completionCost*completion), l.least), l.most)
}
