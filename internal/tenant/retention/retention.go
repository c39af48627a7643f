// Package retention owns how long a tenant keeps data: the settings, and the
// sweep that deletes older data or, by default, only reports how much there is.
// It does not delete unfinished actions: an action that is on the schedule,
// waits for a decision or is a dead letter stays, however old, and so does an
// event that does not verify.
package retention

import (
	"slices"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
)

// Kind is a kind of data that is kept for some time.
type Kind string

// The kinds.
const (
	// Actions is actions that ended, with their attempts.
	Actions Kind = "actions"
	// Events is the events of the audit log. The checkpoints stay.
	Events Kind = "events"
)

// Kinds returns every kind.
func Kinds() []Kind { return []Kind{Actions, Events} }

// Action is what is done about data that is older.
type Action string

// The actions.
const (
	// Delete deletes it.
	Delete Action = "delete"
	// Report reports it once a day by an event.
	Report Action = "report"
)

// The bounds of Setting.Days, and what holds for a tenant that set nothing.
const (
	MinDays     = 1
	MaxDays     = 9999
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
	var p check.Problems
	if !slices.Contains(Kinds(), s.Kind) {
		p.Add("/kind", envelope.RuleEnum, "must be actions or events")
	}
	if s.Days < MinDays || s.Days > MaxDays {
		p.Add("/days", "range", "must be from %d to %d", MinDays, MaxDays)
	}
	if s.Action != Delete && s.Action != Report {
		p.Add("/action", envelope.RuleEnum, "must be delete or report")
	}
	return p.Err()
}

// Status is a setting with the result of the last daily check.
type Status struct {
	Setting
	// Older is how many rows were older than the setting, counted up to
	// CountMost; 0 where they are deleted. CheckedAt is when, zero for not yet.
	Older     int64
	CheckedAt time.Time
}
