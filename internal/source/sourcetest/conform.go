// Package sourcetest owns what every adapter must hold to, as one suite of
// tests, and a source that behaves without a network for the tests of others.
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

// Feature is something that not every source can show.
type Feature string

// The features. A harness that leaves one out says why.
const (
	// Effects means that effects can be counted.
	Effects Feature = "effects"
	// Keys means that the source honours idempotency keys. It needs Effects.
	Keys Feature = "keys"
	// ToolErrors means that a tool can say that it failed.
	ToolErrors Feature = "tool errors"
	// Hangs means that a tool can fail to answer.
	Hangs Feature = "hangs"
	// Losses means that the source can go away after the effect and before the
	// answer.
	Losses Feature = "losses"
	// RateLimits means that the source can ask for patience.
	RateLimits Feature = "rate limits"
	// Restarts means that the source can lose what it knew of its clients.
	Restarts Feature = "restarts"
)

// Invocation is a tool and arguments for it.
type Invocation struct {
	Tool string
	Args json.RawMessage
}

// Harness is a fresh source and ways to provoke it. Fields that belong to a
// feature in Without may be left empty. Conform closes the source.
type Harness struct {
	Source source.Source
	// Act has one effect and is done.
	Act Invocation
	// Count says how many effects happened under a call's key.
	Count func(key string) int
	// Fail ends in the tool's word that it failed, and has no effect.
	Fail Invocation
	// BadArgs has arguments that the tool does not take.
	BadArgs Invocation
	// Hang does not answer in time.
	Hang Invocation
	// Lose has one effect, after which the source is gone before it answers,
	// and back for the next call.
	Lose Invocation
	// Limited is turned away without an effect, and with RetryAfter.
	Limited    Invocation
	RetryAfter time.Duration
	// Restart makes the source forget its clients.
	Restart func(t *testing.T)
	// Without names the features that do not apply, each with a reason.
	Without map[Feature]string
}

// Conform runs the suite. It calls open once for each of its tests.
func Conform(t *testing.T, open func(t *testing.T) Harness) {
	t.Helper()
	for _, test := range []struct {
		name  string
		needs []Feature
		run   func(*testing.T, Harness)
	}{
		{"lists tools with valid schemas", nil, lists},
		{"does what it is told", nil, acts},
		{"has an effect exactly once", []Feature{Effects}, actsOnce},
		{"serves concurrent calls", nil, actsConcurrently},
		{"honours a key", []Feature{Effects, Keys}, honoursKey},
		{"reports a tool error by effect class", []Feature{ToolErrors}, reportsToolError},
		{"refuses an unknown tool", nil, refusesUnknownTool},
		{"refuses bad arguments", nil, refusesBadArgs},
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
			test.run(t, h)
		})
	}
}

// call makes a call of its own key for an invocation.
func call(t *testing.T, in Invocation, effect envelope.Effect) source.Call {
	return source.Call{Key: "key of " + t.Name(), Tool: in.Tool, Args: in.Args, Effect: effect, Attempt: 1}
}

// expect compares the parts of an outcome that the suite is about.
func expect(t *testing.T, got source.Outcome, kind source.Kind, code string) {
	t.Helper()
	if got.Kind != kind || got.Code != code {
		t.Errorf("Execute() = %s %q (%s), want %s %q", got.Kind, got.Code, got.Message, kind, code)
	}
	if len(got.Message) > source.MaxMessageBytes {
		t.Errorf("Execute() has a message of %d bytes, want at most %d", len(got.Message), source.MaxMessageBytes)
	}
	if got.Result != nil && !json.Valid(got.Result) {
		t.Errorf("Execute() has a result that is not JSON: %s", got.Result)
	}
}

func (h Harness) counted(t *testing.T, key string, want int) {
	t.Helper()
	if _, missing := h.Without[Effects]; missing {
		return
	}
	if got := h.Count(key); got != want {
		t.Errorf("effects under %q = %d, want %d", key, got, want)
	}
}

func lists(t *testing.T, h Harness) {
	tools, err := h.Source.List(t.Context())
	if err != nil {
		t.Fatalf("List() = %v, want nil", err)
	}

	seen := make(map[string]bool)
	for _, tool := range tools {
		if tool.Name == "" || seen[tool.Name] {
			t.Errorf("List() has the name %q empty or twice", tool.Name)
		}
		seen[tool.Name] = true
		compiles(t, tool.Name, tool.InputSchema)
		if tool.OutputSchema != nil {
			compiles(t, tool.Name, tool.OutputSchema)
		}
	}
	if !seen[h.Act.Tool] {
		t.Errorf("List() has no %q", h.Act.Tool)
	}
}

func compiles(t *testing.T, tool string, schema json.RawMessage) {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		t.Errorf("schema of %q is not JSON: %v", tool, err)
		return
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("tool.json", doc); err != nil {
		t.Errorf("schema of %q: %v", tool, err)
		return
	}
	if _, err := c.Compile("tool.json"); err != nil {
		t.Errorf("schema of %q does not compile: %v", tool, err)
	}
}

func acts(t *testing.T, h Harness) {
	got := h.Source.Execute(t.Context(), call(t, h.Act, envelope.EffectOnce))

	expect(t, got, source.KindDone, "")
	if got.Result == nil {
		t.Error("Execute() has no result")
	}
	if got.Deferred {
		t.Error("Execute() is deferred and done")
	}
}

func actsOnce(t *testing.T, h Harness) {
	for i, effect := range []envelope.Effect{envelope.EffectRead, envelope.EffectIdempotent, envelope.EffectKeyed, envelope.EffectOnce} {
		c := call(t, h.Act, effect)
		c.Key = fmt.Sprintf("%s %d", c.Key, i)

		got := h.Source.Execute(t.Context(), c)

		expect(t, got, source.KindDone, "")
		h.counted(t, c.Key, 1)
	}
}

func actsConcurrently(t *testing.T, h Harness) {
	const callers = 24
	calls := make([]source.Call, callers)
	got := make([]source.Outcome, callers)
	var wg sync.WaitGroup
	for i := range callers {
		calls[i] = call(t, h.Act, envelope.EffectOnce)
		calls[i].Key = fmt.Sprintf("%s %d", calls[i].Key, i)
		wg.Go(func() { got[i] = h.Source.Execute(t.Context(), calls[i]) })
	}
	wg.Wait()

	for i := range callers {
		expect(t, got[i], source.KindDone, "")
		h.counted(t, calls[i].Key, 1)
	}
}

func honoursKey(t *testing.T, h Harness) {
	c := call(t, h.Act, envelope.EffectKeyed)

	first := h.Source.Execute(t.Context(), c)
	c.Attempt = 2
	second := h.Source.Execute(t.Context(), c)

	expect(t, first, source.KindDone, "")
	if second.Kind != source.KindDone && second.Kind != source.KindConflict {
		t.Errorf("Execute() again = %s %q, want done or conflict", second.Kind, second.Code)
	}
	h.counted(t, c.Key, 1)
}

func reportsToolError(t *testing.T, h Harness) {
	for effect, want := range map[envelope.Effect]source.Kind{
		envelope.EffectRead:       source.KindRetry,
		envelope.EffectIdempotent: source.KindRetry,
		envelope.EffectKeyed:      source.KindRetry,
		envelope.EffectOnce:       source.KindRefused,
	} {
		got := h.Source.Execute(t.Context(), call(t, h.Fail, effect))

		expect(t, got, want, source.CodeToolError)
	}
}

func refusesUnknownTool(t *testing.T, h Harness) {
	c := call(t, Invocation{Tool: "sourcetest.no_such_tool"}, envelope.EffectOnce)

	got := h.Source.Execute(t.Context(), c)

	if got.Kind != source.KindRefused {
		t.Errorf("Execute(no such tool) = %s %q, want refused", got.Kind, got.Code)
	}
	h.counted(t, c.Key, 0)
}

func refusesBadArgs(t *testing.T, h Harness) {
	for _, in := range []Invocation{h.BadArgs, {Tool: h.Act.Tool, Args: json.RawMessage(`["not an object"]`)}} {
		c := call(t, in, envelope.EffectOnce)

		got := h.Source.Execute(t.Context(), c)

		if got.Kind != source.KindRefused {
			t.Errorf("Execute(%s) = %s %q, want refused", in.Args, got.Kind, got.Code)
		}
		h.counted(t, c.Key, 0)
	}
}

// hangTime is how long the suite waits for a call that hangs.
const hangTime = 300 * time.Millisecond

func timesOut(t *testing.T, h Harness) {
	// Each has a key of its own, or a source that honours keys would say that
	// it has done this.
	n := 0
	again := func() {
		t.Helper()
		n++
		c := call(t, h.Act, envelope.EffectOnce)
		c.Key = fmt.Sprintf("%s %d", c.Key, n)
		expect(t, h.Source.Execute(t.Context(), c), source.KindDone, "")
	}
	hang := func(effect envelope.Effect) source.Outcome {
		ctx, cancel := context.WithTimeout(t.Context(), hangTime)
		defer cancel()
		return h.Source.Execute(ctx, call(t, h.Hang, effect))
	}

	again() // it may have to connect, which is not what is timed here
	once := hang(envelope.EffectOnce)
	again()
	keyed := hang(envelope.EffectKeyed)

	expect(t, once, source.KindUnknown, source.CodeTimeout)
	expect(t, keyed, source.KindRetry, source.CodeTimeout)
	again()
}

func heedsCancel(t *testing.T, h Harness) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := call(t, h.Act, envelope.EffectOnce)

	got := h.Source.Execute(ctx, c)

	expect(t, got, source.KindRetry, source.CodeCancelled)
	h.counted(t, c.Key, 0)
}

func losesOnce(t *testing.T, h Harness) {
	c := call(t, h.Lose, envelope.EffectOnce)

	got := h.Source.Execute(t.Context(), c)

	expect(t, got, source.KindUnknown, source.CodeLost)
	h.counted(t, c.Key, 1)
}

func losesKeyed(t *testing.T, h Harness) {
	got := h.Source.Execute(t.Context(), call(t, h.Lose, envelope.EffectKeyed))

	expect(t, got, source.KindRetry, source.CodeLost)
	next := call(t, h.Act, envelope.EffectOnce)
	next.Key += " next"
	expect(t, h.Source.Execute(t.Context(), next), source.KindDone, "")
	h.counted(t, next.Key, 1)
}

func heedsLimit(t *testing.T, h Harness) {
	c := call(t, h.Limited, envelope.EffectOnce)

	got := h.Source.Execute(t.Context(), c)

	expect(t, got, source.KindRetry, source.CodeRateLimited)
	if got.RetryAfter != h.RetryAfter {
		t.Errorf("Execute() says to retry after %v, want %v", got.RetryAfter, h.RetryAfter)
	}
	h.counted(t, c.Key, 0)
}

func restarts(t *testing.T, h Harness) {
	before, after := call(t, h.Act, envelope.EffectOnce), call(t, h.Act, envelope.EffectOnce)
	after.Key += " after"
	expect(t, h.Source.Execute(t.Context(), before), source.KindDone, "")

	h.Restart(t)
	got := h.Source.Execute(t.Context(), after)

	expect(t, got, source.KindDone, "")
	h.counted(t, before.Key, 1)
	h.counted(t, after.Key, 1)
}

func closes(t *testing.T, h Harness) {
	expect(t, h.Source.Execute(t.Context(), call(t, h.Act, envelope.EffectOnce)), source.KindDone, "")
	for range 2 {
		if err := h.Source.Close(); err != nil {
			t.Errorf("Close() = %v, want nil", err)
		}
	}
	c := call(t, h.Act, envelope.EffectOnce)
	c.Key += " late"

	got := h.Source.Execute(t.Context(), c)

	expect(t, got, source.KindRetry, source.CodeClosed)
	h.counted(t, c.Key, 0)
	if _, err := h.Source.List(t.Context()); err == nil {
		t.Error("List() after Close() = nil, want an error")
	}
}
