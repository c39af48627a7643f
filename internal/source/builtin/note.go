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

// Notes stores notes.
type Notes interface {
	// Keep stores a text and returns the note's id. For a key that was used
	// before, Keep stores nothing and returns the id of that note.
	Keep(ctx context.Context, key, text string) (id string, err error)
}

// noteTool returns the tool that stores notes.
func noteTool(notes Notes) rest.Tool {
	type args struct {
		Text string `json:"text"`
	}
	return rest.Tool{
		Name: ToolNote, Title: "Note",
		Description: "Keeps a note where the people of the tenant can read it, and hands its id back.",
		Input: fmt.Appendf(nil,
			`{"type":"object","properties":{"text":{"type":"string","minLength":1,"maxLength":%d}},"required":["text"],"additionalProperties":false}`,
			MaxNoteLength),
		Output: json.RawMessage(`{"type":"object","properties":{"id":{"type":"string","format":"uuid"}},"required":["id"],"additionalProperties":false}`),
		Effect: envelope.EffectKeyed, Local: true,
		Run: rest.WithArgs(func(ctx context.Context, call source.Call, in args) source.Observation {
			id, err := notes.Keep(ctx, call.Key, in.Text)
			if err != nil {
				// The note may be stored all the same; another attempt under
				// the same key finds out.
				code := source.CodeUnreachable
				if ctx.Err() != nil {
					code = source.EndedCode(ctx)
				}
				return source.Observation{Written: true, Code: code, Message: "the note could not be stored"}
			}
			result, err := json.Marshal(map[string]string{"id": id})
			if err != nil {
				return source.Refuse(source.CodeMalformed, "the id cannot be written as JSON")
			}
			return source.Observation{Answered: true, Result: result, ProviderID: id}
		}),
	}
}
