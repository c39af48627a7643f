package builtin_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/builtin"
)

func TestExecute(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		call source.Call
		want source.Outcome
	}{
		"noop answers an empty object": {
			source.Call{Tool: builtin.ToolNoop},
			source.Outcome{Kind: source.KindDone, Result: json.RawMessage(`{}`)},
		},
		"noop takes any object": {
			source.Call{Tool: builtin.ToolNoop, Args: json.RawMessage(`{"a":[1]}`)},
			source.Outcome{Kind: source.KindDone, Result: json.RawMessage(`{}`)},
		},
		"noop takes no array": {
			source.Call{Tool: builtin.ToolNoop, Args: json.RawMessage(`[]`)},
			source.Outcome{Kind: source.KindRefused, Code: source.CodeInvalidArgs, Message: "countersign: the arguments do not fit the tool"},
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

// Not parallel: testing.AllocsPerRun counts allocations of the whole process.
func TestNoopDoesNotAllocate(t *testing.T) {
	src := builtin.New()
	call := source.Call{Key: "k", Tool: builtin.ToolNoop, Args: json.RawMessage(`{}`), Effect: envelope.EffectIdempotent}
	ctx := t.Context()

	got := testing.AllocsPerRun(100, func() { src.Execute(ctx, call) })

	if got != 0 {
		t.Errorf("Execute(noop) allocates %v times, want 0", got)
	}
}
