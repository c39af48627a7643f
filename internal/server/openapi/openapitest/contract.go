// Package openapitest checks answers and examples against the API's contract, in
// tests.
package openapitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/server/openapi"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// Contract is openapi.yaml with its answers. It is safe for concurrent use.
type Contract struct {
	// Paths are the operations by path and method.
	Paths map[string]map[string]Operation

	text      []byte
	whole     any // the text, decoded
	responses map[string]response
	// compiling guards compiler.
	compiling sync.Mutex
	compiler  *jsonschema.Compiler
}

// Operation describes one operation.
type Operation struct {
	OperationID string              `json:"operationId"`
	Roles       []identity.Role     `json:"x-roles"`
	Scope       identity.Scope      `json:"x-scope"`
	Security    []any               `json:"security"`
	Body        any                 `json:"requestBody"`
	Responses   map[string]response `json:"responses"`
}

type response struct {
	Ref     string                     `json:"$ref"`
	Content map[string]json.RawMessage `json:"content"`
}

// read reads the contract once per process, because that is slow.
var read = sync.OnceValues(func() (*Contract, error) {
	contract, err := openapi.Load()
	if err != nil {
		return nil, err
	}
	c := &Contract{text: contract.JSON()}
	if c.compiler, err = openapi.NewCompiler(c.text); err != nil {
		return nil, err
	}
	var file struct {
		Paths      map[string]map[string]Operation
		Components struct{ Responses map[string]response }
	}
	if err := errors.Join(json.Unmarshal(c.text, &file), json.Unmarshal(c.text, &c.whole)); err != nil {
		return nil, err
	}
	c.Paths, c.responses = file.Paths, file.Components.Responses
	return c, nil
})

// Load returns the contract.
func Load(t testing.TB) *Contract {
	t.Helper()
	c, err := read()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Answer returns the schema of an answer; nil if the answer has no body.
func (c *Contract) Answer(pattern string, status int, media string) (*jsonschema.Schema, error) {
	method, path, _ := strings.Cut(pattern, " ")
	method = strings.ToLower(method)
	code := strconv.Itoa(status)
	found, ok := c.Paths[path][method].Responses[code]
	if !ok {
		code = "default"
		documented := status < 500 && path != "/healthz"
		if found, ok = c.Paths[path][method].Responses[code]; !ok || documented {
			return nil, fmt.Errorf("%s has no answer %d", pattern, status)
		}
	}
	at := "/paths/" + envelope.EscapePointer(path) + "/" + method + "/responses/" + code
	if found.Ref != "" {
		at = strings.TrimPrefix(found.Ref, "#")
		found = c.responses[at[strings.LastIndexByte(at, '/')+1:]]
	}
	if len(found.Content) == 0 && media == "" {
		return nil, nil
	}
	if _, ok := found.Content[media]; !ok {
		return nil, fmt.Errorf("%s has no answer %d as %q", pattern, status, media)
	}
	return c.compile(at + "/content/" + envelope.EscapePointer(media) + "/schema")
}

func (c *Contract) compile(at string) (*jsonschema.Schema, error) {
	c.compiling.Lock()
	defer c.compiling.Unlock()
	return c.compiler.Compile(openapi.SchemaURL(at))
}

// EventSchema returns the schema of one event of the stream.
func (c *Contract) EventSchema() (*jsonschema.Schema, error) {
	return c.compile("/components/schemas/Event")
}

// InvocationSchema returns the schema of one event of an invocation.
func (c *Contract) InvocationSchema() (*jsonschema.Schema, error) {
	return c.compile("/components/schemas/InvocationEvent")
}

// Example is an example in the file, and the schema that the example has to match.
type Example struct {
	At     string
	Value  any
	Schema *jsonschema.Schema
}

// Examples returns every example of a JSON body.
func (c *Contract) Examples() ([]Example, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(c.text))
	if err != nil {
		return nil, err
	}
	var all []Example
	return all, c.examples("", doc, &all)
}

func (c *Contract) examples(at string, part any, all *[]Example) error {
	switch p := part.(type) {
	case []any:
		for i, item := range p {
			if err := c.examples(at+"/"+strconv.Itoa(i), item, all); err != nil {
				return err
			}
		}
	case map[string]any:
		if value, ok := p["example"]; ok && p["schema"] != nil {
			schema, err := c.compile(at + "/schema")
			if err != nil {
				return err
			}
			*all = append(*all, Example{at, value, schema})
		}
		for name, item := range p {
			if err := c.examples(at+"/"+envelope.EscapePointer(name), item, all); err != nil {
				return err
			}
		}
	}
	return nil
}
