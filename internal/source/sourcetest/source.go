package sourcetest

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/source"
)

// ToolAct is the default tool of a Source. It accepts any object.
const ToolAct = "fake.act"

// Step is the behaviour of a Source for one call. The zero value has no effect
// and was never written, so that the call is retried. Done and others return
// common steps.
type Step struct {
	// Effect is set if the call takes effect.
	Effect bool
	// Wait, if not nil, delays the end of the call. If the caller's context ends
	// first, the call ends in a timeout or a cancellation, with its effect
	// unchanged and Written set.
	Wait <-chan struct{}
	// Observation is the observation of the call.
	source.Observation
	// Deferred is that of the outcome.
	Deferred bool
}

// Done returns a step that takes effect and answers result, or {} if that is
// empty.
func Done(result string) Step {
	if result == "" {
		result = "{}"
	}
	return Step{Effect: true, Observation: source.Observation{Written: true, Answered: true, Result: json.RawMessage(result)}}
}

// Failed returns a step in which the tool reports a failure.
func Failed() Step {
	return Step{Observation: source.Observation{
		Written: true, Result: json.RawMessage(`{"content":[{"type":"text","text":"no"}]}`),
	}.ToolFailed()}
}

// Lost returns a step that takes effect and loses the connection.
func Lost() Step {
	return Step{Effect: true, Observation: source.Observation{Written: true, Code: source.CodeLost}}
}

// Unreachable returns a step of a call that was never sent.
func Unreachable() Step {
	return Step{Observation: source.Observation{Code: source.CodeUnreachable}}
}

// Status returns a step without effect that is answered with an HTTP status.
func Status(status int) Step {
	return Step{Observation: source.Observation{Written: true, Status: status, Code: source.StatusCode(status)}}
}

// Source is a scripted source.Source. It counts effects by key. Like a source
// that honours keys, it executes a call of class keyed once.
type Source struct {
	mu      sync.Mutex
	closed  bool
	tools   []source.Tool
	always  map[string]func(context.Context, source.Call) Step
	next    map[string][]Step
	calls   []source.Call
	effects map[string]int
	listErr error
}

// NewSource returns a source with the given tools, or with ToolAct. Without a
// script each call is Done.
func NewSource(tools ...source.Tool) *Source {
	if len(tools) == 0 {
		tools = []source.Tool{{
			Name:        ToolAct,
			Title:       "Act",
			Description: "Does something that can be counted.",
			InputSchema: json.RawMessage(`{"type":"object"}`),
		}}
	}
	return &Source{
		tools:   slices.Clone(tools),
		always:  make(map[string]func(context.Context, source.Call) Step),
		next:    make(map[string][]Step),
		effects: make(map[string]int),
	}
}

func (s *Source) locked(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

// Next sets the steps of the next calls of a tool. They precede the steps of On.
func (s *Source) Next(tool string, steps ...Step) {
	s.locked(func() { s.next[tool] = append(s.next[tool], steps...) })
}

// On sets the function that returns the steps of a tool's calls. It must be safe
// for concurrent use.
func (s *Source) On(tool string, step func(context.Context, source.Call) Step) {
	s.locked(func() { s.always[tool] = step })
}

// SetTools replaces the tools.
func (s *Source) SetTools(tools ...source.Tool) {
	s.locked(func() { s.tools = slices.Clone(tools) })
}

// FailList makes List fail with err until it is called with nil.
func (s *Source) FailList(err error) { s.locked(func() { s.listErr = err }) }

// Effects returns the number of effects under a key.
func (s *Source) Effects(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.effects[key]
}

// TotalEffects returns the number of effects.
func (s *Source) TotalEffects() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	total := 0
	for _, n := range s.effects {
		total += n
	}
	return total
}

// Calls returns the calls that arrived, in order.
func (s *Source) Calls() []source.Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// List implements source.Source.
func (s *Source) List(ctx context.Context) ([]source.Tool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fault.New(fault.Busy, "list fake tools: source is closed")
	}
	if s.listErr != nil {
		return nil, s.listErr
	}
	return slices.Clone(s.tools), ctx.Err()
}

// Execute implements source.Source.
func (s *Source) Execute(ctx context.Context, call source.Call) source.Outcome {
	step := s.step(ctx, call)
	if step.Effect {
		s.countEffect(call)
	}
	if step.Wait != nil {
		select {
		case <-step.Wait:
		case <-ctx.Done():
			step.Observation = source.Observation{Written: true, Code: source.EndedCode(ctx)}
		}
	}
	out := step.Outcome("fake", call.Effect)
	out.Deferred = step.Deferred
	return out
}

// step returns the step for a call.
func (s *Source) step(ctx context.Context, call source.Call) Step {
	s.mu.Lock()
	switch {
	case s.closed:
		s.mu.Unlock()
		return Step{Observation: source.Observation{Code: source.CodeClosed}}
	case ctx.Err() != nil:
		s.mu.Unlock()
		return Step{Observation: source.Observation{Code: source.CodeCancelled}}
	}
	s.calls = append(s.calls, call)
	known := slices.ContainsFunc(s.tools, func(t source.Tool) bool { return t.Name == call.Tool })
	always := s.always[call.Tool]
	var next *Step
	if queue := s.next[call.Tool]; known && len(queue) > 0 {
		next, s.next[call.Tool] = &queue[0], queue[1:]
	}
	s.mu.Unlock()

	var object map[string]json.RawMessage
	switch {
	case !known:
		return Step{Observation: source.Refuse(source.CodeUnknownTool, "")}
	case len(call.Args) > 0 && json.Unmarshal(call.Args, &object) != nil:
		return Step{Observation: source.Refuse(source.CodeInvalidArgs, "")}
	case next != nil:
		return *next
	case always != nil:
		return always(ctx, call)
	}
	return Done("")
}

// countEffect counts the effect of a call.
func (s *Source) countEffect(call source.Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if call.Effect == envelope.EffectKeyed && s.effects[call.Key] > 0 {
		return
	}
	s.effects[call.Key]++
}

// Close implements source.Source.
func (s *Source) Close() error {
	s.locked(func() { s.closed = true })
	return nil
}

var _ source.Source = (*Source)(nil)
