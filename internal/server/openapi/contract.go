// Package openapi is the API's contract, schemas/openapi.yaml, in compiled
// form. It checks requests against the contract. It does not route them, and
// answers are checked only in tests (openapitest).
package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/schema"
	"github.com/countersign-dev/countersign/schemas"
)

// contractURL is the URL of the contract in the compiler.
const contractURL = "https://countersign.dev/schemas/openapi.yaml"

// The media types of request bodies.
const (
	JSON = "application/json"
	CSV  = "text/csv"
	Form = "application/x-www-form-urlencoded"
)

// Contract is the compiled contract. It is safe for concurrent use.
type Contract struct {
	json       []byte
	operations map[string]*Operation
}

// Operation describes the requests of one operation.
type Operation struct {
	// Media is the media type of the body; empty if the operation takes none.
	Media string
	// BodyRequired reports whether a request without a body is invalid.
	BodyRequired bool

	parameters []parameter
	body       *schema.Schema
}

// parameter is a parameter in the path, the query or a header.
type parameter struct {
	in, name, kind string
	required       bool
	schema         *schema.Schema
}

// load reads and compiles the embedded contract at its first call only, since
// compiling takes longer than starting the rest of a server.
var load = sync.OnceValues(compile)

// Load returns the contract. It is compiled once per process. The error is for
// an invalid embedded file, which no released build has.
func Load() (*Contract, error) { return load() }

// JSON returns the contract's text in JSON, which must not be changed.
func (c *Contract) JSON() []byte { return c.json }

// Operation returns the operation of an operationId.
func (c *Contract) Operation(id string) (*Operation, error) {
	op, ok := c.operations[id]
	if !ok {
		return nil, fmt.Errorf("openapi.yaml has no operation %s", id)
	}
	return op, nil
}

// component is a parameter or a request body, or a reference to one.
type component struct {
	Ref      string `json:"$ref"`
	In       string
	Name     string
	Required bool
	Schema   struct{ Type any }
	Content  map[string]json.RawMessage
}

// pathItem is an operation as the file has it.
type pathItem struct {
	OperationID string
	Parameters  []component
	RequestBody *component
}

// compiler compiles operations.
type compiler struct {
	schemas    *jsonschema.Compiler
	components map[string]map[string]component
}

func compile() (*Contract, error) {
	raw, err := readDocument()
	if err != nil {
		return nil, err
	}
	c := compiler{}
	if c.schemas, err = NewCompiler(raw); err != nil {
		return nil, err
	}
	var file struct {
		Paths      map[string]map[string]pathItem
		Components struct {
			Parameters    map[string]component
			RequestBodies map[string]component
		}
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		return nil, fmt.Errorf("read openapi.yaml: %w", err)
	}
	c.components = map[string]map[string]component{
		"parameters": file.Components.Parameters, "requestBodies": file.Components.RequestBodies,
	}
	contract := &Contract{json: raw, operations: make(map[string]*Operation)}
	for path, methods := range file.Paths {
		for method, item := range methods {
			op, err := c.operation("/paths/"+envelope.EscapePointer(path)+"/"+method, item)
			if err != nil {
				return nil, fmt.Errorf("operation %s: %w", item.OperationID, err)
			}
			contract.operations[item.OperationID] = op
		}
	}
	return contract, nil
}

func readDocument() ([]byte, error) {
	var doc any
	if err := yaml.Unmarshal(schemas.OpenAPI(), &doc); err != nil {
		return nil, fmt.Errorf("read openapi.yaml: %w", err)
	}
	return json.Marshal(doc)
}

// NewCompiler returns a compiler of the schemas in a contract, which is given
// as JSON. It is not safe for concurrent use.
func NewCompiler(contract []byte) (*jsonschema.Compiler, error) {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(contract))
	if err != nil {
		return nil, fmt.Errorf("read openapi.yaml: %w", err)
	}
	return c, c.AddResource(contractURL, doc)
}

// SchemaURL returns the URL of the schema at a JSON Pointer into the contract.
func SchemaURL(pointer string) string { return contractURL + "#" + pointer }

func (c compiler) operation(at string, item pathItem) (*Operation, error) {
	op := &Operation{}
	for i, p := range item.Parameters {
		at, p, err := c.resolve(fmt.Sprintf("%s/parameters/%d", at, i), p)
		if err != nil {
			return nil, err
		}
		compiled, err := c.schemas.Compile(SchemaURL(at + "/schema"))
		if err != nil {
			return nil, err
		}
		kind, _ := p.Schema.Type.(string) // a reference is to a string
		op.parameters = append(op.parameters, parameter{p.In, p.Name, kind, p.Required, schema.Own(compiled)})
	}
	if item.RequestBody == nil {
		return op, nil
	}
	at, body, err := c.resolve(at+"/requestBody", *item.RequestBody)
	if err != nil {
		return nil, err
	}
	op.BodyRequired, op.Media = body.Required, JSON
	for _, media := range []string{CSV, Form} {
		if _, ok := body.Content[media]; ok {
			op.Media = media
		}
	}
	compiled, err := c.schemas.Compile(SchemaURL(at + "/content/" + envelope.EscapePointer(op.Media) + "/schema"))
	op.body = schema.Own(compiled)
	return op, err
}

// resolve follows a reference into the file's components. It returns the JSON
// Pointer of the component.
func (c compiler) resolve(at string, e component) (string, component, error) {
	if e.Ref == "" {
		return at, e, nil
	}
	at = strings.TrimPrefix(e.Ref, "#")
	parts := strings.Split(at, "/")
	if len(parts) != 4 {
		return "", e, fmt.Errorf("no component %s", e.Ref)
	}
	found, ok := c.components[parts[2]][parts[3]]
	if !ok {
		return "", e, fmt.Errorf("no component %s", e.Ref)
	}
	return at, found, nil
}
