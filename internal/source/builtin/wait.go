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

// DefaultMaxWait bounds a wait where the configuration does not.
const DefaultMaxWait = time.Minute

func waitTool(most time.Duration) rest.Tool {
	return rest.Tool{
		Tool: source.Tool{
			Name:        ToolWait,
			Title:       "Wait",
			Description: "Waits. A wait that is broken off starts from the beginning when it is tried again.",
			InputSchema: json.RawMessage(fmt.Sprintf(
				`{"type":"object","properties":{"seconds":{"type":"number","minimum":0,"maximum":%g}},"required":["seconds"],"additionalProperties":false}`,
				most.Seconds())),
			OutputSchema: json.RawMessage(
				`{"type":"object","properties":{"seconds":{"type":"number"}},"required":["seconds"],"additionalProperties":false}`),
			Hints:  source.Hints{ReadOnly: true, Idempotent: true, Destructive: new(false), OpenWorld: new(false)},
			Effect: envelope.EffectRead,
		},
		Run: wait,
	}
}

func wait(ctx context.Context, call source.Call) rest.Finding {
	var args struct {
		Seconds float64 `json:"seconds"`
	}
	if json.Unmarshal(call.Args, &args) != nil {
		return rest.Refuse(source.CodeInvalidArgs, "")
	}
	timer := time.NewTimer(time.Duration(args.Seconds * float64(time.Second)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return rest.Finding{Observation: source.Observation{Answered: true}, Result: call.Args}
	case <-ctx.Done():
		// Nothing was sent anywhere, so that it may start anew.
		return rest.Finding{Code: rest.Ended(ctx)}
	}
}
