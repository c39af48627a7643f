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
	// Failures is how many calls in a row must fail before the breaker opens;
	// 0 means 5. Outcome.SourceFailed decides what counts as a failure.
	Failures uint32
	// OpenFor is how long an open breaker holds calls back before it lets one
	// probe call through; 0 means 30 seconds.
	OpenFor time.Duration
}

// Open returns OpenFor, or its default.
func (c BreakerConfig) Open() time.Duration {
	if c.OpenFor <= 0 {
		return 30 * time.Second
	}
	return c.OpenFor
}

// probeWait is how long a call waits while a probe call is in flight.
const probeWait = time.Second

// Guard puts a circuit breaker in front of a source's Execute. List is not
// guarded. Only outcomes for which Outcome.SourceFailed is true count as
// failures; a tool that refuses a call is no failure of the source.
//
// An open breaker answers KindRetry with Deferred set and the time until it is
// half-open. A half-open breaker lets one call through at a time. onChange, if
// not nil, is called at every change between "closed", "half-open" and "open";
// it must return quickly and must not call the source.
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
		IsExcluded:  func(err error) bool { return errors.Is(err, errExcluded) },
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

// errFailure and errExcluded tell gobreaker how to count an outcome; they are
// never returned.
var (
	errFailure  = errors.New("source failed")
	errExcluded = errors.New("outcome says nothing about the source")
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
			return out, errExcluded
		case out.SourceFailed():
			return out, errFailure
		}
		return out, nil
	})
	switch {
	case errors.Is(err, gobreaker.ErrOpenState):
		// gobreaker is half-open just after, not at, the end of the time.
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
		Message:    "the source failed several times in a row; its circuit breaker is open",
		RetryAfter: wait,
	}
}
