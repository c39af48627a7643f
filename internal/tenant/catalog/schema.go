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
	"github.com/countersign-dev/countersign/internal/fault"
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

// open says that a schema asks for no more than an object, which Parse has
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
		return &envelope.InvalidError{Fields: []envelope.FieldError{{Pointer: "/args", Rule: "syntax", Message: "must be a JSON object"}}}
	}
	err = schema.Validate(doc)
	if err == nil {
		return nil
	}
	broken, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return err
	}
	var fields []envelope.FieldError
	leaves(broken, func(leaf *jsonschema.ValidationError) {
		fields = append(fields, fieldErrors(leaf)...)
	})
	return &envelope.InvalidError{Fields: fields}
}

func leaves(e *jsonschema.ValidationError, visit func(*jsonschema.ValidationError)) {
	if len(e.Causes) == 0 {
		visit(e)
		return
	}
	for _, cause := range e.Causes {
		leaves(cause, visit)
	}
}

// fieldErrors says in our own words what a keyword found: the library's text
// may quote the value.
func fieldErrors(e *jsonschema.ValidationError) []envelope.FieldError {
	at := "/args" + pointer(e.InstanceLocation)
	rule := envelope.Rule("schema")
	if path := e.ErrorKind.KeywordPath(); len(path) > 0 {
		rule = envelope.Rule(path[len(path)-1])
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		fields := make([]envelope.FieldError, len(k.Missing))
		for i, name := range k.Missing {
			fields[i] = envelope.FieldError{Pointer: at + pointer([]string{name}), Rule: "required", Message: "the tool needs this argument"}
		}
		return fields
	case *kind.AdditionalProperties:
		fields := make([]envelope.FieldError, len(k.Properties))
		for i, name := range k.Properties {
			fields[i] = envelope.FieldError{Pointer: at + pointer([]string{name}), Rule: "unknown_field", Message: "the tool has no such argument"}
		}
		return fields
	case *kind.Type:
		return []envelope.FieldError{{Pointer: at, Rule: "type", Message: "must be " + strings.Join(k.Want, " or ")}}
	case *kind.FalseSchema:
		return []envelope.FieldError{{Pointer: at, Rule: "unknown_field", Message: "the tool does not take this argument"}}
	}
	return []envelope.FieldError{{Pointer: at, Rule: rule, Message: "breaks the rule " + string(rule) + " of the tool's input schema"}}
}

// pointer writes a path as an RFC 6901 JSON Pointer.
func pointer(path []string) string {
	var b strings.Builder
	for _, p := range path {
		b.WriteByte('/')
		b.WriteString(envelope.EscapePointer(p))
	}
	return b.String()
}
