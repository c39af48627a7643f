// Package outbox owns an envelope's life between the decision that it may run
// and its end: looking for due work, claiming it under a lease, marking what
// is about to be sent, settling, putting back, dead letters and undo. It
// works in sets: every function takes or returns a batch and costs one or two
// statements, however many envelopes are in it. It does not call tools.
package outbox

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/preflight"
)

// MaxLeasesLost is how many leases may run out on one envelope before it ends as a
// dead letter: it has probably been killing its workers.
const MaxLeasesLost = 20

// Lease is a claim's right to an envelope. It ends when its time runs out or
// when someone claims the envelope again, which raises the fence.
type Lease struct {
	Tenant envelope.TenantID
	Action envelope.ActionID
	Fence  int64
}

// Key is the envelope's idempotency key for a tool: the same
// for every claim and every attempt. An action id is unique in its tenant
// only, and two tenants may share a server.
func (l Lease) Key() string { return uuid.NewSHA1(uuid.UUID(l.Tenant), l.Action[:]).String() }

// Item is a claimed envelope with the input of its call.
type Item struct {
	Lease
	Bucket int64
	// Due is when it was due, by the database's clock.
	Due time.Time
	// Awaited reports whether somebody waits for it: a person approved it, or the
	// request that proposed it was still open.
	Awaited bool
	// Attempt counts the attempts before this claim; MaxAttempts bounds them.
	Attempt, MaxAttempts int
	// LeasesLost counts the leases that expired.
	LeasesLost int
	// Unsure reports whether an attempt was sent and got no usable answer.
	Unsure bool
	// Sending reports whether an earlier claim had marked it as going out and never
	// settled: for class once nobody knows what happened.
	Sending bool

	Source, Tool string
	Args         json.RawMessage
	Effect       envelope.Effect
	Risk         envelope.Risk
	Approval     envelope.Approval
	Employee     envelope.EmployeeID
	Session      string
	// Person is who proposed it; zero for Countersign itself.
	Person        uuid.UUID
	Automation    string
	ConfigVersion int64
	ToolDigest    []byte
	Traceparent   string
	// ApprovalDigest is the digest that a person approved; nil if nobody did.
	ApprovalDigest []byte

	// Permit is what its bucket granted; HoldsConcurrency reports whether it
	// counts to the bucket's concurrency.
	Permit           Permit
	HoldsConcurrency bool
	// Urgent reports whether the agent asks to go out in quiet hours too.
	Urgent bool
	// MustRunBefore is the deadline, or zero. It, CreatedAt and ClaimedAt are
	// by the database's clock.
	MustRunBefore, CreatedAt, ClaimedAt time.Time
	// Waited is how long it was due before this claim, Age how long ago it
	// was proposed.
	Waited, Age time.Duration
}

// Settlement is what becomes of a claimed envelope.
type Settlement struct {
	Lease
	// Status is how it ended, or StatusPending if it goes back.
	Status envelope.Status
	// Attempt counts the attempts including this one.
	Attempt int
	// Code and Message say why, in one word and one line. They, and Result,
	// must have been through redact.JSONTruncated or redact.Text.
	Code, Message string
	Result        json.RawMessage
	ProviderID    string
	// Took is how long the call ran.
	Took time.Duration
	// StartedAt and FinishedAt are set by Settle: when the attempt ran, by the
	// database's clock.
	StartedAt, FinishedAt time.Time
	// DeadLetter puts it among the dead letters; empty for none.
	DeadLetter Reason
	// Unsure goes back with an envelope whose effect may be there.
	Unsure bool
	// Delay is how long an envelope that goes back waits; Deferred says that
	// this was no attempt and leaves no attempt.
	Delay    time.Duration
	Deferred bool
	// WaitsFor is the reason in one word for which an envelope goes back.
	WaitsFor string
	// UnusedPermit is the claim's permit if no call was made: it is returned to
	// its bucket.
	UnusedPermit Permit
	// CloseBucketFor closes CloseBucket for all actions, because the provider
	// asked for time; zero does not.
	CloseBucketFor time.Duration
	CloseBucket    int64
}

// Reason is why an envelope is among the dead letters.
type Reason string

// The reasons.
const (
	// Refused: the tool's answer was final.
	Refused Reason = "refused"
	// Exhausted: every attempt that was allowed has been made.
	Exhausted Reason = "exhausted"
	// Unknown: it was sent, and nobody knows what happened.
	Unknown Reason = "unknown"
)

// Valid reports whether r is one of the constants.
func (r Reason) Valid() bool {
	switch r {
	case Refused, Exhausted, Unknown:
		return true
	}
	return false
}

// The words of WaitsFor that are not the code of a gate.
const (
	// WaitsApproval: a person has to decide.
	WaitsApproval = "approval"
	// WaitsBucket: its bucket has no permit, or no place, left.
	WaitsBucket = "bucket"
	// WaitsRetryAfter: the provider asked every caller to wait.
	WaitsRetryAfter = "retry_after"
	// WaitsRetry: an attempt was made and may be repeated.
	WaitsRetry = "retry"
	// WaitsStart: it was claimed, and its call was not started.
	WaitsStart = "not_started"
	// WaitsNotBefore: the proposal is not to begin sooner.
	WaitsNotBefore = "not_before"
	// WaitsTurn: it is due, and nothing speaks against it.
	WaitsTurn = "turn"
)

// Explain returns, in a line for people, the reason for which an envelope waits.
func Explain(word string) string {
	switch word {
	case WaitsApproval:
		return "a person's decision"
	case WaitsBucket:
		return "its bucket, which has given all that its limits allow for now"
	case WaitsRetryAfter:
		return "its bucket, which is closed because the provider asked for time"
	case WaitsRetry:
		return "its next attempt"
	case WaitsStart, WaitsTurn:
		return "its turn"
	case WaitsNotBefore:
		return "the time that the proposal names"
	case preflight.CodeQuietHours:
		return "the end of quiet hours"
	case preflight.CodePaused:
		return "an operator to resume what is paused"
	case preflight.CodeBreakerOpen:
		return "its source, which failed too often and whose breaker is open"
	}
	return word
}
