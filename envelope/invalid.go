package envelope

import (
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/envelope/internal/jsonscan"
	"github.com/countersign-dev/countersign/internal/fault"
)

// Rule is a short stable word for a violated rule.
type Rule string

// The rules.
const (
	// RuleSyntax is a text that is not JSON.
	RuleSyntax Rule = "syntax"
	// RuleEncoding is a string that is not UTF-8, or has a lone surrogate.
	RuleEncoding Rule = "encoding"
	// RuleNUL is a string with U+0000, which a database cannot keep.
	RuleNUL Rule = "nul"
	// RuleNumber is a number beyond the limits of Canonical.
	RuleNumber Rule = "number"
	// RuleDuplicateKey is a field that its object has twice.
	RuleDuplicateKey Rule = "duplicate_key"
	// RuleDepth is too deep a nesting.
	RuleDepth Rule = "depth"
	// RuleSize is too long a text.
	RuleSize Rule = "size"
	// RuleMaxItems is too long a list.
	RuleMaxItems Rule = "max_items"
	// RuleRequired is a field that must be there.
	RuleRequired Rule = "required"
	// RuleUnknownField is a field that the contract does not have.
	RuleUnknownField Rule = "unknown_field"
	// RuleReadOnly is a field that only Countersign sets.
	RuleReadOnly Rule = "read_only"
	// RuleType is a value of another JSON type.
	RuleType Rule = "type"
	// RuleEnum is a value that is not one of a few words.
	RuleEnum Rule = "enum"
	// RuleFormat is a string that is not a UUID, or not a time.
	RuleFormat Rule = "format"
	// RulePattern is a string with characters that it may not have.
	RulePattern Rule = "pattern"
	// RuleMinLength is an empty string.
	RuleMinLength Rule = "min_length"
	// RuleMaxLength is too long a string.
	RuleMaxLength Rule = "max_length"
)

// FieldError is one thing that is wrong, and where.
type FieldError struct {
	// Pointer is an RFC 6901 JSON Pointer; "" is the whole text. It ends above a
	// field whose name is longer than 64 bytes, and before it is longer than 512
	// bytes itself.
	Pointer string `json:"pointer"`
	// Rule is the violated rule.
	Rule Rule `json:"rule"`
	// Message is the remedy. It never contains a value.
	Message string `json:"message"`
}

// InvalidError lists the problems of a text, at most 33, in the order in which
// they were found. It is fault.Invalid, and its text may be shown to the
// sender of the text.
type InvalidError struct {
	Fields []FieldError
}

// Error names the first few things that are wrong, and counts the others.
func (e *InvalidError) Error() string {
	const shown = 3
	var text strings.Builder
	text.WriteString("invalid envelope")
	for i, f := range e.Fields {
		if i == shown {
			fmt.Fprintf(&text, "; and %d more", len(e.Fields)-shown)
			break
		}
		separator := ": "
		if i > 0 {
			separator = "; "
		}
		fmt.Fprintf(&text, "%s%q %s", separator, f.Pointer, f.Message)
	}
	return text.String()
}

// Unwrap makes errors.Is(err, fault.Invalid) hold.
func (*InvalidError) Unwrap() error { return fault.Invalid }

// invalid returns an error for problems below a pointer, or nil if there are
// none.
func invalid(prefix string, problems []jsonscan.Problem) *InvalidError {
	if len(problems) == 0 {
		return nil
	}
	fields := make([]FieldError, len(problems))
	for i, p := range problems {
		fields[i] = FieldError{prefix + p.Pointer, Rule(p.Rule), p.Message}
	}
	return &InvalidError{fields}
}
