// Package builtin is the source of the tools that Countersign brings along.
// Two touch nothing outside the process: one does nothing, to try a deployment
// and to measure the machinery around a call; one waits. One keeps notes, where
// it is given something that keeps them.
//
// Where the configuration names addresses, two more ask them over HTTP: one
// reads, one writes. They go nowhere else, whatever a name resolves to and
// wherever an answer points.
package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/rest"
)

// The tools.
const (
	// ToolNoop takes any object and answers {}.
	ToolNoop = "countersign.noop"
	// ToolNote takes {"text": string}, keeps it and answers {"id": string}.
	ToolNote = "countersign.note.create"
	// ToolWait takes {"seconds": number} and answers {"seconds": number} when
	// they are over.
	ToolWait = "countersign.wait"
	// ToolHTTPGet makes a GET or HEAD request.
	ToolHTTPGet = "countersign.http.get"
	// ToolHTTPRequest makes a POST, PUT, PATCH or DELETE request.
	ToolHTTPRequest = "countersign.http.request"
)

// Config is what the tools need to be told.
type Config struct {
	// MaxWait bounds one wait; 0 means DefaultMaxWait.
	MaxWait time.Duration
	// Notes keeps notes; nil leaves the tool for them out.
	Notes Notes
	// HTTP says where requests may go; nil leaves the tools for them out.
	HTTP *HTTPConfig
}

// Source implements executor.Source.
type Source struct {
	closed atomic.Bool
	empty  json.RawMessage // what noop answers; shared, so that it costs nothing

	runner *rest.Client
	tools  *rest.Toolbox // those that run until they are done, or are ended
	web    *web          // nil without Config.HTTP
}

// New returns the source of the tools that need no configuration.
func New() *Source {
	// Only a configuration can be wrong.
	s, _ := With(Config{})
	return s
}

// With returns the source of all tools that cfg allows for. The error is
// fault.Invalid, and names what is wrong with cfg.
func With(cfg Config) (*Source, error) {
	if cfg.MaxWait <= 0 {
		cfg.MaxWait = DefaultMaxWait
	}
	s := &Source{
		empty: json.RawMessage(`{}`),
		// Only the tool's own bound is to end a wait.
		runner: rest.New(name, rest.Config{CallTimeout: cfg.MaxWait + time.Minute}),
	}
	tools := []rest.Tool{waitTool(cfg.MaxWait)}
	if cfg.Notes != nil {
		tools = append(tools, noteTool(cfg.Notes))
	}
	if cfg.HTTP != nil {
		var err error
		if s.web, err = newWeb(*cfg.HTTP); err != nil {
			return nil, err
		}
		tools = append(tools, s.web.tools()...)
	}
	var err error
	if s.tools, err = rest.NewToolbox(tools...); err != nil {
		return nil, fmt.Errorf("built-in tools: %w", err)
	}
	return s, nil
}

// name is the source's name in messages.
const name = "countersign"

// List implements executor.Source.
func (s *Source) List(ctx context.Context) ([]source.Tool, error) {
	if s.closed.Load() {
		return nil, fault.New(fault.Busy, "list built-in tools: source is closed")
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("list built-in tools: %w", err)
	}
	return append([]source.Tool{
		{
			Name:         ToolNoop,
			Title:        "Do nothing",
			Description:  "Does nothing and says so.",
			InputSchema:  json.RawMessage(`{"type":"object"}`),
			OutputSchema: json.RawMessage(`{"type":"object","additionalProperties":false}`),
			Hints:        source.Hints{Idempotent: true, Destructive: new(false), OpenWorld: new(false)},
			Effect:       envelope.EffectIdempotent,
		},
	}, s.tools.Tools()...), nil
}

// Execute implements executor.Source.
func (s *Source) Execute(ctx context.Context, call source.Call) source.Outcome {
	switch {
	case s.closed.Load():
		return conclude(call, source.Observation{}, source.CodeClosed, "the source is closed")
	case ctx.Err() != nil:
		return conclude(call, source.Observation{}, source.CodeCancelled, "the caller gave up before the call was made")
	case call.Tool == ToolNoop:
		return s.noop(call)
	}
	return s.runner.Execute(ctx, call, func(ctx context.Context) rest.Finding { return s.tools.Run(ctx, call) })
}

// noop looks at no more of the arguments than it has to: it is what the speed
// of everything else is measured with.
func (s *Source) noop(call source.Call) source.Outcome {
	if len(call.Args) > 0 && call.Args[0] != '{' {
		return invalid(call, "arguments must be an object")
	}
	return source.Outcome{Kind: source.KindDone, Result: s.empty}
}

func invalid(call source.Call, message string) source.Outcome {
	return conclude(call, source.Observation{Permanent: true}, source.CodeInvalidArgs, message)
}

func conclude(call source.Call, o source.Observation, code, message string) source.Outcome {
	return source.Conclude(call.Effect, o, code, message)
}

// Close implements executor.Source.
func (s *Source) Close() error {
	s.closed.Store(true)
	err := s.runner.Close()
	if s.web != nil {
		err = errors.Join(err, s.web.close())
	}
	return err
}

var _ source.Source = (*Source)(nil)
