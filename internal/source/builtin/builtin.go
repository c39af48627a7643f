// Package builtin is the source of Countersign's own tools. Two of them have no
// effect: one does nothing, for trying a deployment and for measuring the
// overhead of a call; one waits. One stores notes, if storage is configured.
//
// If the configuration allows addresses, two more tools send HTTP requests to
// them: one reads, one writes. They send requests to no other address, even if a
// name resolves or a response redirects to one.
package builtin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/rest"
)

// The tools.
const (
	// ToolNoop accepts any object and returns {}.
	ToolNoop = "countersign.noop"
	// ToolNote accepts {"text": string}, stores the text and returns {"id":
	// string}.
	ToolNote = "countersign.note.create"
	// ToolWait accepts {"seconds": number}, waits and returns {"seconds":
	// number}.
	ToolWait = "countersign.wait"
	// ToolHTTPGet makes a GET or HEAD request.
	ToolHTTPGet = "countersign.http.get"
	// ToolHTTPRequest makes a POST, PUT, PATCH or DELETE request.
	ToolHTTPRequest = "countersign.http.request"
)

// Config configures the tools. The zero value is useful.
type Config struct {
	// MaxWait bounds one wait; 0 means defaultMaxWait.
	MaxWait time.Duration
	// Notes stores notes; nil disables ToolNote.
	Notes Notes
	// HTTP configures the allowed requests; nil disables the HTTP tools.
	HTTP *HTTPConfig
}

// Source implements source.Source.
type Source struct {
	*rest.Source
	closed atomic.Bool
	empty  json.RawMessage // result of noop; shared, to avoid an allocation
}

// New returns a source of the tools that need no configuration.
func New() *Source {
	s, _ := With(Config{}) // only a configuration can be wrong
	return s
}

// With returns a source of the tools that cfg enables. The error is
// fault.Invalid.
func With(cfg Config) (*Source, error) {
	if cfg.MaxWait <= 0 {
		cfg.MaxWait = defaultMaxWait
	}
	// Waits and requests have shorter time limits of their own.
	client := rest.Config{CallTimeout: cfg.MaxWait + time.Minute, MaxBodyBytes: defaultMaxBodyBytes}
	if cfg.HTTP != nil {
		client.Guard = safehttp.Guard{Networks: cfg.HTTP.Networks}
		if err := client.Guard.Check(); err != nil {
			return nil, fault.New(fault.Invalid, "%s", err)
		}
		client.CallTimeout = max(client.CallTimeout, cfg.HTTP.CallTimeout+time.Minute)
		client.MaxBodyBytes = cmp.Or(cfg.HTTP.MaxBodyBytes, client.MaxBodyBytes)
	}
	c := rest.New(name, client)
	tools := []rest.Tool{noopTool(), waitTool(cfg.MaxWait)}
	if cfg.Notes != nil {
		tools = append(tools, noteTool(cfg.Notes))
	}
	if cfg.HTTP != nil {
		w, err := newWeb(*cfg.HTTP, c)
		if err != nil {
			return nil, err
		}
		web, err := w.tools()
		if err != nil {
			return nil, err
		}
		tools = append(tools, web...)
	}
	src, err := rest.NewSource(c, tools...)
	if err != nil {
		return nil, fmt.Errorf("built-in tools: %w", err)
	}
	return &Source{Source: src, empty: json.RawMessage(`{}`)}, nil
}

// name is the source's name in messages.
const name = "countersign"

func noopTool() rest.Tool {
	return rest.Tool{
		Name: ToolNoop, Title: "Do nothing",
		Description: "Does nothing and says so.",
		Input:       json.RawMessage(`{"type":"object"}`), Output: json.RawMessage(`{"type":"object","additionalProperties":false}`),
		Effect: envelope.EffectIdempotent, Local: true,
		Run: func(context.Context, source.Call) source.Observation {
			return source.Observation{Answered: true, Result: json.RawMessage(`{}`)}
		},
	}
}

// Execute implements source.Source. It answers calls of ToolNoop immediately and
// parses their arguments as little as possible, since they measure the overhead
// of a call.
func (s *Source) Execute(ctx context.Context, call source.Call) source.Outcome {
	if call.Tool == ToolNoop && !s.closed.Load() && ctx.Err() == nil && (len(call.Args) == 0 || call.Args[0] == '{') {
		return source.Outcome{Kind: source.KindDone, Result: s.empty}
	}
	return s.Source.Execute(ctx, call)
}

// Close implements source.Source.
func (s *Source) Close() error {
	s.closed.Store(true)
	return s.Source.Close()
}

var _ source.Source = (*Source)(nil)

// MaxNoteLength bounds a note's text, in characters.
const MaxNoteLength = 10_000

// Notes stores notes.
type Notes interface {
	// Keep stores a text and returns the note's id. For a key that was used
	// before, Keep stores nothing and returns the id of the existing note.
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
				// The note may be stored anyway; another attempt under the same
				// key finds it.
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

// defaultMaxWait is the default maximum of a wait.
const defaultMaxWait = time.Minute

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
