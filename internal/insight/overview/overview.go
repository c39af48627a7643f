// Package overview reads the state of a tenant and of the whole fleet: what
// waits and why, what is in flight, which limits hold actions back, and what
// needs a person. It owns the bounds that keep a reading as cheap beside a long
// queue as beside a short one, and the gauges that show the fleet.
//
// It changes nothing, and does not count exactly what is too much to count:
// beyond some thousands it estimates, and says so.
package overview

import "time"

// Overview is the state of a tenant at one moment, by the database's clock.
type Overview struct {
	At time.Time
	// Estimated means that the outbox is too long to be counted: what it holds
	// is estimated from a part of its pages. Reasons and buckets with few
	// actions may be missing then.
	Estimated bool
	Backlog
	// Waiting is what waits by its reason, most first. What waits for a person
	// is included.
	Waiting []Waiting
	// Buckets are those with limits or with actions, the fullest first, up to
	// 200.
	Buckets []Bucket
	// Breakers are of the sources that one ever opened for, open ones first,
	// up to 200.
	Breakers []Breaker
	// Pauses are those in force, the oldest first, up to 1,000. The pause of
	// everything is included.
	Pauses []Pause
	// Approvals is what waits for a person.
	Approvals Approvals
	// DeadLetters are dead letters by reason.
	DeadLetters []DeadLetters
	// Throughput is what ended lately.
	Throughput Throughput
}

// Fleet is the state of the whole fleet at one moment, with bounded lists: each
// element is a time series of its own.
type Fleet struct {
	Backlog
	// Waiting counts actions by the reason they wait for.
	Waiting map[string]int64
	// Buckets are those with limits, the fullest others, and the sum of the
	// rest.
	Buckets []Bucket
	// Breakers are of the sources that one ever opened for.
	Breakers []Breaker
	// Pauses counts what is paused, by scope.
	Pauses map[string]int64
	// DeadLetters counts dead letters by reason; OldestUnknown is the age of
	// the oldest of unknown outcome.
	DeadLetters   map[string]int64
	OldestUnknown time.Duration
	// CheckpointLag is the age of the oldest event that no checkpoint covers.
	CheckpointLag time.Duration
	// PastRetention counts rows that are older than their tenants' retention,
	// by kind.
	PastRetention map[string]int64
	// Tables are the busiest tables.
	Tables []Table
}

// Backlog is what is in the outbox.
type Backlog struct {
	// Due is how many actions could be claimed now or are held back by a
	// bucket, Scheduled how many wait for a later time, and InFlight how many
	// a worker has.
	Due, Scheduled, InFlight int64
	// Overdue counts the expired leases that no worker has claimed again.
	Overdue int64
	// OldestDue is how long the oldest action has been due that nothing holds
	// back; 0 if there is none.
	OldestDue time.Duration
}

// Waiting is what waits for one reason: turn, bucket, paused, not_before,
// approval, retry, or the code of another gate.
type Waiting struct {
	Reason    string
	Envelopes int64
	// OldestDue is how long ago the first of them would have been due but for
	// the reason; 0 if none is yet. NextIn is when the first that is not gets
	// due; 0 if that is not known.
	OldestDue, NextIn time.Duration
}

// Bucket is the state of a bucket.
type Bucket struct {
	// Tenant is the name of its tenant.
	Tenant, Name string
	Waiting      int64
	// OldestDue is how long the first of them has been due.
	OldestDue time.Duration
	Paused    bool
	// Limited reports whether it has a limit of any kind; else the fields
	// below mean nothing.
	Limited bool
	// Permits is how many actions may go now; negative without a rate or a
	// calendar.
	Permits int64
	// InUse is how many calls are open of the Concurrency that it allows;
	// that is negative without a concurrency limit.
	InUse, Concurrency int64
	// OpensIn is when it gives a permit again, and ClosedBy why it is closed,
	// if that is not for lack of permits.
	OpensIn  time.Duration
	ClosedBy string

	id int64
}

// Breaker is the state of a source's circuit breaker for the fleet.
type Breaker struct {
	Tenant, Source string
	// State is closed, half-open or open; Cause is why it opened last.
	State, Cause string
	Since        time.Time
	// OpenUntil is when a probe may be made, and Openings how often it opened
	// without a success between.
	OpenUntil time.Time
	Openings  int
}

// Pause is something that is paused.
type Pause struct {
	// Tenant is empty for everything.
	Tenant         string
	Scope, Subject string
	Kill           bool
	Reason, By     string
	At             time.Time
}

// Approvals is what waits for a person, counted up to 5,000.
type Approvals struct {
	Waiting int64
	// Oldest is when the first of those was proposed; zero if there are none.
	Oldest time.Time
}

// DeadLetters are the dead letters of one reason.
type DeadLetters struct {
	Reason string
	Count  int64
	// Oldest is the age of the oldest.
	Oldest time.Duration
}

// Throughput is what ended in the last minutes.
type Throughput struct {
	// Covers is how far back the counts reach: five minutes, or less when
	// there was more than is read.
	Covers time.Duration
	Ended  []Ended
}

// Ended counts the attempts of a tool that ended in one way; pending is what
// will be tried again.
type Ended struct {
	Source, Tool, Status        string
	LastMinute, LastFiveMinutes int64
}

// Table is the size of a table with its indexes and partitions, and its rows by
// the statistics.
type Table struct {
	Name       string
	Bytes      int64
	Live, Dead int64

	heapBytes int64
}
