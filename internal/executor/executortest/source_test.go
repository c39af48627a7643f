package executortest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/executor"
	"github.com/countersign-dev/countersign/internal/executor/executortest"
)

func TestConform(t *testing.T) {
	t.Parallel()
	executortest.Conform(t, func(*testing.T) executortest.Harness {
		tool := func(name string) executor.Tool {
			return executor.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}
		}
		src := executortest.NewSource(tool("act"), tool("fail"), tool("hang"), tool("lose"), tool("limit"))
		always := func(name string, step executortest.Step) {
			src.On(name, func(context.Context, executor.Call) executortest.Step { return step })
		}
		always("fail", executortest.Failed())
		always("lose", executortest.Lost())
		always("hang", executortest.Step{Wait: make(chan struct{})})
		limited := executortest.Status(http.StatusTooManyRequests)
		limited.Observation.RetryAfter = 7 * time.Second
		always("limit", limited)
		return executortest.Harness{
			Source:     src,
			Act:        executortest.Invocation{Tool: "act"},
			Count:      src.Effects,
			Fail:       executortest.Invocation{Tool: "fail"},
			BadArgs:    executortest.Invocation{Tool: "act", Args: json.RawMessage(`{`)},
			Hang:       executortest.Invocation{Tool: "hang"},
			Lose:       executortest.Invocation{Tool: "lose"},
			Limited:    executortest.Invocation{Tool: "limit"},
			RetryAfter: 7 * time.Second,
			Without: map[executortest.Feature]string{
				executortest.Restarts: "the fake knows nothing of its clients",
			},
		}
	})
}

func TestSourceFollowsItsScript(t *testing.T) {
	t.Parallel()
	src := executortest.NewSource()
	src.Next(executortest.ToolAct, executortest.Unreachable(), executortest.Lost())
	call := executor.Call{Key: "k", Tool: executortest.ToolAct, Effect: envelope.EffectOnce}

	var got []executor.Kind
	for range 3 {
		got = append(got, src.Execute(t.Context(), call).Kind)
	}

	want := []executor.Kind{executor.KindRetry, executor.KindUnknown, executor.KindDone}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
	if got := src.Effects("k"); got != 2 {
		t.Errorf("Effects(k) = %d, want 2", got)
	}
	if got := len(src.Calls()); got != 3 {
		t.Errorf("Calls() has %d, want 3", got)
	}
}

func TestSourceEndsAWaitThatIsOver(t *testing.T) {
	t.Parallel()
	src := executortest.NewSource()
	gate := make(chan struct{})
	close(gate)
	step := executortest.Done(`{"ok":true}`)
	step.Wait = gate
	src.Next(executortest.ToolAct, step)

	got := src.Execute(t.Context(), executor.Call{Key: "k", Tool: executortest.ToolAct})

	if got.Kind != executor.KindDone || string(got.Result) != `{"ok":true}` {
		t.Errorf("Execute() = %s %s, want done", got.Kind, got.Result)
	}
}
