// Package schema compiles JSON Schemas from outside and checks values against
// them with bounded work and memory. The library compiles: it handles dialects,
// references and formats. It does not evaluate, because its evaluation cannot be
// canceled, takes time exponential in the nesting of anyOf, and returns every
// error in one tree.
//
// A schema does not compile if it is too large, or if one value would be checked
// against it too many times. A check takes a bounded number of steps, ends with
// its context, and returns the first few failures.
package schema

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
)

const (
	// MaxBytes is the maximum size of a schema.
	MaxBytes = 256 << 10
	// maxObjects bounds the JSON objects in a schema, since the library takes
	// time quadratic in the number of its subschemas.
	maxObjects = 2000
	// maxExpansion bounds the subschemas that one value is checked against: a
	// schema with the targets of its references and combinators (such as anyOf),
	// counted once for each use.
	maxExpansion = 1000
	// maxNesting bounds the chain of references and combinators for the same
	// value.
	maxNesting = 64
	// maxFailures bounds the failures that a check collects.
	maxFailures = check.MaxProblems
	// maxSteps bounds the work of a check against a schema from outside. A step
	// takes about 50 ns.
	maxSteps = 500_000
	// maxOwnSteps is the bound for Countersign's own schemas, whose documents
	// may be larger.
	maxOwnSteps = 20_000_000
)

// ErrCost is the error of a check that would take too many steps.
var ErrCost = fault.New(fault.Invalid, "checking this value against its schema takes too much work; send less at once")

// Schema is a compiled JSON Schema. It is safe for concurrent use.
type Schema struct {
	compiled *jsonschema.Schema
	steps    int
	// open reports that every object fits.
	open bool
	// unchecked are the regular expressions that no engine supports.
	unchecked []string
}

// Unchecked returns the regular expressions of the schema that no engine
// supports, quoted and truncated. A check treats them as matched.
func (s *Schema) Unchecked() []string { return s.unchecked }

// Compile compiles a schema from outside. The error is a *fault.Error whose text
// completes "the schema", as in "the schema has too many objects". A schema may
// refer only to itself: nothing is fetched and no file is opened.
func Compile(raw []byte) (*Schema, error) {
	if len(raw) > MaxBytes {
		return nil, unusable("is longer than %d KiB", MaxBytes>>10)
	}
	if err := check.JSON(raw); err != nil {
		return nil, unusable("is not valid JSON")
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, unusable("is not valid JSON")
	}
	if err := inspect(doc); err != nil {
		return nil, err
	}
	const at = "tool:///input"
	var by compiler
	c := jsonschema.NewCompiler()
	c.UseLoader(&by)
	c.UseRegexpEngine(by.compilePattern)
	c.AssertFormat()
	if err := c.AddResource(at, doc); err != nil {
		return nil, by.explain(err)
	}
	compiled, err := c.Compile(at)
	if err != nil {
		return nil, by.explain(err)
	}
	if err := measure(compiled); err != nil {
		return nil, err
	}
	return &Schema{compiled: compiled, steps: maxSteps, open: open(doc), unchecked: by.unchecked}, nil
}

// Own returns one of Countersign's own schemas, whose size is not bounded. It
// must not use $dynamicRef or $recursiveRef.
func Own(compiled *jsonschema.Schema) *Schema { return &Schema{compiled: compiled, steps: maxOwnSteps} }

// Budget is the number of steps that the checks of one request share. It is not
// safe for concurrent use.
type Budget struct{ left, taken int }

// NewBudget returns a budget of one costly check, plus a step for each byte of
// the values. Honest values take less.
func NewBudget(bytes int) *Budget { return &Budget{left: maxSteps + bytes} }

// Failure is a keyword that a value breaks.
type Failure struct {
	// At is the path from the checked value to the failing one.
	At []string
	// Keyword is the keyword that fails.
	Keyword jsonschema.ErrorKind
}

// Check checks a value that jsonschema.UnmarshalJSON returned. It returns no
// failures if the value fits, and otherwise the first few. The error is ErrCost
// or that of ctx.
func (s *Schema) Check(ctx context.Context, value any) ([]Failure, error) {
	return s.check(ctx, value, &Budget{left: s.steps})
}

func (s *Schema) check(ctx context.Context, value any, b *Budget) ([]Failure, error) {
	allowed := min(s.steps, b.left)
	e := evaluation{left: allowed, allowed: allowed, before: b.taken}
	defer func() {
		b.left, b.taken = b.left-(e.allowed-e.left), b.taken+e.allowed-e.left
		e.end()
	}()
	fits := e.value(ctx, s.compiled, value, nil)
	if e.stopped != nil {
		return nil, e.stopped
	}
	if !fits && len(e.failures) == 0 {
		return nil, errors.New("a value that does not fit its schema broke no keyword")
	}
	return e.failures, nil
}

func unusable(format string, args ...any) error {
	return fault.New(fault.Invalid, format, args...)
}

// compiler implements the library's hooks. It records refused references itself,
// since the library's errors may quote the schema at length.
type compiler struct {
	remote    string
	unchecked []string
}

// Load implements jsonschema.URLLoader. It loads nothing.
func (c *compiler) Load(url string) (any, error) {
	c.remote = url
	return nil, errors.New("another document")
}

func (c *compiler) compilePattern(text string) (jsonschema.Regexp, error) {
	re, err := compilePattern(text)
	if err != nil {
		if shown := quote(text); !slices.Contains(c.unchecked, shown) {
			c.unchecked = append(c.unchecked, shown)
		}
		return &pattern{text: text}, nil
	}
	return re, nil
}

// explain returns the reason why a schema does not compile.
func (c *compiler) explain(err error) error {
	if c.remote != "" {
		return unusable("refers to another document, %s, and nothing is fetched", quote(c.remote))
	}
	if missing, ok := errors.AsType[*jsonschema.JSONPointerNotFoundError](err); ok {
		_, fragment, _ := strings.Cut(missing.URL, "#")
		return unusable("refers to %s, which it does not have", quote("#"+fragment))
	}
	return unusable("is not a JSON Schema")
}

// quote returns a text from a schema in quotes, truncated.
func quote(text string) string {
	const most = 100
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return fmt.Sprintf("%+q", text)
}

// CheckObject is Check for the text of a JSON object, within a budget shared by
// the checks of one request.
func (s *Schema) CheckObject(ctx context.Context, b *Budget, raw json.RawMessage) ([]Failure, error) {
	if s.open {
		return nil, nil
	}
	value, err := Decode(raw)
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "must be a JSON object")
	}
	return s.check(ctx, value, b)
}

// Decode decodes a JSON text into a value for Check. Numbers keep their digits.
func Decode(raw []byte) (any, error) { return jsonschema.UnmarshalJSON(bytes.NewReader(raw)) }

// open reports whether a schema accepts every object.
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
