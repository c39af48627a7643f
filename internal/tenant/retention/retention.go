// Package retention owns the retention of a tenant's data: the settings, and the
// sweep that deletes older data or, by default, only reports the amount. It does
// not delete unfinished actions: an action that is scheduled, waits for a
// decision or is a dead letter is kept regardless of its age. Events that do not
// verify are also kept.
package retention

import (
	"slices"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
)

// Kind is a kind of data with a retention.
type Kind string

// The kinds.
const (
	// Actions are ended actions with their attempts.
	Actions Kind = "actions"
	// Events are the events of the audit log. The checkpoints are kept.
	Events Kind = "events"
)

// Kinds returns every kind.
func Kinds() []Kind { return []Kind{Actions, Events} }

// Action is the treatment of older data.
type Action string

// The actions.
const (
	// Delete means that it is deleted.
	Delete Action = "delete"
	// Report means that its amount is reported once a day by an event.
	Report Action = "report"
)

// Bounds of Setting.Days, and its default.
const (
	minDays     = 1
	MaxDays     = 9999
	defaultDays = 90
)

// Setting is the retention of one kind.
type Setting struct {
	Kind   Kind
	Days   int
	Action Action
}

// Check returns an *envelope.InvalidError with every invalid field.
func (s Setting) Check() error {
	var p check.Problems
	if !slices.Contains(Kinds(), s.Kind) {
		p.Add("/kind", envelope.RuleEnum, "must be actions or events")
	}
	if s.Days < minDays || s.Days > MaxDays {
		p.Add("/days", "range", "must be from %d to %d", minDays, MaxDays)
	}
	if s.Action != Delete && s.Action != Report {
		p.Add("/action", envelope.RuleEnum, "must be delete or report")
	}
	return p.Err()
}

// Status is a setting with the result of the last daily check.
type Status struct {
	Setting
	// Older is the number of rows older than the setting, counted up to
	// CountMost; 0 if they are deleted. CheckedAt is the time of the count, zero
	// if there was none yet.
	Older     int64
	CheckedAt time.Time
}
