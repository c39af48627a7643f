package modeltest

import (
	"context"
	"strings"
	"time"
)

// Latency is how long answers take, by the clock, by tokens, or both.
type Latency struct {
	// Fixed is what each answer takes.
	Fixed time.Duration
	// Prefill and Decode are tokens a second, for reading what is not in the cache
	// and for writing; 0 takes no time. A common processor graphics unit has about
	// 1000 and 24.
	Prefill, Decode float64
	// Speed is how many times faster than that the server is; 0 is 1.
	Speed float64
}

// wait waits as long as an answer takes. It reports false if the client left.
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

// slot is one of those that answer at once. Each keeps what it computed of its
// last prompt.
type slot struct {
	last   string
	cached int
}

// take waits for a free slot, and for a question takes over what the slot has of
// the prompt's beginning.
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

// CountTokens counts a token for each four bytes, as in ordinary English.
func CountTokens(text string) int { return (len(strings.TrimSpace(text)) + 3) / 4 }
