package wire

import (
	"time"

	"github.com/countersign-dev/countersign/envelope"
)

// The reasons of dead letters.
const (
	ReasonRefused   = "refused"
	ReasonExhausted = "exhausted"
	ReasonUnknown   = "unknown"
)

// DeadLetter is an action that ended without its effect, or with an unknown
// outcome.
type DeadLetter struct {
	ActionID   envelope.ActionID `json:"action_id"`
	ExternalID string            `json:"external_id,omitzero"`
	Tool       string            `json:"tool"`
	// Reason is refused, exhausted or unknown.
	Reason   string    `json:"reason"`
	Attempts int       `json:"attempts"`
	Code     string    `json:"code,omitzero"`
	Message  string    `json:"message,omitzero"`
	At       time.Time `json:"at"`
	// Reconciliation is the state of its reconciliation; nil without one.
	Reconciliation *Reconciliation `json:"reconciliation,omitempty"`
}

// Reconciliation is the progress of the reads about an unknown outcome.
type Reconciliation struct {
	Attempts int `json:"attempts"`
	// LastResult is the result of the last read, in one word.
	LastResult string `json:"last_result,omitzero"`
	// NextAt is the time of the next read; nil if none is due.
	NextAt *time.Time `json:"next_at"`
}

// DeadLetterDetail is a dead letter with its action and attempts.
type DeadLetterDetail struct {
	DeadLetter DeadLetter `json:"dead_letter"`
	Action     Action     `json:"action"`
	Attempts   []Attempt  `json:"attempts"`
}

// DeadLetterFilter selects dead letters; its zero fields do not narrow.
type DeadLetterFilter struct {
	Reason string `json:"reason,omitzero"`
	Source string `json:"source,omitzero"`
	// Tool is a pattern: source:name, where either may be *.
	Tool string `json:"tool,omitzero"`
	Code string `json:"code,omitzero"`
	// Since and Until bound when the action became a dead letter: from Since
	// on, before Until.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Limit is the size of a page; zero means 50. Cursor is the NextCursor of the
	// previous page. Only lists have them.
	Limit  int    `json:"-"`
	Cursor string `json:"-"`
}

// DeadLetterGroup is the dead letters of one tool that ended in one way.
type DeadLetterGroup struct {
	Source string `json:"source"`
	// Tool is the tool's whole name, as source:name.
	Tool string `json:"tool"`
	// Reason is refused, exhausted or unknown.
	Reason string `json:"reason"`
	Code   string `json:"code"`
	Count  int    `json:"count"`
	// Capped reports that not all were counted: there may be more, and older ones.
	Capped bool      `json:"capped"`
	Oldest time.Time `json:"oldest"`
	Newest time.Time `json:"newest"`
}

// BulkRequest selects the dead letters of a bulk change, oldest actions first.
type BulkRequest struct {
	// IDs name dead letters, up to envelope.MaxItems. With Filter, both must
	// hold. One of the two is required.
	IDs    []envelope.ActionID `json:"action_ids,omitempty"`
	Filter *DeadLetterFilter   `json:"filter,omitempty"`
	// Limit bounds the changed entries; zero means envelope.MaxItems.
	Limit int `json:"limit,omitzero"`
	// DryRun changes nothing.
	DryRun bool `json:"dry_run,omitzero"`
}

// ReplayRequest puts dead letters on the schedule again.
type ReplayRequest struct {
	BulkRequest

	// AllowDuplicates also replays entries with an unknown outcome, whose effect
	// may be duplicated. Without it a filter leaves them out, and naming one by id
	// is a conflict for the whole request.
	AllowDuplicates bool `json:"allow_duplicates,omitzero"`
	// PerSecond is the number that become due per second; zero makes all due
	// immediately.
	PerSecond float64 `json:"per_second,omitzero"`
	// Note is the reason, for the record.
	Note string `json:"note,omitzero"`
}

// DiscardRequest discards dead letters. Reason is for the record.
type DiscardRequest struct {
	BulkRequest

	Reason string `json:"reason"`
}

// BulkResult is the result of a bulk change.
type BulkResult struct {
	// DryRun reports whether nothing was changed.
	DryRun bool `json:"dry_run"`
	// ActionIDs are the changed ones or, in a dry run, those that would be
	// changed.
	ActionIDs []envelope.ActionID `json:"action_ids"`
	// Left counts the selected ones that remain, and LeftOut those that were left out:
	// with an unknown outcome, or ended tries of an action tag.
	Left    int `json:"left"`
	LeftOut int `json:"left_out"`
	// Counts has Left and LeftOut by tool and reason.
	Counts []DeadLetterCount `json:"counts"`
	// AsOf is the server's time.
	AsOf time.Time `json:"as_of"`
	// AheadMS is the time from AsOf to the end of the schedule of a paced replay,
	// in milliseconds.
	AheadMS int64 `json:"ahead_ms"`
}

// DeadLetterCount counts the dead letters of one tool and reason.
type DeadLetterCount struct {
	Tool   string `json:"tool"`
	Reason string `json:"reason"`
	Count  int    `json:"count"`
}

// Resolution is a person's finding about an unknown outcome.
type Resolution struct {
	Happened bool `json:"happened"`
	// GiveUp ends an action that did not happen instead of running it again.
	GiveUp bool `json:"give_up,omitzero"`
	// Note is the person's evidence, for the record. It is required.
	Note string `json:"note"`
}
