package sourcetest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/source"
)

// ToolAct is the tool of a Source that was given none: it takes any object.
const ToolAct = "fake.act"

// Step is how a Source behaves for one call. The zero value has no effect and
// was never written, so that the call is to be retried; see Done and others
// for the common ones.
type Step struct {
	// Effect says that the call takes effect.
	Effect bool
	// Wait, if not nil, is waited for before the call ends. Where the caller's
	// context ends first the call ends in a timeout or a cancellation, with
	// its effect as it is and Written set.
	Wait <-chan struct{}
	// Observation is what is seen of the call.
	Observation source.Observation
	// Code, Message, Result, ProviderID and Deferred go into the outcome.
	Code       string
	Message    string
	Result     json.RawMessage
	ProviderID string
	Deferred   bool
}

// Done is a call that takes effect and answers result, {} if that is empty.
func Done(result string) Step {
	if result == "" {
		result = "{}"
	}
	return Step{
		Effect:      true,
		Observation: source.Observation{Written: true, Answered: true},
		Result:      json.RawMessage(result),
	}
}

// Failed is a call that the tool itself fails.
func Failed() Step {
	return Step{
		Observation: source.Observation{Written: true, Answered: true, ToolError: true},
		Code:        source.CodeToolError,
		Message:     "the tool says that it failed",
		Result:      json.RawMessage(`{"content":[{"type":"text","text":"no"}]}`),
	}
}

// Lost is a call that takes effect and is never heard of again.
func Lost() Step {
	return Step{
		Effect:      true,
		Observation: source.Observation{Written: true},
		Code:        source.CodeLost,
		Message:     "the source went away after the call was sent",
	}
}

// Unreachable is a call that was never sent.
func Unreachable() Step {
	return Step{Code: source.CodeUnreachable, Message: "the source cannot be reached"}
}

// Status is a call without effect that is answered with an HTTP status.
func Status(status int) Step {
	return Step{
		Observation: source.Observation{Written: true, Status: status},
		Code:        source.StatusCode(status),
		Message:     "the source answered with a status",
	}
}

// Source is an executor.Source that does as it is told. It counts effects by
// key, and like a source that honours keys it does a call of class keyed once.
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

// NewSource returns a source of the given tools, or of ToolAct alone. Until it
// is told otherwise each call is Done.
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

// Next says how the next calls of a tool go, one after the other. They come
// before what On says.
func (s *Source) Next(tool string, steps ...Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next[tool] = append(s.next[tool], steps...)
}

// On says how calls of a tool go. The function must be safe for concurrent
// use.
func (s *Source) On(tool string, step func(context.Context, source.Call) Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.always[tool] = step
}

// SetTools changes what List answers, and which tools are known.
func (s *Source) SetTools(tools ...source.Tool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tools = slices.Clone(tools)
}

// FailList makes List fail with err until it is given nil.
func (s *Source) FailList(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listErr = err
}

// Effects says how many effects happened under a key.
func (s *Source) Effects(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.effects[key]
}

// TotalEffects says how many effects happened.
func (s *Source) TotalEffects() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	total := 0
	for _, n := range s.effects {
		total += n
	}
	return total
}

// Calls returns the calls that arrived, in their order.
func (s *Source) Calls() []source.Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// List implements executor.Source.
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

// Execute implements executor.Source.
func (s *Source) Execute(ctx context.Context, call source.Call) source.Outcome {
	step, ok := s.step(ctx, call)
	if !ok {
		return conclude(call, step)
	}
	if step.Effect {
		s.take(call)
	}
	if step.Wait == nil {
		return conclude(call, step)
	}
	select {
	case <-step.Wait:
	case <-ctx.Done():
		step.Observation = source.Observation{Written: true}
		step.Result, step.ProviderID = nil, ""
		step.Code, step.Message = source.CodeCancelled, "the caller gave up after the call was sent"
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			step.Code, step.Message = source.CodeTimeout, "time ran out after the call was sent"
		}
	}
	return conclude(call, step)
}

// step finds how a call goes; it reports false if the call does not arrive.
func (s *Source) step(ctx context.Context, call source.Call) (Step, bool) {
	s.mu.Lock()
	switch {
	case s.closed:
		s.mu.Unlock()
		return Step{Code: source.CodeClosed, Message: "the source is closed"}, false
	case ctx.Err() != nil:
		s.mu.Unlock()
		return Step{Code: source.CodeCancelled, Message: "the caller gave up before the call was sent"}, false
	}
	s.calls = append(s.calls, call)
	known := slices.ContainsFunc(s.tools, func(t source.Tool) bool { return t.Name == call.Tool })
	always := s.always[call.Tool]
	var step *Step
	if queue := s.next[call.Tool]; known && len(queue) > 0 {
		step, s.next[call.Tool] = &queue[0], queue[1:]
	}
	s.mu.Unlock()

	var object map[string]json.RawMessage
	switch {
	case !known:
		return refused(source.CodeUnknownTool, "there is no tool of this name"), false
	case len(call.Args) > 0 && json.Unmarshal(call.Args, &object) != nil:
		return refused(source.CodeInvalidArgs, "the arguments do not fit the tool"), false
	case step != nil:
		return *step, true
	case always != nil:
		return always(ctx, call), true
	}
	return Done(""), true
}

func refused(code, message string) Step {
	return Step{Observation: source.Observation{Permanent: true}, Code: code, Message: message}
}

// take lets a call take effect.
func (s *Source) take(call source.Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if call.Effect == envelope.EffectKeyed && s.effects[call.Key] > 0 {
		return
	}
	s.effects[call.Key]++
}

func conclude(call source.Call, step Step) source.Outcome {
	out := source.Conclude(call.Effect, step.Observation, step.Code, step.Message)
	out.Result, out.ProviderID, out.Deferred = step.Result, step.ProviderID, step.Deferred
	return out
}

// Close implements executor.Source.
func (s *Source) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

var _ source.Source = (*Source)(nil)
