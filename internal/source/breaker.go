package source

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
)

// BreakerConfig configures a source's circuit breaker. The zero value is useful.
type BreakerConfig struct {
	// Failures is the number of consecutive failures that opens the breaker; 0
	// means 5. Outcome.SourceFailed defines a failure.
	Failures uint32
	// OpenFor is how long an open breaker rejects calls before it lets one probe
	// call through; 0 means 30 seconds.
	OpenFor time.Duration
}

// Open returns OpenFor, or its default.
func (c BreakerConfig) Open() time.Duration {
	if c.OpenFor <= 0 {
		return 30 * time.Second
	}
	return c.OpenFor
}

// probeWait bounds the wait of a call while a probe call is in flight.
const probeWait = time.Second

// Guard puts circuit breakers in front of a source's Execute: one for the
// source, and one for each of its tools. List is not guarded. Only outcomes with
// a true Outcome.SourceFailed count as failures of the source; a tool that
// refuses a call is not a failure. Calls with no answer, or with an unreadable
// one, are failures of the tool: a source that is slow or crashes at one
// operation may do others. They also count for the source once a second tool has
// failed in this way without a success since the first.
//
// An open breaker returns KindRetry with Deferred set and the time until it is
// half-open. A half-open breaker lets one call through at a time. onChange, if
// not nil, is called at every change of the source's breaker between "closed",
// "half-open" and "open". It must return quickly and must not call the source.
func Guard(name string, src Source, cfg BreakerConfig, onChange func(name, from, to string)) Source {
	cfg.Failures = cmp.Or(cfg.Failures, 5)
	cfg.OpenFor = cfg.Open()
	if onChange == nil {
		onChange = func(string, string, string) {}
	}
	return &guarded{Source: src, cfg: cfg, of: newBreaker(cfg, name, onChange), tools: make(map[string]*breaker)}
}

// errFailure and errExcluded are the results of an outcome for gobreaker; they
// are never returned.
var (
	errFailure  = errors.New("failed")
	errExcluded = errors.New("outcome is empty")
)

// breaker is a circuit breaker with the time of its last opening.
type breaker struct {
	*gobreaker.CircuitBreaker[Outcome]
	openFor time.Duration
	opened  atomic.Int64 // Unix nanoseconds
}

func newBreaker(cfg BreakerConfig, name string, onChange func(name, from, to string)) *breaker {
	b := &breaker{openFor: cfg.OpenFor}
	b.CircuitBreaker = gobreaker.NewCircuitBreaker[Outcome](gobreaker.Settings{
		Name:        name,
		MaxRequests: 1,
		Timeout:     cfg.OpenFor,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= cfg.Failures },
		IsExcluded:  func(err error) bool { return errors.Is(err, errExcluded) },
		OnStateChange: func(name string, from, to gobreaker.State) {
			if to == gobreaker.StateOpen {
				b.opened.Store(time.Now().UnixNano())
			}
			onChange(name, from.String(), to.String())
		},
	})
	return b
}

// do runs a call, unless the breaker rejects it; held is then the remaining
// time.
func (b *breaker) do(call func() (Outcome, error)) (out Outcome, held time.Duration) {
	out, err := b.Execute(call)
	switch {
	case errors.Is(err, gobreaker.ErrOpenState):
		// gobreaker becomes half-open just after, not at, the end of the time.
		left := time.Until(time.Unix(0, b.opened.Load()).Add(b.openFor)) + time.Millisecond
		return out, max(left, time.Millisecond)
	case errors.Is(err, gobreaker.ErrTooManyRequests):
		return out, min(probeWait, b.openFor)
	}
	return out, 0
}

type guarded struct {
	Source
	cfg BreakerConfig
	of  *breaker // the source's

	mu    sync.Mutex
	tools map[string]*breaker
	// failing is the first tool that failed by itself since the last success.
	failing string
}

// Unwrap returns the source without its breakers.
func (g *guarded) Unwrap() Source { return g.Source }

// Execute implements Source.
func (g *guarded) Execute(ctx context.Context, call Call) Outcome {
	// The tool's breaker comes first: a call that it rejects is not a probe of
	// the source.
	out, held := g.tool(call.Tool).do(func() (Outcome, error) {
		out, held := g.of.do(func() (Outcome, error) {
			out := g.Source.Execute(ctx, call)
			return out, g.countSource(call.Tool, out)
		})
		if held > 0 {
			out = heldBack(held, "the source failed several times in a row; its circuit breaker is open")
		}
		return out, countTool(out)
	})
	if held > 0 {
		out = heldBack(held, "the tool returned no usable answer several times in a row; its circuit breaker is open")
		out.ToolHeld = true
	}
	return out
}

func (g *guarded) tool(name string) *breaker {
	g.mu.Lock()
	defer g.mu.Unlock()
	b := g.tools[name]
	if b == nil {
		b = newBreaker(g.cfg, name, func(string, string, string) {})
		g.tools[name] = b
	}
	return b
}

// excluded reports whether an outcome is independent of the state of the source.
func excluded(out Outcome) bool {
	return out.Deferred || out.Code == CodeCancelled || out.Code == CodeClosed
}

// ofTool reports whether an outcome is primarily a failure of the tool: a
// timeout, a lost connection or process, or an unreadable answer.
func ofTool(out Outcome) bool {
	return out.Code == CodeTimeout || out.Code == CodeLost || out.Code == CodeMalformed
}

// countTool returns the result of an outcome for the tool's breaker.
func countTool(out Outcome) error {
	switch {
	case ofTool(out):
		return errFailure
	case excluded(out) || out.SourceFailed():
		return errExcluded
	}
	return nil
}

// countSource returns the result of a tool's outcome for the source's breaker.
func (g *guarded) countSource(tool string, out Outcome) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case excluded(out):
		return errExcluded
	case ofTool(out) && (g.failing == "" || g.failing == tool):
		g.failing = tool
		return errExcluded
	case out.SourceFailed():
		return errFailure
	}
	g.failing = ""
	return nil
}

func heldBack(wait time.Duration, why string) Outcome {
	return Outcome{Kind: KindRetry, Deferred: true, Code: CodeBreakerOpen, Message: why, RetryAfter: wait}
}
