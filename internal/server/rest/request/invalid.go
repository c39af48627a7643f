package request

import (
	"errors"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
)

// Invalid returns an *envelope.InvalidError with one field error.
func Invalid(at string, rule envelope.Rule, message string) error {
	return check.Invalid(at, rule, "%s", message)
}

// Below moves the pointers of an *envelope.InvalidError, or that of a
// *fault.Error, below another pointer. Other errors are unchanged.
func Below(at string, err error) error {
	if denied, ok := errors.AsType[*fault.Error](err); ok && denied.Pointer != "" {
		below := *denied
		below.Pointer = at + denied.Pointer
		return &below
	}
	invalid, ok := errors.AsType[*envelope.InvalidError](err)
	if !ok {
		return err
	}
	fields := make([]envelope.FieldError, len(invalid.Fields))
	for i, f := range invalid.Fields {
		f.Pointer = at + f.Pointer
		fields[i] = f
	}
	return &envelope.InvalidError{Fields: fields}
}

// Moved replaces the beginning of the pointers of an *envelope.InvalidError
// that are from or below it. Other errors are unchanged.
func Moved(from, to string, err error) error {
	invalid, ok := errors.AsType[*envelope.InvalidError](err)
	if !ok {
		return err
	}
	fields := slices.Clone(invalid.Fields)
	for i, f := range fields {
		if rest, ok := strings.CutPrefix(f.Pointer, from); ok && (rest == "" || rest[0] == '/') {
			fields[i].Pointer = to + rest
		}
	}
	return &envelope.InvalidError{Fields: fields}
}
