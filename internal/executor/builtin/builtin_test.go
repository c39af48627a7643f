package builtin_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/executor"
	"github.com/countersign-dev/countersign/internal/executor/builtin"
	"github.com/countersign-dev/countersign/internal/executor/executortest"
)

func TestConform(t *testing.T) {
	t.Parallel()
	executortest.Conform(t, func(*testing.T) executortest.Harness {
		return executortest.Harness{
			Source:  builtin.New(),
			Act:     executortest.Invocation{Tool: builtin.ToolNote, Args: json.RawMessage(`{"text":"hello"}`)},
			BadArgs: executortest.Invocation{Tool: builtin.ToolNote, Args: json.RawMessage(`{"text":7}`)},
			Without: map[executortest.Feature]string{
				executortest.Effects:    "these tools change nothing that could be counted",
				executortest.ToolErrors: "built-in tools have nothing that could fail",
				executortest.Hangs:      "built-in tools wait for nothing",
				executortest.Losses:     "built-in tools run in this process",
				executortest.RateLimits: "built-in tools have no limits",
				executortest.Restarts:   "built-in tools have no server",
			},
		}
	})
}

func TestExecute(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		call executor.Call
		want executor.Outcome
	}{
		"noop answers an empty object": {
			executor.Call{Tool: builtin.ToolNoop},
			executor.Outcome{Kind: executor.KindDone, Result: json.RawMessage(`{}`)},
		},
		"noop takes any object": {
			executor.Call{Tool: builtin.ToolNoop, Args: json.RawMessage(`{"a":[1]}`)},
			executor.Outcome{Kind: executor.KindDone, Result: json.RawMessage(`{}`)},
		},
		"noop takes no array": {
			executor.Call{Tool: builtin.ToolNoop, Args: json.RawMessage(`[]`)},
			executor.Outcome{Kind: executor.KindRefused, Code: executor.CodeInvalidArgs, Message: "arguments must be an object"},
		},
		"note answers its key": {
			executor.Call{Tool: builtin.ToolNote, Key: "k-1", Args: json.RawMessage(`{"text":"x"}`)},
			executor.Outcome{Kind: executor.KindDone, Result: json.RawMessage(`{"id":"k-1"}`), ProviderID: "k-1"},
		},
		"note needs a text": {
			executor.Call{Tool: builtin.ToolNote, Args: json.RawMessage(`{}`)},
			executor.Outcome{Kind: executor.KindRefused, Code: executor.CodeInvalidArgs, Message: "a note needs a text"},
		},
		"note refuses a text that is too long": {
			executor.Call{Tool: builtin.ToolNote, Args: json.RawMessage(`{"text":"` + strings.Repeat("ä", builtin.MaxNoteLength+1) + `"}`)},
			executor.Outcome{Kind: executor.KindRefused, Code: executor.CodeInvalidArgs, Message: "the text is too long"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := builtin.New().Execute(t.Context(), test.call)

			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("Execute(%s) (-want +got):\n%s", test.call.Tool, diff)
			}
		})
	}
}

// Not parallel: testing.AllocsPerRun counts the whole process.
func TestNoopDoesNotAllocate(t *testing.T) {
	src := builtin.New()
	call := executor.Call{Key: "k", Tool: builtin.ToolNoop, Args: json.RawMessage(`{}`), Effect: envelope.EffectIdempotent}
	ctx := t.Context()

	got := testing.AllocsPerRun(100, func() { src.Execute(ctx, call) })

	if got != 0 {
		t.Errorf("Execute(noop) allocates %v times, want 0", got)
	}
}
