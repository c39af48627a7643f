// Package deadletter owns the actions that ended without success and still
// need a person or a reconciling read: listing, replaying, discarding and
// resolving them, one by one or in bulk. It does not create dead letters
// (settling an action does, in package outbox) and calls no tool.
package deadletter

import (
	"net/url"
	"time"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/check"
)

// Entry is a dead letter.
type Entry struct {
	Action        envelope.ActionID
	ExternalID    string
	Source, Tool  string
	Reason        outbox.Reason
	Attempt       int
	Code, Message string
	CreatedAt     time.Time
	// Reconciliation is set for entries with an unknown outcome.
	Reconciliation Reconciliation
}

// Reconciliation is the progress of the reads that try to find out an unknown
// outcome.
type Reconciliation struct {
	// Attempts counts the reads that were begun.
	Attempts int
	// LastResult is the result of the last read, in one word.
	LastResult string
	// Next is the time of the next read; nil if none is planned.
	Next *time.Time
}

// Filter selects dead letters. A zero field selects all.
type Filter struct {
	Reason             outbox.Reason
	Source, Tool, Code string
	// Since and Until bound the entries' creation times: from Since on, before
	// Until.
	Since, Until time.Time
	// Before is the last id of the previous page, and Limit the size of a page.
	// Only List uses them.
	Before envelope.ActionID
	Limit  int
}

// Validate returns an *envelope.InvalidError with the fields of f that no dead
// letter can match.
func (f Filter) Validate() error {
	var found check.Problems
	if f.Reason != "" && !f.Reason.Valid() {
		found.Add("/reason", envelope.RuleEnum, "must be refused or exhausted or unknown")
	}
	if !f.Until.IsZero() && !f.Since.Before(f.Until) {
		found.Add("/until", "order", "must be later than since")
	}
	return found.Err()
}

// selection returns the key of the replay schedule that requests with this
// filter share. It leaves out the time range, so that a replay that is resumed
// with another range continues the same schedule.
func (f Filter) selection() string {
	return url.Values{"reason": {string(f.Reason)}, "source": {f.Source}, "tool": {f.Tool}, "code": {f.Code}}.Encode()
}

// BulkRequest selects the dead letters of a replay or a discard. The oldest
// actions come first.
type BulkRequest struct {
	// IDs are the actions; nil selects every dead letter that matches Filter.
	IDs    []envelope.ActionID
	Filter Filter
	// Limit bounds the number of entries. It must be positive.
	Limit int
	// DryRun changes nothing.
	DryRun bool
	// Actor is the requester, and Note the reason. Both are recorded.
	Actor envelope.Actor
	Note  string
}

// ReplayOptions configures the replay of a bulk request.
type ReplayOptions struct {
	// AllowDuplicates also replays actions that may have had their effect.
	AllowDuplicates bool
	// PerSecond is the rate at which the actions become due; zero makes all of
	// them due immediately. Requests with the same filter share a schedule: each
	// continues where the previous one ended.
	PerSecond float64
}

// interval returns the time between two actions, zero for none.
func (o ReplayOptions) interval() time.Duration {
	if o.PerSecond <= 0 {
		return 0
	}
	return time.Duration(float64(time.Second) / o.PerSecond)
}

// BulkResult is the result of a bulk request. AsOf is the database's time: entries
// created later are not counted, and used as the filter's Until it keeps later
// requests of the same run from selecting actions that failed again meanwhile.
type BulkResult = wire.BulkResult

// Resolution is the actual outcome of an action whose outcome was unknown.
type Resolution struct {
	// Happened reports whether the call had its effect. If not, the action runs
	// again or, with GiveUp, ends as failed.
	Happened, GiveUp bool
	// Actor is the person who resolves, and Note the evidence. Both are recorded.
	Actor envelope.Actor
	Note  string
	// ReconcileAttempt is the number of the read that found the outcome, which
	// must still be the last one; zero for a person.
	ReconcileAttempt int
}

// event returns the state transition of the resolution.
func (r Resolution) event() envelope.Event {
	switch {
	case r.Happened:
		return envelope.EventResolveSent
	case r.GiveUp:
		return envelope.EventResolveFailed
	}
	return envelope.EventResolvePending
}

// CodeResolved is the code of the attempt that a resolution adds.
const CodeResolved = "resolved"

// dueTimes returns n times from start on, an interval apart.
func dueTimes(start time.Time, interval time.Duration, n int) []time.Time {
	all := make([]time.Time, n)
	for i := range all {
		all[i] = start.Add(time.Duration(i) * interval)
	}
	return all
}
