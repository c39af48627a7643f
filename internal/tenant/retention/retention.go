// Package retention owns how long a tenant keeps what: the settings, and the
// sweep that deletes what is past them or, where nobody said so, only tells
// how much there is. It refuses to touch anything unfinished: an envelope that
// is on the schedule, waits for a decision or is a dead letter stays, however
// old, and so does an event that does not verify.
package retention

import (
	"slices"
	"time"

	"github.com/countersign-dev/countersign/envelope"
)

// Kind is a kind of data that is kept for some time.
type Kind string

// The kinds.
const (
	// Ledger is envelopes that ended, with their attempts.
	Ledger Kind = "ledger"
	// Events is the sealed log of what happened. The checkpoints stay.
	Events Kind = "events"
)

// Kinds returns every kind.
func Kinds() []Kind { return []Kind{Ledger, Events} }

// Action is what is done about data that is older.
type Action string

// The actions.
const (
	// Delete deletes it.
	Delete Action = "delete"
	// Notice tells once a day, by an event, that there is some.
	Notice Action = "notice"
)

// Actions returns every action.
func Actions() []Action { return []Action{Delete, Notice} }

// The bounds of Setting.Days, and what holds for a tenant that set nothing.
const (
	MinDays     = 1
	MaxDays     = 36500
	DefaultDays = 90
)

// Setting is how long one kind is kept.
type Setting struct {
	Kind   Kind
	Days   int
	Action Action
}

// Check returns an *envelope.InvalidError that names every field that is
// wrong.
func (s Setting) Check() error {
	var fields []envelope.FieldError
	if !slices.Contains(Kinds(), s.Kind) {
		fields = append(fields, envelope.FieldError{Pointer: "/kind", Rule: envelope.RuleEnum, Message: "must be ledger or events"})
	}
	if s.Days < MinDays || s.Days > MaxDays {
		fields = append(fields, envelope.FieldError{Pointer: "/days", Rule: "range", Message: "must be from 1 to 36500"})
	}
	if !slices.Contains(Actions(), s.Action) {
		fields = append(fields, envelope.FieldError{Pointer: "/action", Rule: envelope.RuleEnum, Message: "must be delete or notice"})
	}
	if len(fields) > 0 {
		return &envelope.InvalidError{Fields: fields}
	}
	return nil
}

// Holding is a setting, and what was found to be older than it.
type Holding struct {
	Setting
	// Older is how many rows the last daily look found, counted up to 10,000;
	// CheckedAt is when, zero for not yet. What is deleted is not counted.
	Older     int64
	CheckedAt time.Time
}
