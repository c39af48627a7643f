package schema

import (
	"context"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Engine compiles regular expressions for the library.
func Engine(text string) (jsonschema.Regexp, error) { return compilePattern(text) }

const MaxSteps = maxSteps

// Measure is Check that also returns the number of steps.
func Measure(ctx context.Context, s *Schema, value any) (steps int, failures []Failure, err error) {
	e := evaluation{left: s.steps, allowed: s.steps}
	defer e.end()
	e.value(ctx, s.compiled, value, nil)
	return e.allowed - e.left, e.failures, e.stopped
}
