package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/jsonref"
)

// Schema is a JSON Schema that arguments are checked against, compiled when it
// is first needed.
type Schema struct {
	compile func() (*jsonschema.Schema, error)
}

// NewSchema returns the schema that a text holds. Check returns what is wrong
// with the text.
func NewSchema(schema json.RawMessage) Schema {
	return Schema{compile: sync.OnceValues(func() (*jsonschema.Schema, error) { return compileSchema(schema) })}
}

// compileSchema compiles a schema that came from outside. It may not refer to
// anything but itself: nothing is fetched and no file is opened.
func compileSchema(schema json.RawMessage) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	if open(doc) {
		return nil, nil
	}
	const at = "tool:///input"
	c := jsonschema.NewCompiler()
	c.UseLoader(refuseLoader{})
	c.AssertFormat()
	if err := c.AddResource(at, doc); err != nil {
		return nil, err
	}
	return c.Compile(at)
}

// open reports whether a schema asks for no more than an object, which Parse has
// made sure of.
func open(doc any) bool {
	m, ok := doc.(map[string]any)
	if !ok {
		return false
	}
	for k, v := range m {
		switch k {
		case "$schema", "title", "description", "$comment":
		case "type":
			if v != "object" {
				return false
			}
		case "properties":
			if p, ok := v.(map[string]any); !ok || len(p) > 0 {
				return false
			}
		default:
			return false
		}
	}
	return true
}

type refuseLoader struct{}

func (refuseLoader) Load(string) (any, error) {
	return nil, errors.New("a tool's schema may not refer to another document")
}

// Check validates arguments. The error is an *envelope.InvalidError whose
// pointers begin with /args, or fault.Conflict if the schema cannot be used.
func (c Schema) Check(args json.RawMessage) error {
	schema, err := c.compile()
	if err != nil {
		return fault.Wrap(err, fault.Conflict, "the tool's input schema cannot be used; ask its source to mend it")
	}
	if schema == nil {
		return nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err != nil {
		return check.Invalid("/args", envelope.RuleSyntax, "must be a JSON object")
	}
	err = schema.Validate(doc)
	if err == nil {
		return nil
	}
	broken, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return err
	}
	var p check.Problems
	addProblems(&p, broken)
	return &envelope.InvalidError{Fields: p}
}

// addProblems adds what each keyword found, in our own words: the library's
// text may quote the value.
func addProblems(p *check.Problems, e *jsonschema.ValidationError) {
	for _, cause := range e.Causes {
		addProblems(p, cause)
	}
	if len(e.Causes) > 0 {
		return
	}
	at := "/args" + jsonref.Pointer(e.InstanceLocation).String()
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			p.Add(at+"/"+envelope.EscapePointer(name), envelope.RuleRequired, "the tool needs this argument")
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			p.Add(at+"/"+envelope.EscapePointer(name), envelope.RuleUnknownField, "the tool has no such argument")
		}
	case *kind.Type:
		p.Add(at, envelope.RuleType, "must be %s", strings.Join(k.Want, " or "))
	case *kind.FalseSchema:
		p.Add(at, envelope.RuleUnknownField, "the tool does not take this argument")
	default:
		rule := "schema"
		if path := e.ErrorKind.KeywordPath(); len(path) > 0 {
			rule = path[len(path)-1]
		}
		p.Add(at, envelope.Rule(rule), "breaks the rule %s of the tool's input schema", rule)
	}
}
