package envelope

import (
	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/internal/fault"
)

// ActionID identifies an action. New ones are UUIDv7, so that they sort by the
// time at which they were made.
type ActionID uuid.UUID

// TenantID identifies a tenant.
type TenantID uuid.UUID

// EmployeeID identifies the agent, or the person, on whose behalf an action is
// done.
type EmployeeID uuid.UUID

// NewActionID returns a new UUIDv7. It panics if the system has no randomness,
// which the runtime rules out.
func NewActionID() ActionID { return ActionID(uuid.Must(uuid.NewV7())) }

// String returns the 36 characters of the usual form, in lower case.
func (id ActionID) String() string { return uuid.UUID(id).String() }

// MarshalText returns the same as String and never an error.
func (id ActionID) MarshalText() ([]byte, error) { return uuid.UUID(id).MarshalText() }

// UnmarshalText accepts only the 36 characters of the usual form, in either
// case, and not the nil UUID. The error is fault.Invalid.
func (id *ActionID) UnmarshalText(text []byte) error { return parseID((*uuid.UUID)(id), text) }

// String returns the 36 characters of the usual form, in lower case.
func (id TenantID) String() string { return uuid.UUID(id).String() }

// MarshalText returns the same as String and never an error.
func (id TenantID) MarshalText() ([]byte, error) { return uuid.UUID(id).MarshalText() }

// UnmarshalText accepts only the 36 characters of the usual form, in either
// case, and not the nil UUID. The error is fault.Invalid.
func (id *TenantID) UnmarshalText(text []byte) error { return parseID((*uuid.UUID)(id), text) }

// String returns the 36 characters of the usual form, in lower case.
func (id EmployeeID) String() string { return uuid.UUID(id).String() }

// MarshalText returns the same as String and never an error.
func (id EmployeeID) MarshalText() ([]byte, error) { return uuid.UUID(id).MarshalText() }

// UnmarshalText accepts only the 36 characters of the usual form, in either
// case, and not the nil UUID. The error is fault.Invalid.
func (id *EmployeeID) UnmarshalText(text []byte) error { return parseID((*uuid.UUID)(id), text) }

func parseID(id *uuid.UUID, text []byte) error {
	const length = 36 // the library also takes URNs, braces and bare digits
	if len(text) == length {
		if parsed, err := uuid.ParseBytes(text); err == nil && parsed != uuid.Nil {
			*id = parsed
			return nil
		}
	}
	return fault.New(fault.Invalid, "an id must be a UUID of 36 characters that is not all zeros")
}
