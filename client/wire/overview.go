package wire

import (
	"time"

	"github.com/countersign-dev/countersign/envelope"
)

// Overview is the state of a tenant at one moment. Durations are in seconds.
type Overview struct {
	At time.Time `json:"at"`
	// Estimated reports whether counts are estimates, because there is too much
	// to count.
	Estimated bool `json:"estimated"`
	// Due counts the actions that could be claimed now or are held back by a
	// bucket, Scheduled those that wait for a later time, and InFlight those that
	// a worker has.
	Due       int64 `json:"due"`
	Scheduled int64 `json:"scheduled"`
	InFlight  int64 `json:"in_flight"`
	// LeasesOverdue counts actions with an expired lease that no worker has
	// claimed since.
	LeasesOverdue int64 `json:"leases_overdue"`
	// OldestDue is the age of the oldest due action that nothing holds back, or
	// 0.
	OldestDue float64 `json:"oldest_due_seconds"`
	// Waiting counts the waiting actions by reason, most first, including those
	// that wait for a person.
	Waiting []OverviewWaiting `json:"waiting"`
	// Buckets are those with limits or with actions, the fullest first, up to
	// 200.
	Buckets []OverviewBucket `json:"buckets"`
	// Breakers are those of sources whose breaker has ever opened, open ones
	// first, up to 200.
	Breakers []OverviewBreaker `json:"breakers"`
	// Pauses are those in force, the oldest first, up to 1,000. The pause of
	// everything is included.
	Pauses      []OverviewPause       `json:"pauses"`
	Approvals   OverviewApprovals     `json:"approvals"`
	DeadLetters []OverviewDeadLetters `json:"dead_letters"`
	Throughput  OverviewThroughput    `json:"throughput"`
}

// OverviewWaiting counts the actions that wait for one reason: turn, bucket,
// paused, not_before, approval, retry, or the code of another gate.
type OverviewWaiting struct {
	Reason  string `json:"reason"`
	Actions int64  `json:"actions"`
	// OldestDue is the time since the first of them would have been due without
	// the reason; 0 if none is yet.
	OldestDue float64 `json:"oldest_due_seconds"`
	// NextIn is the time until the first becomes due; nil if unknown.
	NextIn *float64 `json:"next_in_seconds"`
}

// OverviewBucket is the state of a bucket.
type OverviewBucket struct {
	Name      string  `json:"name"`
	Waiting   int64   `json:"waiting"`
	OldestDue float64 `json:"oldest_due_seconds"`
	Paused    bool    `json:"paused"`
	Limited   bool    `json:"limited"`
	// Permits is the number of actions that may run now; nil without a rate or a
	// calendar.
	Permits *int64 `json:"permits"`
	// InUse is the number of open calls, of at most Concurrency; both are nil
	// without a limit.
	InUse       *int64 `json:"in_use"`
	Concurrency *int64 `json:"concurrency"`
	// OpensIn is the time until an action may go, and ClosedBy the cause, if
	// that is not a lack of tokens.
	OpensIn  float64 `json:"opens_in_seconds"`
	ClosedBy *string `json:"closed_by"`
}

// OverviewBreaker is the state of a source's circuit breaker.
type OverviewBreaker struct {
	Source    string    `json:"source"`
	State     string    `json:"state"`
	Cause     string    `json:"cause"`
	Since     time.Time `json:"since"`
	OpenUntil time.Time `json:"open_until"`
	Openings  int       `json:"openings"`
}

// OverviewPause is a target that is paused or killed now.
type OverviewPause struct {
	Scope   string         `json:"scope"`
	Subject string         `json:"subject"`
	Kill    bool           `json:"kill"`
	Reason  string         `json:"reason"`
	By      envelope.Actor `json:"by"`
	At      time.Time      `json:"at"`
}

// OverviewApprovals counts the actions that wait for a person, up to 5,000.
type OverviewApprovals struct {
	Waiting int64 `json:"waiting"`
	// OldestAt is the time of the oldest proposal among them, or nil.
	OldestAt *time.Time `json:"oldest_at"`
}

// OverviewDeadLetters are the dead letters of one reason.
type OverviewDeadLetters struct {
	Reason string  `json:"reason"`
	Count  int64   `json:"count"`
	Oldest float64 `json:"oldest_seconds"`
}

// OverviewThroughput counts recent attempts.
type OverviewThroughput struct {
	// Covers is the range of the counts: five minutes, or less if there were more
	// attempts than are read.
	Covers float64         `json:"covers_seconds"`
	Ended  []OverviewEnded `json:"ended"`
}

// OverviewEnded counts the attempts of a tool that ended in one way; pending
// counts those that will be retried.
type OverviewEnded struct {
	Tool            string `json:"tool"`
	Status          string `json:"status"`
	LastMinute      int64  `json:"last_minute"`
	LastFiveMinutes int64  `json:"last_five_minutes"`
}
