package rest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/schemas"
)

// Route is a line of the table of routes, for tests from outside.
type Route struct {
	Pattern, Operation string
	Roles              []identity.Role
	Scope              identity.Scope
}

// Routes returns the table of routes.
func Routes() []Route {
	var all []Route
	for _, rt := range routes() {
		all = append(all, Route{rt.pattern, rt.operation, rt.roles, rt.scope})
	}
	return all
}

// Law is openapi.yaml as tests hold answers to it.
type Law struct {
	*law
	Paths     map[string]map[string]Operation
	responses map[string]response
	// compiling guards the compiler, which serves one at a time.
	compiling sync.Mutex
}

// Operation is what the file says of one operation.
type Operation struct {
	OperationID string              `json:"operationId"`
	Roles       []identity.Role     `json:"x-roles"`
	Scope       identity.Scope      `json:"x-scope"`
	Security    []any               `json:"security"`
	Responses   map[string]response `json:"responses"`
}

type response struct {
	Ref     string                     `json:"$ref"`
	Content map[string]json.RawMessage `json:"content"`
}

// LoadLaw reads openapi.yaml.
func LoadLaw() (*Law, error) {
	base, err := loadLaw()
	if err != nil {
		return nil, err
	}
	raw, err := yamlToJSON(schemas.OpenAPI())
	if err != nil {
		return nil, err
	}
	var file struct {
		Paths      map[string]map[string]Operation
		Components struct{ Responses map[string]response }
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		return nil, err
	}
	return &Law{law: base, Paths: file.Paths, responses: file.Components.Responses}, nil
}

// Answer finds the schema that an answer has to keep; nil if it has no body.
func (l *Law) Answer(pattern string, status int, media string) (*jsonschema.Schema, error) {
	method, path, _ := strings.Cut(pattern, " ")
	method = strings.ToLower(method)
	code := strconv.Itoa(status)
	found, ok := l.Paths[path][method].Responses[code]
	if !ok {
		code = "default"
		documented := status < 500 && path != "/healthz"
		if found, ok = l.Paths[path][method].Responses[code]; !ok || documented {
			return nil, fmt.Errorf("%s has no answer %d", pattern, status)
		}
	}
	at := "/paths/" + envelope.EscapePointer(path) + "/" + method + "/responses/" + code
	if found.Ref != "" {
		at = strings.TrimPrefix(found.Ref, "#")
		found = l.responses[at[strings.LastIndexByte(at, '/')+1:]]
	}
	if len(found.Content) == 0 && media == "" {
		return nil, nil
	}
	if _, ok := found.Content[media]; !ok {
		return nil, fmt.Errorf("%s has no answer %d as %q", pattern, status, media)
	}
	return l.compile(at + "/content/" + envelope.EscapePointer(media) + "/schema")
}

func (l *Law) compile(at string) (*jsonschema.Schema, error) {
	l.compiling.Lock()
	defer l.compiling.Unlock()
	return l.compiler.Compile(lawAt + "#" + at)
}

// EventSchema is the schema of one event of the stream.
func (l *Law) EventSchema() (*jsonschema.Schema, error) {
	return l.compile("/components/schemas/Event")
}

// InvocationSchema is the schema of one event of an invocation.
func (l *Law) InvocationSchema() (*jsonschema.Schema, error) {
	return l.compile("/components/schemas/InvocationEvent")
}

// Example is an example in the file, and the schema that it should keep.
type Example struct {
	At     string
	Value  any
	Schema *jsonschema.Schema
}

// Examples returns every example of a JSON body.
func (l *Law) Examples() ([]Example, error) {
	raw, err := yamlToJSON(schemas.OpenAPI())
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		return nil, err
	}
	var all []Example
	return all, l.examples("", doc, &all)
}

func (l *Law) examples(at string, part any, all *[]Example) error {
	switch p := part.(type) {
	case []any:
		for i, one := range p {
			if err := l.examples(at+"/"+strconv.Itoa(i), one, all); err != nil {
				return err
			}
		}
	case map[string]any:
		if value, ok := p["example"]; ok && p["schema"] != nil {
			schema, err := l.compile(at + "/schema")
			if err != nil {
				return err
			}
			*all = append(*all, Example{at, value, schema})
		}
		for name, one := range p {
			if err := l.examples(at+"/"+envelope.EscapePointer(name), one, all); err != nil {
				return err
			}
		}
	}
	return nil
}

// The parts that are tested from outside.
var (
	WriteCursor  = writeCursor
	ParseCursor  = parseCursor
	ParseEventID = func(text string) (string, error) {
		id, err := parseEventID(text)
		return id.String(), err
	}
)

// Cursors names the lists that cursors belong to.
func Cursors() [2]string { return [2]string{cursorActions, cursorLetters} }
