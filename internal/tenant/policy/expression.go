package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"

	"github.com/countersign-dev/countersign/envelope"
)

// Subject is the input of expressions. It decodes the arguments once for any
// number of expressions. It is not safe for concurrent use.
type Subject struct {
	// Args are the arguments as a JSON object; empty means no arguments.
	Args json.RawMessage
	// Key, Risk and Effect are those of the tool.
	Key    Key
	Risk   ToolRisk
	Effect envelope.Effect
	// EnvelopeRisk, Automation and Session are those of the proposal.
	EnvelopeRisk        envelope.Risk
	Automation, Session string
	// Employee is the agent's identity; empty if none. Known is set if the
	// tenant has an entry for it. Trust and Scopes are the effective ones, from
	// its own or the default entry.
	Employee string
	Known    bool
	Trust    Trust
	Scopes   []string

	read bool
	args map[string]any
	err  error
	// spent is the cost of the evaluations so far.
	spent uint64
}

// ResolveName implements cel.Activation.
func (s *Subject) ResolveName(name string) (any, bool) {
	switch name {
	case variableArgs:
		return s.args, true
	case "tool.source":
		return s.Key.Source, true
	case "tool.name":
		return s.Key.Action, true
	case "tool.risk":
		return string(s.Risk), true
	case "tool.effect":
		return string(s.Effect), true
	case "envelope.risk":
		return string(s.EnvelopeRisk), true
	case "envelope.automation":
		return s.Automation, true
	case "envelope.session":
		return s.Session, true
	case "employee.id":
		return s.Employee, true
	case "employee.known":
		return s.Known, true
	case "employee.trust":
		return string(s.Trust), true
	case "employee.scopes":
		return s.Scopes, true
	}
	return nil, false
}

// Parent returns nil: there are no other variables.
func (s *Subject) Parent() cel.Activation { return nil }

// load decodes the arguments.
func (s *Subject) load() error {
	if !s.read {
		s.read = true
		s.args, s.err = decodeArgs(s.Args)
	}
	return s.err
}

// errUnreadable is the error for arguments that expressions cannot compare.
var errUnreadable = errors.New("arguments that no rule can read")

// decodeArgs decodes arguments without loss for whole numbers: an int if
// possible, else a uint. A number with a fraction, or a larger one, is a double.
// A number out of the range of double is an error.
func decodeArgs(raw json.RawMessage) (map[string]any, error) {
	if len(raw) == 0 {
		return map[string]any{}, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var args map[string]any
	if err := decoder.Decode(&args); err != nil || args == nil {
		return nil, errUnreadable
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errUnreadable
	}
	for name, v := range args {
		number, err := withNumbers(v)
		if err != nil {
			return nil, err
		}
		args[name] = number
	}
	return args, nil
}

// withNumbers replaces the numbers within a value, in place where it can.
func withNumbers(v any) (_ any, err error) {
	switch v := v.(type) {
	case json.Number:
		return number(string(v))
	case []any:
		for i := range v {
			if v[i], err = withNumbers(v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for name := range v {
			if v[name], err = withNumbers(v[name]); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// exactBelow is the bound below which doubles represent all whole numbers
// exactly.
const exactBelow = 1 << 53

func number(text string) (any, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	if strings.Trim(fraction, "0") == "" {
		if n, err := strconv.ParseInt(whole, 10, 64); err == nil {
			return n, nil
		}
		if n, err := strconv.ParseUint(whole, 10, 64); err == nil {
			return n, nil
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil:
		return nil, errUnreadable
	case f == math.Trunc(f) && math.Abs(f) < exactBelow:
		return int64(f), nil
	}
	return f, nil
}

// Expression is a compiled expression. It is safe for concurrent use.
type Expression struct {
	program cel.Program
	// patterns is the number of instructions of its regular expressions.
	patterns int
}

// Failure is a short reason why an expression has no result, without the
// arguments; empty if it has one.
type Failure string

// The kinds of failure of an expression.
const (
	FailureArgs   Failure = "the arguments hold a number that cannot be compared"
	FailureCost   Failure = "it takes more, or counts further, than a rule may"
	FailureType   Failure = "it says neither true nor false"
	FailureValues Failure = "something that it needs is missing or of another kind"
)

// Eval reports whether the expression is true for a subject. A failed expression
// is neither true nor false: the caller must choose the safe side.
func (e *Expression) Eval(s *Subject) (bool, Failure) {
	if s.load() != nil {
		return false, FailureArgs
	}
	if s.spent >= maxSpent || e.patterns*len(s.Args) > maxMatching {
		return false, FailureCost
	}
	out, details, err := e.program.Eval(s)
	if cancelled, ok := errors.AsType[interpreter.EvalCancelledError](err); ok && cancelled.Cause == interpreter.CostLimitExceeded {
		s.spent += maxCost
		return false, FailureCost
	}
	if cost := details.ActualCost(); cost != nil {
		s.spent += *cost
	}
	if err != nil {
		return false, FailureValues
	}
	if said, ok := out.(types.Bool); ok {
		return bool(said), ""
	}
	return false, FailureType
}

// meter computes the cost of a call. cel-go's own cost ignores the contents of
// list elements in comparisons, and texts whose type is known only at run time.
// A NaN or an infinite number costs too much: comparisons with NaN are false, so
// a rule would not apply to it.
type meter struct{}

// CallCost implements interpreter.ActualCostEstimator, with nil for the default.
func (meter) CallCost(function, _ string, args []ref.Val, result ref.Val) *uint64 {
	if f, ok := result.(types.Double); ok && (math.IsNaN(float64(f)) || math.IsInf(float64(f), 0)) {
		return new(uint64(maxCost + 1))
	}
	cost := 1 + reading(result)
	switch function {
	case operators.Equals, operators.NotEquals, operators.In, operators.OldIn:
		for _, arg := range args {
			cost += weigh(arg, maxCost)
		}
	case "matches":
		return nil // by the size of the pattern, which cel-go does count
	case "split":
		if parts, ok := result.(traits.Lister); ok {
			cost += weigh(parts, maxCost)
		}
		fallthrough
	default:
		for _, arg := range args {
			cost += reading(arg)
		}
	}
	return new(uint64(cost))
}

// reading returns the cost of reading a text once; 0 for other values.
func reading(v ref.Val) int {
	if text, ok := v.(types.String); ok {
		return len(text) / 10
	}
	return 0
}

// weigh returns the number of parts of a value, up to most.
func weigh(v ref.Val, most int) int {
	switch v := v.(type) {
	case types.String:
		return min(most, reading(v))
	case traits.Mapper, traits.Lister:
		sum := 0
		for it := v.(traits.Iterable).Iterator(); sum < most && it.HasNext() == types.True; {
			next := it.Next()
			sum += 1 + weigh(next, most-sum)
			if m, ok := v.(traits.Mapper); ok && sum < most {
				sum += weigh(m.Get(next), most-sum)
			}
		}
		return min(sum, most)
	}
	return 0
}
