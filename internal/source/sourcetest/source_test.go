package sourcetest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
)

func TestConform(t *testing.T) {
	t.Parallel()
	sourcetest.Conform(t, func(*testing.T) sourcetest.Harness {
		tool := func(name string) source.Tool {
			return source.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}
		}
		src := sourcetest.NewSource(tool("act"), tool("fail"), tool("hang"), tool("lose"), tool("limit"))
		always := func(name string, step sourcetest.Step) {
			src.On(name, func(context.Context, source.Call) sourcetest.Step { return step })
		}
		always("fail", sourcetest.Failed())
		always("lose", sourcetest.Lost())
		always("hang", sourcetest.Step{Wait: make(chan struct{})})
		limited := sourcetest.Status(http.StatusTooManyRequests)
		limited.Observation.RetryAfter = 7 * time.Second
		always("limit", limited)
		return sourcetest.Harness{
			Source:     src,
			Act:        sourcetest.Invocation{Tool: "act"},
			Count:      src.Effects,
			Fail:       sourcetest.Invocation{Tool: "fail"},
			BadArgs:    sourcetest.Invocation{Tool: "act", Args: json.RawMessage(`{`)},
			Hang:       sourcetest.Invocation{Tool: "hang"},
			Lose:       sourcetest.Invocation{Tool: "lose"},
			Limited:    sourcetest.Invocation{Tool: "limit"},
			RetryAfter: 7 * time.Second,
			Without: map[sourcetest.Feature]string{
				sourcetest.Restarts: "the fake knows nothing of its clients",
			},
		}
	})
}

func TestSourceFollowsItsScript(t *testing.T) {
	t.Parallel()
	src := sourcetest.NewSource()
	src.Next(sourcetest.ToolAct, sourcetest.Unreachable(), sourcetest.Lost())
	call := source.Call{Key: "k", Tool: sourcetest.ToolAct, Effect: envelope.EffectOnce}

	var got []source.Kind
	for range 3 {
		got = append(got, src.Execute(t.Context(), call).Kind)
	}

	want := []source.Kind{source.KindRetry, source.KindUnknown, source.KindDone}
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

func TestSourceEndsWaitWithContext(t *testing.T) {
	t.Parallel()
	src := sourcetest.NewSource()
	gate := make(chan struct{})
	close(gate)
	step := sourcetest.Done(`{"ok":true}`)
	step.Wait = gate
	src.Next(sourcetest.ToolAct, step)

	got := src.Execute(t.Context(), source.Call{Key: "k", Tool: sourcetest.ToolAct})

	if got.Kind != source.KindDone || string(got.Result) != `{"ok":true}` {
		t.Errorf("Execute() = %s %s, want done", got.Kind, got.Result)
	}
}
