package request

import (
	"errors"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
)

// Invalid returns an *envelope.InvalidError with one field error.
func Invalid(at string, rule envelope.Rule, message string) error {
	return check.Invalid(at, rule, "%s", message)
}

// Below puts the pointers of an *envelope.InvalidError below another pointer.
// Other errors stay as they are.
func Below(at string, err error) error {
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
