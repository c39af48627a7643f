package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/schema"
	"github.com/countersign-dev/countersign/internal/source"
)

// Tool is a tool and the function that calls it. Its hints are derived from the
// effect class: a tool is read-only if its class is read, and idempotent unless
// its class is once.
type Tool struct {
	Name, Title, Description string
	// Input and Output are JSON Schemas.
	Input, Output json.RawMessage
	Effect        envelope.Effect
	// Destructive is set if a call may change or remove existing data.
	Destructive bool
	// Reversal reverts a call; nil if calls cannot be reverted.
	Reversal *source.Reversal
	// Local is set if a call has no effect outside of Countersign.
	Local bool
	// Internal is set if List omits the tool, so that no action can name it.
	Internal bool
	Run      Run `json:"-"`
}

// Run makes one attempt at a call, whose arguments are an object that conforms
// to the tool's input schema.
type Run func(context.Context, source.Call) source.Observation

func (t Tool) definition() source.Tool {
	return source.Tool{
		Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: t.Input, OutputSchema: t.Output,
		Hints: source.Hints{
			ReadOnly: t.Effect == envelope.EffectRead, Idempotent: t.Effect != envelope.EffectOnce,
			Destructive: new(t.Destructive), OpenWorld: new(!t.Local),
		},
		Effect: t.Effect, Reversal: t.Reversal,
	}
}

// Source is a source.Source with a fixed set of tools. It calls them over a
// Client, with arguments that conform to their input schemas.
type Source struct {
	client  *Client
	tools   []source.Tool
	run     map[string]Run
	schemas map[string]*schema.Schema
}

// ParseTools parses a JSON list of Tool, and returns the tools that have a
// function in run.
func ParseTools(document []byte, run map[string]Run) ([]Tool, error) {
	var tools []Tool
	if err := json.Unmarshal(document, &tools); err != nil {
		return nil, fmt.Errorf("document of tools: %w", err)
	}
	for i := range tools {
		tools[i].Run = run[tools[i].Name]
	}
	return slices.DeleteFunc(tools, func(t Tool) bool { return t.Run == nil }), nil
}

// ParseSource returns a source with the tools of ParseTools.
func ParseSource(client *Client, document []byte, run map[string]Run) (*Source, error) {
	tools, err := ParseTools(document, run)
	if err != nil {
		return nil, err
	}
	return NewSource(client, tools...)
}

// NewSource returns a source. It fails if a tool's input schema does not
// compile.
func NewSource(client *Client, tools ...Tool) (*Source, error) {
	s := &Source{
		client:  client,
		run:     make(map[string]Run, len(tools)),
		schemas: make(map[string]*schema.Schema, len(tools)),
	}
	for _, t := range tools {
		var err error
		if s.schemas[t.Name], err = schema.Compile(t.Input); err != nil {
			return nil, fmt.Errorf("input schema of %s: %w", t.Name, err)
		}
		if !t.Internal {
			s.tools = append(s.tools, t.definition())
		}
		s.run[t.Name] = t.Run
	}
	return s, nil
}

// List implements source.Source. It sends no request.
func (s *Source) List(ctx context.Context) ([]source.Tool, error) {
	return s.client.List(ctx, func(context.Context) ([]source.Tool, error) { return slices.Clone(s.tools), nil })
}

// Execute implements source.Source.
func (s *Source) Execute(ctx context.Context, call source.Call) source.Outcome {
	return s.client.Execute(ctx, call, func(ctx context.Context) source.Observation {
		run, ok := s.run[call.Tool]
		if !ok {
			return source.Refuse(source.CodeUnknownTool, "")
		}
		args, ok := Object(call.Args)
		if !ok {
			return source.Refuse(source.CodeInvalidArgs, "")
		}
		if failures, err := s.schemas[call.Tool].CheckObject(ctx, schema.NewBudget(0), args); errors.Is(err, fault.Invalid) || len(failures) > 0 {
			return source.Refuse(source.CodeInvalidArgs, "")
		}
		call.Args = args
		return run(ctx, call)
	})
}

// Close implements source.Source.
func (s *Source) Close() error { return s.client.Close() }

var _ source.Source = (*Source)(nil)

// WithArgs returns a function for Tool.Run that decodes the arguments.
func WithArgs[A any](run func(context.Context, source.Call, A) source.Observation) Run {
	return func(ctx context.Context, call source.Call) source.Observation {
		var args A
		if json.Unmarshal(call.Args, &args) != nil {
			return source.Refuse(source.CodeInvalidArgs, "")
		}
		return run(ctx, call, args)
	}
}

// Object returns arguments as a JSON object, or {}. It returns false if they
// are anything else.
func Object(args json.RawMessage) (json.RawMessage, bool) {
	args = bytes.TrimSpace(args)
	if len(args) == 0 {
		return json.RawMessage(`{}`), true
	}
	return args, args[0] == '{' && json.Valid(args)
}

// ObjectOr returns schema if it is a JSON object, else standard.
func ObjectOr(schema, standard json.RawMessage) json.RawMessage {
	if _, ok := Object(schema); ok && len(schema) > 0 {
		return schema
	}
	return standard
}

// Fields returns the members of a JSON object in raw form; nil for anything
// else.
func Fields(object json.RawMessage) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(object, &fields) != nil {
		return nil
	}
	return fields
}
