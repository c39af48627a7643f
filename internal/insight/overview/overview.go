// Package overview reads how the whole stands: what waits and why, what is in
// flight, which limits hold it back, and what needs a person. It owns the
// bounds that such a look keeps to, so that it costs about the same beside a
// long queue as beside a short one. It refuses to change anything, and to
// count exactly what is too much to count: beyond some thousands it estimates,
// and says so.
package overview

import (
	"time"
)

// Overview is how a tenant stands at one moment, by the database's clock.
type Overview struct {
	At time.Time
	// Estimated says that the outbox is too long to be counted: what it holds
	// is estimated from a part of its pages. Reasons and buckets with few
	// envelopes may be missing then.
	Estimated bool
	// Due is how many envelopes could be claimed now or are held back by a
	// bucket, Scheduled how many wait for a later time, and InFlight how many
	// a worker has.
	Due, Scheduled, InFlight int64
	// Overdue counts the leases that ran out and that nobody has taken up.
	Overdue int64
	// OldestDue is how long the envelope has waited that could be claimed for
	// longest; 0 if none can.
	OldestDue time.Duration
	// Waiting is what waits by what it waits for, most first. What waits for
	// a person is among it.
	Waiting []Waiting
	// Buckets are those with limits or with envelopes, the fullest first, up
	// to 200.
	Buckets []Bucket
	// Breakers are of the sources that one ever opened for, those first that
	// are left alone, up to 200.
	Breakers []Breaker
	// Pauses are those that stand, the oldest first, up to 1,000. The pause of
	// everything is among them.
	Pauses []Pause
	// Approvals is what waits for a person.
	Approvals Approvals
	// Letters are dead letters by reason.
	DeadLetters []DeadLetters
	// Throughput is what ended lately.
	Throughput Throughput
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

// Bucket is how a bucket stands.
type Bucket struct {
	// Tenant is the name of whose it is.
	Tenant, Name string
	Waiting      int64
	// OldestDue is how long the first of them has been due.
	OldestDue time.Duration
	Paused    bool
	// Limited says that it has a limit of any kind, and that what follows
	// means something.
	Limited bool
	// Tokens is how many envelopes it would give now; negative without a rate
	// or a calendar.
	Tokens int64
	// InUse is how many calls are open of the Concurrency that it allows;
	// that is negative without a ceiling.
	InUse, Concurrency int64
	// OpensIn is when it gives one again, and ClosedBy why it is closed, if
	// that is not for lack of tokens.
	OpensIn  time.Duration
	ClosedBy string

	id int64
}

// Breaker is how a source's circuit breaker stands for the fleet.
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

// Letters are the dead letters of one reason.
type DeadLetters struct {
	Reason string
	Count  int64
	// Oldest is the age of the oldest.
	Oldest time.Duration
}

// Throughput is what ended in the last minutes.
type Throughput struct {
	// Covers is how far back the look reached: five minutes, or less when
	// there was more than is looked at.
	Covers time.Duration
	Ended  []Ended
}

// Ended counts the attempts of a tool that ended in one way; pending is what
// will be tried again.
type Ended struct {
	Source, Tool, Status        string
	LastMinute, LastFiveMinutes int64
}
