package builtin

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/rest"
)

// MaxNoteLength bounds a note's text, in characters.
const MaxNoteLength = 10_000

// Notes keeps notes.
type Notes interface {
	// Keep keeps a text and returns the note's id. A key that was given before
	// returns the id of the note that was kept under it, and keeps nothing.
	Keep(ctx context.Context, key, text string) (id string, err error)
}

// noteTool is the tool that keeps notes.
func noteTool(notes Notes) rest.Tool {
	return rest.Tool{
		Tool: source.Tool{
			Name:        ToolNote,
			Title:       "Note",
			Description: "Keeps a note where the people of the tenant can read it, and hands its id back.",
			InputSchema: json.RawMessage(fmt.Sprintf(
				`{"type":"object","properties":{"text":{"type":"string","minLength":1,"maxLength":%d}},"required":["text"],"additionalProperties":false}`,
				MaxNoteLength)),
			OutputSchema: json.RawMessage(
				`{"type":"object","properties":{"id":{"type":"string","format":"uuid"}},"required":["id"],"additionalProperties":false}`),
			Hints:  source.Hints{Idempotent: true, Destructive: new(false), OpenWorld: new(false)},
			Effect: envelope.EffectKeyed,
		},
		Run: func(ctx context.Context, call source.Call) rest.Finding { return keep(ctx, notes, call) },
	}
}

func keep(ctx context.Context, notes Notes, call source.Call) rest.Finding {
	var args struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(call.Args, &args) != nil {
		return rest.Refuse(source.CodeInvalidArgs, "")
	}
	id, err := notes.Keep(ctx, call.Key, args.Text)
	if err != nil {
		// Whether it is there is found out by trying again under the same key.
		code := source.CodeUnreachable
		if ctx.Err() != nil {
			code = rest.Ended(ctx)
		}
		return rest.Finding{Observation: source.Observation{Written: true}, Code: code, Message: "the note could not be kept"}
	}
	result, err := json.Marshal(map[string]string{"id": id})
	if err != nil {
		return rest.Refuse(source.CodeMalformed, "the id cannot be written as JSON")
	}
	return rest.Finding{Observation: source.Observation{Answered: true}, Result: result, ProviderID: id}
}
