// Package sourcetest tests that an adapter conforms to the contract of sources.
// It also provides a source without a network, for tests of other packages.
package sourcetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/source"
)

// Feature is a behaviour that not every source can show.
type Feature string

// The features. A harness without one gives the reason.
const (
	// Effects means that effects can be counted.
	Effects Feature = "effects"
	// Keys means that the source honours idempotency keys. It requires Effects.
	Keys Feature = "keys"
	// ToolErrors means that a tool can report a failure.
	ToolErrors Feature = "tool errors"
	// Hangs means that a tool can fail to answer.
	Hangs Feature = "hangs"
	// Losses means that the source can disappear between the effect and the
	// answer.
	Losses Feature = "losses"
	// RateLimits means that the source can request a wait.
	RateLimits Feature = "rate limits"
	// Restarts means that the source can lose its sessions.
	Restarts Feature = "restarts"
)

// Invocation is a tool and arguments for it.
type Invocation struct {
	Tool string
	Args json.RawMessage
}

// Harness is a fresh source and calls that provoke behaviours. Fields of a
// feature in Without may be empty. Conform closes the source.
type Harness struct {
	Source source.Source
	// Act has one effect and succeeds.
	Act Invocation
	// Count returns the number of effects under a call's key.
	Count func(key string) int
	// Fail ends in a failure reported by the tool, without an effect.
	Fail Invocation
	// Refused end in other answers that refuse the call, without an effect.
	Refused []Invocation
	// BadArgs has arguments that the tool rejects.
	BadArgs Invocation
	// Hang does not answer in time.
	Hang Invocation
	// Lose has one effect, after which the source disappears before it answers.
	// It is available again for the next call.
	Lose Invocation
	// Limited is rejected with RetryAfter, without an effect.
	Limited    Invocation
	RetryAfter time.Duration
	// Restart makes the source lose its sessions.
	Restart func(t *testing.T)
	// Without contains the features that do not apply, each with a reason.
	Without map[Feature]string
}

// Conform runs the test suite. It calls open once for each test.
func Conform(t *testing.T, open func(t *testing.T) Harness) {
	t.Helper()
	for _, test := range []struct {
		name  string
		needs []Feature
		run   func(*suite)
	}{
		{"lists tools with valid schemas", nil, lists},
		{"does what it is told", nil, acts},
		{"has an effect exactly once", []Feature{Effects}, actsOnce},
		{"serves concurrent calls", nil, actsConcurrently},
		{"honours a key", []Feature{Effects, Keys}, honoursKey},
		{"takes a tool error for an answer", []Feature{ToolErrors}, reportsToolError},
		{"does not repeat what was refused", nil, refuses},
		{"reports a timeout by effect class", []Feature{Hangs}, timesOut},
		{"does not execute for a caller that is gone", nil, heedsCancel},
		{"does not know what it lost", []Feature{Losses, Effects}, losesOnce},
		{"tries again what it lost under a key", []Feature{Losses}, losesKeyed},
		{"passes on when to try again", []Feature{RateLimits}, heedsLimit},
		{"recovers from a restart", []Feature{Restarts}, restarts},
		{"closes for good", nil, closes},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			t.Cleanup(func() {
				if err := h.Source.Close(); err != nil {
					t.Errorf("Close() = %v, want nil", err)
				}
			})
			for _, feature := range test.needs {
				if why, missing := h.Without[feature]; missing {
					t.Skipf("without %s: %s", feature, why)
				}
			}
			test.run(&suite{T: t, h: h})
		})
	}
}

// suite is a test with its harness.
type suite struct {
	*testing.T
	h     Harness
	calls int
}

const (
	// anyCode accepts an outcome with any code.
	anyCode = "any"
	// notCounted accepts any number of effects.
	notCounted = -1
)

// call returns a call with a new key, so that a source that honours keys has not
// executed it yet.
func (s *suite) call(in Invocation, effect envelope.Effect) source.Call {
	s.calls++
	return source.Call{Key: fmt.Sprintf("key %d of %s", s.calls, s.Name()), Tool: in.Tool, Args: in.Args, Effect: effect, Attempt: 1}
}

// act makes a call that has one effect and succeeds.
func (s *suite) act() source.Outcome {
	s.Helper()
	return s.execute(s.Context(), s.call(s.h.Act, envelope.EffectOnce), source.KindDone, "", 1)
}

// execute makes a call, and compares the relevant parts of the outcome, and the
// number of effects if they can be counted.
func (s *suite) execute(ctx context.Context, c source.Call, kind source.Kind, code string, effects int) source.Outcome {
	s.Helper()
	got := s.h.Source.Execute(ctx, c)
	if got.Kind != kind || got.Code != code && code != anyCode {
		s.Errorf("Execute(%s %s) = %s %q (%s), want %s %q", c.Tool, c.Args, got.Kind, got.Code, got.Message, kind, code)
	}
	if len(got.Message) > source.MaxMessageBytes {
		s.Errorf("Execute() has a message of %d bytes, want at most %d", len(got.Message), source.MaxMessageBytes)
	}
	if got.Result != nil && !json.Valid(got.Result) {
		s.Errorf("Execute() has a result that is not JSON: %s", got.Result)
	}
	if _, missing := s.h.Without[Effects]; effects != notCounted && !missing {
		if n := s.h.Count(c.Key); n != effects {
			s.Errorf("effects under %q = %d, want %d", c.Key, n, effects)
		}
	}
	return got
}

func lists(s *suite) {
	tools, err := s.h.Source.List(s.Context())
	if err != nil {
		s.Fatalf("List() = %v, want nil", err)
	}
	seen := make(map[string]bool)
	for _, tool := range tools {
		if tool.Unusable != "" {
			continue
		}
		if tool.Name == "" || seen[tool.Name] {
			s.Errorf("List() has the name %q empty or twice", tool.Name)
		}
		seen[tool.Name] = true
		s.compiles(tool.Name, tool.InputSchema)
		if tool.OutputSchema != nil {
			s.compiles(tool.Name, tool.OutputSchema)
		}
	}
	if !seen[s.h.Act.Tool] {
		s.Errorf("List() has no %q", s.h.Act.Tool)
	}
}

func (s *suite) compiles(tool string, schema json.RawMessage) {
	s.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	c := jsonschema.NewCompiler()
	if err == nil {
		err = c.AddResource("tool.json", doc)
	}
	if err == nil {
		_, err = c.Compile("tool.json")
	}
	if err != nil {
		s.Errorf("schema of %q: %v", tool, err)
	}
}

// effects returns every effect class.
func effects() []envelope.Effect {
	return []envelope.Effect{envelope.EffectRead, envelope.EffectIdempotent, envelope.EffectKeyed, envelope.EffectOnce}
}

func acts(s *suite) {
	if got := s.act(); got.Result == nil || got.Deferred {
		s.Errorf("Execute() has the result %s, deferred %t; want a result, not deferred", got.Result, got.Deferred)
	}
}

func actsOnce(s *suite) {
	for _, effect := range effects() {
		s.execute(s.Context(), s.call(s.h.Act, effect), source.KindDone, "", 1)
	}
}

func actsConcurrently(s *suite) {
	var wg sync.WaitGroup
	for range 24 {
		c := s.call(s.h.Act, envelope.EffectOnce)
		wg.Go(func() { s.execute(s.Context(), c, source.KindDone, "", 1) })
	}
	wg.Wait()
}

func honoursKey(s *suite) {
	c := s.call(s.h.Act, envelope.EffectKeyed)
	s.execute(s.Context(), c, source.KindDone, "", 1)
	c.Attempt = 2

	got := s.h.Source.Execute(s.Context(), c)

	if n := s.h.Count(c.Key); got.Kind != source.KindDone && got.Kind != source.KindConflict || n != 1 {
		s.Errorf("Execute() again = %s %q with %d effects, want done or conflict with 1", got.Kind, got.Code, n)
	}
}

func reportsToolError(s *suite) {
	for _, effect := range effects() {
		s.execute(s.Context(), s.call(s.h.Fail, effect), source.KindRefused, source.CodeToolError, notCounted)
	}
}

// refuses checks that refusals have the same outcome in every effect class, in
// any form of the source.
func refuses(s *suite) {
	answers := append([]Invocation{
		{Tool: "sourcetest.no_such_tool"},
		s.h.BadArgs,
		{Tool: s.h.Act.Tool, Args: json.RawMessage(`["not an object"]`)},
	}, s.h.Refused...)
	for _, in := range answers {
		for _, effect := range effects() {
			s.execute(s.Context(), s.call(in, effect), source.KindRefused, anyCode, 0)
		}
	}
}

// hangTime is the time limit for a call that hangs.
const hangTime = 300 * time.Millisecond

func timesOut(s *suite) {
	s.act() // connect before timing
	for effect, want := range map[envelope.Effect]source.Kind{envelope.EffectOnce: source.KindUnknown, envelope.EffectKeyed: source.KindRetry} {
		ctx, cancel := context.WithTimeout(s.Context(), hangTime)
		s.execute(ctx, s.call(s.h.Hang, effect), want, source.CodeTimeout, notCounted)
		cancel()
		s.act()
	}
}

func heedsCancel(s *suite) {
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	s.execute(ctx, s.call(s.h.Act, envelope.EffectOnce), source.KindRetry, source.CodeCancelled, 0)
}

func losesOnce(s *suite) {
	s.execute(s.Context(), s.call(s.h.Lose, envelope.EffectOnce), source.KindUnknown, source.CodeLost, 1)
}

func losesKeyed(s *suite) {
	s.execute(s.Context(), s.call(s.h.Lose, envelope.EffectKeyed), source.KindRetry, source.CodeLost, notCounted)
	s.act()
}

func heedsLimit(s *suite) {
	for _, effect := range effects() {
		got := s.execute(s.Context(), s.call(s.h.Limited, effect), source.KindRetry, source.CodeRateLimited, 0)
		if got.RetryAfter != s.h.RetryAfter || got.Unsure {
			s.Errorf("Execute(%s) = retry after %v, unsure %t; want %v and sure", effect, got.RetryAfter, got.Unsure, s.h.RetryAfter)
		}
	}
}

func restarts(s *suite) {
	before := s.call(s.h.Act, envelope.EffectOnce)
	s.execute(s.Context(), before, source.KindDone, "", 1)
	s.h.Restart(s.T)
	s.act()
	if _, missing := s.h.Without[Effects]; !missing && s.h.Count(before.Key) != 1 {
		s.Errorf("effects under %q after the restart = %d, want 1", before.Key, s.h.Count(before.Key))
	}
}

func closes(s *suite) {
	s.act()
	for range 2 {
		if err := s.h.Source.Close(); err != nil {
			s.Errorf("Close() = %v, want nil", err)
		}
	}
	s.execute(s.Context(), s.call(s.h.Act, envelope.EffectOnce), source.KindRetry, source.CodeClosed, 0)
	if _, err := s.h.Source.List(s.Context()); err == nil {
		s.Error("List() after Close() = nil, want an error")
	}
}
