package source

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
)

// BreakerConfig sets when a source's breaker opens and closes. The zero value
// is useful.
type BreakerConfig struct {
	// Failures is how many calls in a row must speak of ill health before the
	// breaker opens; 0 means 5.
	Failures uint32
	// OpenFor is how long an open breaker holds calls back before it lets one
	// through as a probe; 0 means 30 seconds.
	OpenFor time.Duration
}

// Open returns OpenFor, or what holds where it is not set.
func (c BreakerConfig) Open() time.Duration {
	if c.OpenFor <= 0 {
		return 30 * time.Second
	}
	return c.OpenFor
}

// probeWait is how long calls that meet a probe in flight are asked to wait.
const probeWait = time.Second

// Guard puts a circuit breaker in front of a source's Execute. Only outcomes
// that speak of the source's health count: it was unreachable, answered 5xx,
// timed out or was lost. A tool that says no is a healthy tool.
//
// An open breaker answers KindRetry with Deferred set and the time until it
// half-opens; half-open it lets one call through at a time. onChange, if not
// nil, is told of every change between "closed", "half-open" and "open"; it
// must be quick and must not call the source. List is not guarded.
func Guard(name string, src Source, cfg BreakerConfig, onChange func(name, from, to string)) Source {
	if cfg.Failures == 0 {
		cfg.Failures = 5
	}
	cfg.OpenFor = cfg.Open()
	g := &guarded{Source: src, openFor: cfg.OpenFor}
	g.breaker = gobreaker.NewCircuitBreaker[Outcome](gobreaker.Settings{
		Name:        name,
		MaxRequests: 1,
		Timeout:     cfg.OpenFor,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= cfg.Failures },
		IsExcluded:  func(err error) bool { return errors.Is(err, errSaysNothing) },
		OnStateChange: func(name string, from, to gobreaker.State) {
			if to == gobreaker.StateOpen {
				g.opened.Store(time.Now().UnixNano())
			}
			if onChange != nil {
				onChange(name, from.String(), to.String())
			}
		},
	})
	return g
}

// errAiling and errSaysNothing tell the breaker how to count an outcome; they
// never leave this file.
var (
	errAiling      = errors.New("source is ailing")
	errSaysNothing = errors.New("outcome says nothing of the source")
)

type guarded struct {
	Source
	breaker *gobreaker.CircuitBreaker[Outcome]
	openFor time.Duration
	opened  atomic.Int64 // Unix nanoseconds of the last opening
}

// Execute implements Source.
func (g *guarded) Execute(ctx context.Context, call Call) Outcome {
	out, err := g.breaker.Execute(func() (Outcome, error) {
		out := g.Source.Execute(ctx, call)
		switch {
		case out.Deferred || out.Code == CodeCancelled || out.Code == CodeClosed:
			return out, errSaysNothing
		case out.Ailing():
			return out, errAiling
		}
		return out, nil
	})
	switch {
	case errors.Is(err, gobreaker.ErrOpenState):
		// The breaker half-opens just after, not at, the end of its time.
		left := time.Until(time.Unix(0, g.opened.Load()).Add(g.openFor)) + time.Millisecond
		return heldBack(max(left, time.Millisecond))
	case errors.Is(err, gobreaker.ErrTooManyRequests):
		return heldBack(min(probeWait, g.openFor))
	}
	return out
}

func heldBack(wait time.Duration) Outcome {
	return Outcome{
		Kind:       KindRetry,
		Deferred:   true,
		Code:       CodeBreakerOpen,
		Message:    "the source failed several times in a row and is left alone for a while",
		RetryAfter: wait,
	}
}
