// Package schema compiles JSON Schemas that came from outside, and checks values
// against them within bounds of work and memory. The library compiles: it knows
// dialects, references and formats. It does not evaluate, because its
// evaluation cannot be ended, takes time exponential in the nesting of anyOf,
// and returns every error in one tree.
//
// A schema that is too large, or that one value would be checked against too
// many times, does not compile. A check takes a bounded number of steps, ends
// with its context, and returns the first few failures.
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
	// MaxBytes is the largest schema that compiles.
	MaxBytes = 256 << 10
	// maxObjects bounds the JSON objects in a schema, since the library takes
	// time quadratic in the number of its subschemas.
	maxObjects = 2000
	// maxExpansion bounds the subschemas that one value is checked against: a
	// schema with all that its references and combinators (anyOf and the like)
	// lead to, counted as often as they do.
	maxExpansion = 1000
	// maxNesting bounds references and combinators that lead to one another for
	// the same value.
	maxNesting = 64
	// maxFailures bounds the failures that a check collects.
	maxFailures = check.MaxProblems
	// maxSteps bounds the work of a check by a schema from outside. A step takes
	// about 50 ns.
	maxSteps = 500_000
	// maxOwnSteps is the bound for schemas that are part of Countersign, whose
	// documents may be larger.
	maxOwnSteps = 20_000_000
)

// ErrCost is the error of a check that would take too many steps.
var ErrCost = fault.New(fault.Invalid, "checking this value against its schema takes too much work; send less at once")

// Schema is a compiled JSON Schema. It is safe for concurrent use.
type Schema struct {
	compiled *jsonschema.Schema
	steps    int
	// open says that every object fits.
	open bool
	// unchecked are the regular expressions that no engine has.
	unchecked []string
}

// Unchecked returns the regular expressions of the schema that no engine has, in
// quotes and cut if they are long. A check takes them as matched.
func (s *Schema) Unchecked() []string { return s.unchecked }

// Compile compiles a schema that came from outside. The error is a *fault.Error
// that says, after the words "the schema", why it cannot be used. A schema may
// refer to nothing but itself: nothing is fetched and no file is opened.
func Compile(raw []byte) (*Schema, error) {
	if len(raw) > MaxBytes {
		return nil, unusable("is longer than %d KiB", MaxBytes>>10)
	}
	if err := check.JSON(raw); err != nil {
		return nil, unusable("is not JSON that can be read")
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, unusable("is not JSON that can be read")
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

// Own returns a schema that is part of Countersign, and so is not bounded in
// size. It must not use $dynamicRef or $recursiveRef.
func Own(compiled *jsonschema.Schema) *Schema { return &Schema{compiled: compiled, steps: maxOwnSteps} }

// Budget is what the checks of one request may take together. It is not safe for
// concurrent use.
type Budget struct{ left, taken int }

// NewBudget returns a budget that one costly check can use up, with another
// step for each byte of what is checked: honest values take fewer.
func NewBudget(bytes int) *Budget { return &Budget{left: maxSteps + bytes} }

// Failure is a keyword that a value breaks.
type Failure struct {
	// At leads to the value from the one that was checked.
	At []string
	// Keyword is what the value there breaks.
	Keyword jsonschema.ErrorKind
}

// Check checks a value, as jsonschema.UnmarshalJSON returns it. It returns no
// failures if the value fits, and otherwise the first few. The error is ErrCost
// or the context's.
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

// compiler is what the library asks while it compiles. It notes what it
// refused, since the library's errors may quote the schema at length.
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

// explain returns why a schema does not compile.
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

// quote returns a text from a schema in quotes, cut if it is long.
func quote(text string) string {
	const most = 100
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return fmt.Sprintf("%+q", text)
}

// CheckObject is Check for the text of a JSON object, within a budget that the
// checks of one request share.
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

// Decode decodes a JSON text into a value for Check. Numbers stay as they are
// written.
func Decode(raw []byte) (any, error) { return jsonschema.UnmarshalJSON(bytes.NewReader(raw)) }

// open reports whether a schema asks for no more than an object.
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
