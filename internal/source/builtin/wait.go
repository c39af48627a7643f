package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/rest"
)

// DefaultMaxWait bounds a wait, unless the configuration does.
const DefaultMaxWait = time.Minute

func waitTool(limit time.Duration) rest.Tool {
	type args struct {
		Seconds float64 `json:"seconds"`
	}
	return rest.Tool{
		Name: ToolWait, Title: "Wait",
		Description: "Waits. A wait that is broken off starts from the beginning when it is tried again.",
		Input: fmt.Appendf(nil,
			`{"type":"object","properties":{"seconds":{"type":"number","minimum":0,"maximum":%g}},"required":["seconds"],"additionalProperties":false}`,
			limit.Seconds()),
		Output: json.RawMessage(`{"type":"object","properties":{"seconds":{"type":"number"}},"required":["seconds"],"additionalProperties":false}`),
		Effect: envelope.EffectRead, Local: true,
		Run: rest.WithArgs(func(ctx context.Context, call source.Call, in args) source.Observation {
			timer := time.NewTimer(time.Duration(in.Seconds * float64(time.Second)))
			defer timer.Stop()
			select {
			case <-timer.C:
				return source.Observation{Answered: true, Result: call.Args}
			case <-ctx.Done():
				// Nothing was sent, so another attempt is safe.
				return source.Observation{Code: source.EndedCode(ctx)}
			}
		}),
	}
}
