package modeltest

import (
	"context"
	"strings"
	"time"
)

// Latency is the duration of answers, as a fixed time, by tokens, or both.
type Latency struct {
	// Fixed is the fixed part of each answer.
	Fixed time.Duration
	// Prefill and Decode are the tokens per second for reading uncached tokens
	// and for writing; 0 takes no time. A common integrated graphics processor
	// has about 1000 and 24.
	Prefill, Decode float64
	// Speed is a factor by which the server is faster; 0 means 1.
	Speed float64
}

// wait waits for the duration of an answer. It returns false if the client
// left.
func (l Latency) wait(ctx context.Context, out result) bool {
	took := l.Fixed
	if l.Prefill > 0 {
		took += time.Duration(float64(out.prompt-out.cached) / l.Prefill * float64(time.Second))
	}
	if l.Decode > 0 {
		took += time.Duration(float64(out.completion) / l.Decode * float64(time.Second))
	}
	if l.Speed > 0 {
		took = time.Duration(float64(took) / l.Speed)
	}
	if took <= 0 {
		return true
	}
	timer := time.NewTimer(took)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// slot is a slot of the server. Each caches its last prompt.
type slot struct {
	last   string
	cached int
}

// take waits for a free slot, and computes for a question how much of the
// prompt the slot has cached.
func (s *Server) take(ctx context.Context, r Request) (*slot, error) {
	select {
	case taken := <-s.slots:
		prompt := r.System + r.User
		n := 0
		for n < len(prompt) && n < len(taken.last) && prompt[n] == taken.last[n] {
			n++
		}
		taken.cached, taken.last = n/4, prompt
		return taken, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *Server) give(taken *slot) { s.slots <- taken }

// CountTokens estimates one token for every four bytes, as in ordinary English.
func CountTokens(text string) int { return (len(strings.TrimSpace(text)) + 3) / 4 }
