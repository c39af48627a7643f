package executor_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/executor"
	"github.com/countersign-dev/countersign/internal/executor/executortest"
)

// guard returns a fake source behind a breaker that opens for a minute at the
// third failure, and the changes that the breaker reports.
func guard(fake *executortest.Source) (executor.Source, *[]string) {
	var changes []string
	cfg := executor.BreakerConfig{Failures: 3, OpenFor: time.Minute}
	return executor.Guard("fake", fake, cfg, func(name, from, to string) {
		changes = append(changes, name+": "+from+" to "+to)
	}), &changes
}

func act(ctx context.Context, src executor.Source) executor.Outcome {
	return src.Execute(ctx, executor.Call{Key: "k", Tool: executortest.ToolAct, Effect: envelope.EffectOnce})
}

func TestBreakerOpensProbesAndCloses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := executortest.NewSource()
		src, changes := guard(fake)
		fake.Next(executortest.ToolAct, executortest.Unreachable(), executortest.Lost(), executortest.Status(http.StatusBadGateway))
		for range 3 {
			act(t.Context(), src)
		}

		time.Sleep(20 * time.Second)
		held := act(t.Context(), src)

		if held.Kind != executor.KindRetry || !held.Deferred || held.Code != executor.CodeBreakerOpen {
			t.Errorf("Execute() = %+v, want it held back", held)
		}
		if want := 40*time.Second + time.Millisecond; held.RetryAfter != want {
			t.Errorf("RetryAfter = %v, want %v", held.RetryAfter, want)
		}
		if got := len(fake.Calls()); got != 3 {
			t.Errorf("source saw %d calls, want 3", got)
		}

		time.Sleep(held.RetryAfter)
		fake.Next(executortest.ToolAct, executortest.Unreachable())
		act(t.Context(), src) // the probe fails
		held = act(t.Context(), src)
		if want := time.Minute + time.Millisecond; held.RetryAfter != want {
			t.Errorf("RetryAfter after a failed probe = %v, want %v", held.RetryAfter, want)
		}
		time.Sleep(held.RetryAfter)
		if got := act(t.Context(), src); got.Kind != executor.KindDone {
			t.Errorf("Execute() of a probe = %+v, want done", got)
		}
		if got := act(t.Context(), src); got.Kind != executor.KindDone {
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
		fake := executortest.NewSource()
		src, _ := guard(fake)
		fake.Next(executortest.ToolAct, executortest.Unreachable(), executortest.Unreachable(), executortest.Unreachable())
		for range 3 {
			act(t.Context(), src)
		}
		time.Sleep(time.Minute + time.Millisecond)
		gate := make(chan struct{})
		slow := executortest.Done("")
		slow.Wait = gate
		fake.Next(executortest.ToolAct, slow)
		probe := make(chan executor.Outcome)
		go func() { probe <- act(t.Context(), src) }()
		synctest.Wait()

		held := act(t.Context(), src)
		close(gate)

		if held.Code != executor.CodeBreakerOpen || !held.Deferred || held.RetryAfter != time.Second {
			t.Errorf("Execute() beside a probe = %+v, want it held back for a second", held)
		}
		if got := <-probe; got.Kind != executor.KindDone {
			t.Errorf("Execute() of the probe = %+v, want done", got)
		}
	})
}

func TestBreakerHeedsHealthAlone(t *testing.T) {
	t.Parallel()
	held := executortest.Step{Code: executor.CodeBreakerOpen, Deferred: true}
	for name, test := range map[string]struct {
		step  executortest.Step
		opens bool
	}{
		"tool error":    {executortest.Failed(), false},
		"bad request":   {executortest.Status(http.StatusBadRequest), false},
		"rate limit":    {executortest.Status(http.StatusTooManyRequests), false},
		"unauthorized":  {executortest.Status(http.StatusUnauthorized), false},
		"deferred":      {held, false},
		"cancelled":     {executortest.Step{Code: executor.CodeCancelled}, false},
		"server error":  {executortest.Status(http.StatusInternalServerError), true},
		"unreachable":   {executortest.Unreachable(), true},
		"lost":          {executortest.Lost(), true},
		"timeout":       {executortest.Step{Code: executor.CodeTimeout}, true},
		"no agreement":  {executortest.Step{Code: executor.CodeNegotiation}, true},
		"strange words": {executortest.Step{Code: executor.CodeMalformed}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := executortest.NewSource()
			src, changes := guard(fake)
			fake.On(executortest.ToolAct, func(context.Context, executor.Call) executortest.Step { return test.step })

			for range 5 {
				act(t.Context(), src)
			}

			if opened := len(*changes) > 0; opened != test.opens {
				t.Errorf("breaker opened = %t, want %t", opened, test.opens)
			}
		})
	}
}

func TestBreakerStartsOverAfterASuccess(t *testing.T) {
	t.Parallel()
	fake := executortest.NewSource()
	src, changes := guard(fake)
	bad, good := executortest.Unreachable(), executortest.Done("")
	fake.Next(executortest.ToolAct, bad, bad, good, bad, bad, good)

	for range 6 {
		act(t.Context(), src)
	}

	if len(*changes) > 0 {
		t.Errorf("changes = %v, want none", *changes)
	}
}

func TestGuardPassesListAndCloseThrough(t *testing.T) {
	t.Parallel()
	src := executor.Guard("fake", executortest.NewSource(), executor.BreakerConfig{}, nil)

	tools, err := src.List(t.Context())
	if err != nil || len(tools) != 1 {
		t.Errorf("List() = %v, %v, want one tool", tools, err)
	}
	if err := src.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
	if got := act(t.Context(), src); got.Code != executor.CodeClosed {
		t.Errorf("Execute() after Close() = %+v, want closed", got)
	}
}
