package source_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
)

// guard returns a fake source behind a breaker that opens for a minute at the
// third failure, and the state changes of the breaker.
func guard(fake *sourcetest.Source) (source.Source, *[]string) {
	var changes []string
	cfg := source.BreakerConfig{Failures: 3, OpenFor: time.Minute}
	return source.Guard("fake", fake, cfg, func(name, from, to string) {
		changes = append(changes, name+": "+from+" to "+to)
	}), &changes
}

func act(ctx context.Context, src source.Source) source.Outcome {
	return src.Execute(ctx, source.Call{Key: "k", Tool: sourcetest.ToolAct, Effect: envelope.EffectOnce})
}

func TestBreakerOpensProbesAndCloses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := sourcetest.NewSource()
		src, changes := guard(fake)
		fake.Next(sourcetest.ToolAct, sourcetest.Unreachable(), sourcetest.Unreachable(), sourcetest.Status(http.StatusBadGateway))
		for range 3 {
			act(t.Context(), src)
		}

		time.Sleep(20 * time.Second)
		held := act(t.Context(), src)

		if held.Kind != source.KindRetry || !held.Deferred || held.Code != source.CodeBreakerOpen {
			t.Errorf("Execute() = %+v, want it held back", held)
		}
		if want := 40*time.Second + time.Millisecond; held.RetryAfter != want {
			t.Errorf("RetryAfter = %v, want %v", held.RetryAfter, want)
		}
		if got := len(fake.Calls()); got != 3 {
			t.Errorf("source saw %d calls, want 3", got)
		}

		time.Sleep(held.RetryAfter)
		fake.Next(sourcetest.ToolAct, sourcetest.Unreachable())
		act(t.Context(), src) // the probe fails
		held = act(t.Context(), src)
		if want := time.Minute + time.Millisecond; held.RetryAfter != want {
			t.Errorf("RetryAfter after a failed probe = %v, want %v", held.RetryAfter, want)
		}
		time.Sleep(held.RetryAfter)
		if got := act(t.Context(), src); got.Kind != source.KindDone {
			t.Errorf("Execute() of a probe = %+v, want done", got)
		}
		if got := act(t.Context(), src); got.Kind != source.KindDone {
			t.Errorf("Execute() after a good probe = %+v, want done", got)
		}
		want := []string{
			"fake: closed to open", "fake: open to half-open", "fake: half-open to open",
			"fake: open to half-open", "fake: half-open to closed",
		}
		if diff := cmp.Diff(want, *changes); diff != "" {
			t.Errorf("changes (-want +got):\n%s", diff)
		}
	})
}

func TestBreakerLetsOneProbeThrough(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := sourcetest.NewSource()
		src, _ := guard(fake)
		fake.Next(sourcetest.ToolAct, sourcetest.Unreachable(), sourcetest.Unreachable(), sourcetest.Unreachable())
		for range 3 {
			act(t.Context(), src)
		}
		time.Sleep(time.Minute + time.Millisecond)
		gate := make(chan struct{})
		slow := sourcetest.Done("")
		slow.Wait = gate
		fake.Next(sourcetest.ToolAct, slow)
		probe := make(chan source.Outcome)
		go func() { probe <- act(t.Context(), src) }()
		synctest.Wait()

		held := act(t.Context(), src)
		close(gate)

		if held.Code != source.CodeBreakerOpen || !held.Deferred || held.RetryAfter != time.Second {
			t.Errorf("Execute() beside a probe = %+v, want it held back for a second", held)
		}
		if got := <-probe; got.Kind != source.KindDone {
			t.Errorf("Execute() of the probe = %+v, want done", got)
		}
	})
}

func TestBreakerIgnoresOutcomesUnrelatedToHealth(t *testing.T) {
	t.Parallel()
	held := sourcetest.Step{Observation: source.Observation{Code: source.CodeBreakerOpen}, Deferred: true}
	for name, test := range map[string]struct {
		step  sourcetest.Step
		opens bool
	}{
		"tool error":    {sourcetest.Failed(), false},
		"bad request":   {sourcetest.Status(http.StatusBadRequest), false},
		"rate limit":    {sourcetest.Status(http.StatusTooManyRequests), false},
		"unauthorized":  {sourcetest.Status(http.StatusUnauthorized), false},
		"deferred":      {held, false},
		"cancelled":     {sourcetest.Step{Observation: source.Observation{Code: source.CodeCancelled}}, false},
		"server error":  {sourcetest.Status(http.StatusInternalServerError), true},
		"unreachable":   {sourcetest.Unreachable(), true},
		"lost":          {sourcetest.Lost(), false},
		"timeout":       {timedOut(), false},
		"no agreement":  {sourcetest.Step{Observation: source.Observation{Code: source.CodeNegotiation}}, true},
		"strange words": {sourcetest.Step{Observation: source.Observation{Code: source.CodeMalformed}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := sourcetest.NewSource()
			src, changes := guard(fake)
			fake.On(sourcetest.ToolAct, func(context.Context, source.Call) sourcetest.Step { return test.step })

			for range 5 {
				act(t.Context(), src)
			}

			if opened := len(*changes) > 0; opened != test.opens {
				t.Errorf("breaker opened = %t, want %t", opened, test.opens)
			}
		})
	}
}

func timedOut() sourcetest.Step {
	return sourcetest.Step{Observation: source.Observation{Written: true, Code: source.CodeTimeout}}
}

// call calls a tool of a source.
func call(t *testing.T, src source.Source, tool string) source.Outcome {
	t.Helper()
	return src.Execute(t.Context(), source.Call{Key: "k", Tool: tool, Effect: envelope.EffectOnce})
}

func TestSlowToolIsHeldBackAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := sourcetest.NewSource(source.Tool{Name: "slow"}, source.Tool{Name: "quick"})
		src, changes := guard(fake)
		fake.On("slow", func(context.Context, source.Call) sourcetest.Step { return timedOut() })
		for range 3 {
			call(t, src, "slow")
		}

		held, quick := call(t, src, "slow"), call(t, src, "quick")

		if !held.Deferred || !held.ToolHeld || held.Code != source.CodeBreakerOpen || held.RetryAfter <= 0 {
			t.Errorf("Execute(slow) = %+v, want it held back for the tool", held)
		}
		if quick.Kind != source.KindDone || len(*changes) > 0 {
			t.Errorf("Execute(quick) = %+v after the changes %v, want done and none", quick, *changes)
		}
		time.Sleep(held.RetryAfter)
		if probe, again := call(t, src, "slow"), call(t, src, "slow"); probe.Deferred || !again.Deferred {
			t.Errorf("Execute(slow) after the wait = %+v, %+v, want one call through", probe, again)
		}
	})
}

// TestCrashingToolIsHeldBackAlone treats a tool that crashes the source, or
// whose answers cannot be parsed, like one that does not answer.
func TestCrashingToolIsHeldBackAlone(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]sourcetest.Step{
		"lost": sourcetest.Lost(), "malformed": {Observation: source.Observation{Written: true, Code: source.CodeMalformed}},
	} {
		fake := sourcetest.NewSource(source.Tool{Name: "crash"}, source.Tool{Name: "quick"})
		src, changes := guard(fake)
		fake.On("crash", func(context.Context, source.Call) sourcetest.Step { return step })
		for range 5 {
			call(t, src, "crash")
		}

		held, quick := call(t, src, "crash"), call(t, src, "quick")

		if !held.Deferred || !held.ToolHeld || len(fake.Calls()) != 4 {
			t.Errorf("%s: Execute(crash) = %+v after %d calls, want it held back for the tool after 3", name, held, len(fake.Calls()))
		}
		if quick.Kind != source.KindDone || len(*changes) > 0 {
			t.Errorf("%s: Execute(quick) = %+v after the changes %v, want done and none", name, quick, *changes)
		}
	}
}

func TestTimeoutsOfSeveralToolsCountForTheSource(t *testing.T) {
	t.Parallel()
	fake := sourcetest.NewSource(source.Tool{Name: "one"}, source.Tool{Name: "two"}, source.Tool{Name: "three"})
	src, changes := guard(fake)
	fake.Next("one", timedOut(), sourcetest.Done(""), timedOut())
	fake.Next("two", timedOut(), timedOut())
	fake.Next("three", timedOut(), timedOut())
	for _, tool := range []string{"one", "two", "one", "one", "two", "three"} {
		call(t, src, tool)
	}
	before := len(*changes)

	call(t, src, "three")

	if want := []string{"fake: closed to open"}; before > 0 || !slices.Equal(*changes, want) {
		t.Errorf("changes = %v, %d of them before the third time-out beside the first tool's, want %v", *changes, before, want)
	}
	if held := call(t, src, "one"); !held.Deferred || held.ToolHeld {
		t.Errorf("Execute(one) = %+v, want it held back for the source", held)
	}
}

func TestBreakerResetsAfterSuccess(t *testing.T) {
	t.Parallel()
	fake := sourcetest.NewSource()
	src, changes := guard(fake)
	bad, good := sourcetest.Unreachable(), sourcetest.Done("")
	fake.Next(sourcetest.ToolAct, bad, bad, good, bad, bad, good)

	for range 6 {
		act(t.Context(), src)
	}

	if len(*changes) > 0 {
		t.Errorf("changes = %v, want none", *changes)
	}
}

func TestGuardPassesListAndCloseThrough(t *testing.T) {
	t.Parallel()
	src := source.Guard("fake", sourcetest.NewSource(), source.BreakerConfig{}, nil)

	tools, err := src.List(t.Context())
	if err != nil || len(tools) != 1 {
		t.Errorf("List() = %v, %v, want one tool", tools, err)
	}
	if err := src.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
	if got := act(t.Context(), src); got.Code != source.CodeClosed {
		t.Errorf("Execute() after Close() = %+v, want closed", got)
	}
}
