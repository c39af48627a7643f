package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/schema"
)

// Schema is a JSON Schema for arguments, compiled when first needed.
type Schema struct{ text schema.Text }

// NewSchema returns the schema of a text. Errors in the text are returned by
// Check.
func NewSchema(text json.RawMessage) Schema { return Schema{schema.NewText(text)} }

// RuleCost is broken by arguments that are too costly to check.
const RuleCost envelope.Rule = "cost"

// Check validates arguments. The error is an *envelope.InvalidError with
// pointers below /args, fault.Conflict if the schema is unusable, or that of
// ctx.
func (c Schema) Check(ctx context.Context, args json.RawMessage) error {
	return c.CheckWithin(ctx, schema.NewBudget(0), args)
}

// CheckWithin is Check within a budget shared by the checks of one request.
func (c Schema) CheckWithin(ctx context.Context, b *schema.Budget, args json.RawMessage) error {
	compiled, err := c.text.Compile(ctx)
	if why, ok := errors.AsType[*fault.Error](err); ok {
		return fault.Wrap(err, fault.Conflict, "the tool's input schema %s; correct it at its source", why.Text)
	}
	if err != nil {
		return err
	}
	failures, err := compiled.CheckObject(ctx, b, args)
	if errors.Is(err, schema.ErrCost) {
		return check.Invalid("/args", RuleCost, "take too much work to check against the tool's input schema; send less at once")
	}
	if errors.Is(err, fault.Invalid) {
		return check.Invalid("/args", envelope.RuleSyntax, "must be a JSON object")
	}
	if err != nil {
		return err
	}
	var p check.Problems
	for _, f := range failures {
		addProblem(&p, f)
	}
	return p.Err()
}

// addProblem adds the failure of a keyword in Countersign's words: the library's
// text may quote the value.
func addProblem(p *check.Problems, f schema.Failure) {
	at := "/args" + check.Pointer(f.At...)
	switch k := f.Keyword.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			p.Add(at+check.Pointer(name), envelope.RuleRequired, "the tool needs this argument")
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			p.Add(at+check.Pointer(name), envelope.RuleUnknownField, "the tool has no such argument")
		}
	case *kind.Type:
		p.Add(at, envelope.RuleType, "must be %s", strings.Join(k.Want, " or "))
	case *kind.FalseSchema:
		p.Add(at, envelope.RuleUnknownField, "the tool does not take this argument")
	default:
		rule := "schema"
		if path := f.Keyword.KeywordPath(); len(path) > 0 {
			rule = path[len(path)-1]
		}
		p.Add(at, envelope.Rule(rule), "breaks the rule %s of the tool's input schema", rule)
	}
}
