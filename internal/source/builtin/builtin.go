// Package builtin is the source of Countersign's own tools. Two of them affect
// nothing: one does nothing, to try a deployment and to measure the cost of
// everything around a call; one waits. One stores notes, where storage is
// configured.
//
// Where the configuration allows addresses, two more tools send HTTP requests
// to them: one reads, one writes. They send requests nowhere else, whatever a
// name resolves to and wherever a response redirects.
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
	// ToolNoop takes any object and answers {}.
	ToolNoop = "countersign.noop"
	// ToolNote takes {"text": string}, stores the text and answers
	// {"id": string}.
	ToolNote = "countersign.note.create"
	// ToolWait takes {"seconds": number}, waits that long and answers
	// {"seconds": number}.
	ToolWait = "countersign.wait"
	// ToolHTTPGet makes a GET or HEAD request.
	ToolHTTPGet = "countersign.http.get"
	// ToolHTTPRequest makes a POST, PUT, PATCH or DELETE request.
	ToolHTTPRequest = "countersign.http.request"
)

// Config configures the tools. The zero value is useful.
type Config struct {
	// MaxWait bounds one wait; 0 means DefaultMaxWait.
	MaxWait time.Duration
	// Notes stores notes; nil leaves ToolNote out.
	Notes Notes
	// HTTP says where requests may go; nil leaves the HTTP tools out.
	HTTP *HTTPConfig
}

// Source implements source.Source.
type Source struct {
	*rest.Source
	closed atomic.Bool
	empty  json.RawMessage // what noop answers; shared, so that it costs nothing
}

// New returns the source of the tools that need no configuration.
func New() *Source {
	s, _ := With(Config{}) // only a configuration can be wrong
	return s
}

// With returns the source of the tools that cfg allows. The error is
// fault.Invalid, and names what is wrong with cfg.
func With(cfg Config) (*Source, error) {
	if cfg.MaxWait <= 0 {
		cfg.MaxWait = DefaultMaxWait
	}
	// Waits and requests have time limits of their own, which end first.
	client := rest.Config{CallTimeout: cfg.MaxWait + time.Minute, MaxBodyBytes: DefaultMaxBodyBytes}
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

// Execute implements source.Source. It answers calls of ToolNoop at once and
// reads no more of their arguments than it must: they measure the cost of
// everything around a call.
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
