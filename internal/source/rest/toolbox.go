package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/countersign-dev/countersign/internal/source"
)

// Tool is a tool and the way to call it.
type Tool struct {
	source.Tool
	// Run makes one attempt. The call's arguments are an object that fits the
	// tool's input schema.
	Run func(context.Context, source.Call) Finding
}

// Toolbox is a fixed set of tools, called only with arguments that fit.
type Toolbox struct {
	tools []source.Tool
	run   map[string]func(context.Context, source.Call) Finding
	fits  map[string]*jsonschema.Schema
}

// NewToolbox returns a set of tools. It fails if an input schema does not
// compile.
func NewToolbox(tools ...Tool) (*Toolbox, error) {
	b := &Toolbox{
		tools: make([]source.Tool, len(tools)),
		run:   make(map[string]func(context.Context, source.Call) Finding, len(tools)),
		fits:  make(map[string]*jsonschema.Schema, len(tools)),
	}
	c := jsonschema.NewCompiler()
	for i, t := range tools {
		at := "tool:///" + t.Name
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(t.InputSchema))
		if err != nil {
			return nil, fmt.Errorf("input schema of %s: %w", t.Name, err)
		}
		if err := c.AddResource(at, doc); err != nil {
			return nil, fmt.Errorf("input schema of %s: %w", t.Name, err)
		}
		if b.fits[t.Name], err = c.Compile(at); err != nil {
			return nil, fmt.Errorf("input schema of %s: %w", t.Name, err)
		}
		b.tools[i], b.run[t.Name] = t.Tool, t.Run
	}
	return b, nil
}

// Tools returns the definitions.
func (b *Toolbox) Tools() []source.Tool { return b.tools }

// Run makes one attempt at a call of a tool in the box.
func (b *Toolbox) Run(ctx context.Context, call source.Call) Finding {
	run, ok := b.run[call.Tool]
	if !ok {
		return Refuse(source.CodeUnknownTool, "")
	}
	args, ok := Object(call.Args)
	if !ok {
		return Refuse(source.CodeInvalidArgs, "")
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err != nil || b.fits[call.Tool].Validate(doc) != nil {
		return Refuse(source.CodeInvalidArgs, "")
	}
	call.Args = args
	return run(ctx, call)
}

// Object returns arguments as a JSON object, {} for none, and reports false if
// they are anything else.
func Object(args json.RawMessage) (json.RawMessage, bool) {
	args = bytes.TrimSpace(args)
	if len(args) == 0 {
		return json.RawMessage(`{}`), true
	}
	return args, args[0] == '{' && json.Valid(args)
}

// Fields returns the members of a JSON object as they are; nil for anything
// else.
func Fields(object json.RawMessage) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(object, &fields) != nil {
		return nil
	}
	return fields
}
