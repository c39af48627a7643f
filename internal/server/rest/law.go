package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/schemas"
)

const lawAt = "https://countersign.dev/schemas/openapi.yaml"

// law is openapi.yaml in the form in which requests are held to it.
type law struct {
	// text is the file in JSON.
	text       []byte
	compiler   *jsonschema.Compiler
	components map[string]map[string]element
	operations map[string]*operation
}

// operation is what the file says of one operation's requests.
type operation struct {
	parameters   []parameter
	body         *jsonschema.Schema
	bodyRequired bool
	// media is the body's media type.
	media string
}

// parameter is one that an operation takes, in path, query or header.
type parameter struct {
	in, name, kind string
	required       bool
	schema         *jsonschema.Schema
}

// element is a part of the file that may stand there by reference: a
// parameter, a body or an answer.
type element struct {
	Ref      string `json:"$ref"`
	In       string
	Name     string
	Required bool
	Schema   struct{ Type any }
	Content  map[string]json.RawMessage
}

type described struct {
	OperationID string
	Parameters  []element
	RequestBody *element
}

func loadLaw() (*law, error) {
	raw, err := yamlToJSON(schemas.OpenAPI())
	if err != nil {
		return nil, fmt.Errorf("read openapi.yaml: %w", err)
	}
	l := &law{text: raw, compiler: jsonschema.NewCompiler(), operations: make(map[string]*operation)}
	l.compiler.AssertFormat()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("read openapi.yaml: %w", err)
	}
	if err := l.compiler.AddResource(lawAt, doc); err != nil {
		return nil, fmt.Errorf("read openapi.yaml: %w", err)
	}
	var file struct {
		Paths      map[string]map[string]described
		Components struct {
			Parameters    map[string]element
			RequestBodies map[string]element
		}
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		return nil, fmt.Errorf("read openapi.yaml: %w", err)
	}
	l.components = map[string]map[string]element{
		"parameters": file.Components.Parameters, "requestBodies": file.Components.RequestBodies,
	}
	for path, methods := range file.Paths {
		for method, d := range methods {
			op, err := l.operation("/paths/"+envelope.EscapePointer(path)+"/"+method, d)
			if err != nil {
				return nil, fmt.Errorf("operation %s: %w", d.OperationID, err)
			}
			l.operations[d.OperationID] = op
		}
	}
	return l, nil
}

func (l *law) operation(at string, d described) (*operation, error) {
	op := &operation{}
	for i, p := range d.Parameters {
		at, p, err := l.resolve(fmt.Sprintf("%s/parameters/%d", at, i), p)
		if err != nil {
			return nil, err
		}
		schema, err := l.compiler.Compile(lawAt + "#" + at + "/schema")
		if err != nil {
			return nil, err
		}
		kind, _ := p.Schema.Type.(string) // a reference is to a string
		op.parameters = append(op.parameters, parameter{p.In, p.Name, kind, p.Required, schema})
	}
	if d.RequestBody == nil {
		return op, nil
	}
	at, body, err := l.resolve(at+"/requestBody", *d.RequestBody)
	if err != nil {
		return nil, err
	}
	op.bodyRequired, op.media = body.Required, jsonType
	for _, media := range []string{csvType, formType} {
		if _, ok := body.Content[media]; ok {
			op.media = media
		}
	}
	op.body, err = l.compiler.Compile(lawAt + "#" + at + "/content/" + envelope.EscapePointer(op.media) + "/schema")
	return op, err
}

// resolve follows a reference into the file's components.
func (l *law) resolve(at string, e element) (string, element, error) {
	if e.Ref == "" {
		return at, e, nil
	}
	at = strings.TrimPrefix(e.Ref, "#")
	parts := strings.Split(at, "/")
	if len(parts) != 4 {
		return "", e, fmt.Errorf("no component %s", e.Ref)
	}
	found, ok := l.components[parts[2]][parts[3]]
	if !ok {
		return "", e, fmt.Errorf("no component %s", e.Ref)
	}
	return at, found, nil
}

func yamlToJSON(text []byte) ([]byte, error) {
	var doc any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	return json.Marshal(doc)
}
