// Package outbox owns an envelope from the decision to run it until its end:
// finding due rows, claiming them under a lease, marking calls as started,
// settling, putting back, dead letters and undo. It works in sets: every
// function takes or returns a batch and costs one or two statements, whatever
// the size of the batch. It does not call tools.
package outbox

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/preflight"
	"github.com/countersign-dev/countersign/internal/source"
)

// MaxLeasesLost is the number of leases of one envelope that may expire before it
// becomes a dead letter: it has probably been crashing its workers.
const MaxLeasesLost = 20

// Lease is a claim's right to an envelope. It ends when its time runs out or
// when someone claims the envelope again, which raises the fence.
type Lease struct {
	Tenant envelope.TenantID
	Action envelope.ActionID
	Fence  int64
}

// Key is the action's idempotency key for a tool.
func (l Lease) Key() string { return envelope.Key(l.Tenant, l.Action) }

// Mark counts a commit of one loop of a worker: a claim, start or settlement that
// changes rows sets the seq of the loop's row in worker_commits. The zero Mark counts
// nothing, and claims only where no worker has worked yet.
type Mark struct {
	Worker uuid.UUID
	Loop   int16
	Seq    int64
	// Epoch is the epoch of the fence that the worker has checked.
	Epoch int64
}

// Item is a claimed envelope with the input of its call.
type Item struct {
	Lease
	Bucket int64
	// Due is the due time, by the database's clock.
	Due time.Time
	// Awaited reports whether a caller or a person waits for the action: a person
	// approved it, or the request that proposed it was still open.
	Awaited bool
	// Attempt counts the attempts before this claim; MaxAttempts bounds them.
	Attempt, MaxAttempts int
	// LeasesLost counts the leases that expired.
	LeasesLost int
	// Unsure reports whether an attempt was sent and got no usable answer.
	Unsure bool
	// Sending reports whether an earlier claim marked the call as started and never
	// settled it. For class once the outcome is then unknown.
	Sending bool

	Source, Tool string
	Args         json.RawMessage
	Effect       envelope.Effect
	Risk         envelope.Risk
	Approval     envelope.Approval
	Employee     envelope.EmployeeID
	Session      string
	// ExternalID is the proposer's own key; empty without one.
	ExternalID string
	// Person is the proposer; zero for Countersign itself.
	Person        uuid.UUID
	Automation    string
	ConfigVersion int64
	ToolDigest    []byte
	Traceparent   string
	// ApprovalDigest is the digest that people approved; nil if nobody did.
	ApprovalDigest []byte

	// Permit is the permit from the bucket. HoldsConcurrency reports whether the
	// item counts toward the bucket's concurrency.
	Permit           Permit
	HoldsConcurrency bool
	// Urgent reports whether the agent asked to ignore quiet hours.
	Urgent bool
	// MustRunBefore is the deadline, or zero. It, CreatedAt and ClaimedAt are
	// by the database's clock.
	MustRunBefore, CreatedAt, ClaimedAt time.Time
	// Waited is the time from due to this claim, Age the time since the proposal.
	Waited, Age time.Duration
}

// Settlement is the result of a claimed envelope.
type Settlement struct {
	Lease
	// Status is the final status, or StatusPending if the envelope goes back.
	Status envelope.Status
	// Attempt counts the attempts including this one.
	Attempt int
	// Code and Message are the reason, as one word and one line. They and Result
	// must have passed through redact.JSONTruncated or redact.Text.
	Code, Message string
	Result        json.RawMessage
	ProviderID    string
	// Took is the duration of the call.
	Took time.Duration
	// StartedAt and FinishedAt are set by Settle: when the attempt ran, by the
	// database's clock.
	StartedAt, FinishedAt time.Time
	// DeadLetter puts it among the dead letters; empty for none.
	DeadLetter Reason
	// Unsure is stored with an envelope that goes back although its call may have
	// had its effect.
	Unsure bool
	// Delay is the time until an envelope that goes back is due. Deferred reports
	// that no attempt was made, so none is recorded.
	Delay    time.Duration
	Deferred bool
	// WaitsFor is the reason in one word for which an envelope goes back.
	WaitsFor string
	// UnusedPermit is the claim's permit if no call was made: it is returned to
	// its bucket.
	UnusedPermit Permit
	// CloseBucketFor closes CloseBucket for all actions, because the provider
	// asked callers to wait; zero leaves it open.
	CloseBucketFor time.Duration
	CloseBucket    int64
}

// Reason is the reason why an envelope is a dead letter.
type Reason string

// The reasons.
const (
	// Refused: the tool's answer was final.
	Refused Reason = "refused"
	// Exhausted: every attempt that was allowed has been made.
	Exhausted Reason = "exhausted"
	// Unknown: the call was sent, and its outcome is unknown.
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
	// WaitsApproval: a person must decide.
	WaitsApproval = "approval"
	// WaitsBucket: its bucket has no permit, or no place, left.
	WaitsBucket = "bucket"
	// WaitsRetryAfter: the provider asked all callers to wait.
	WaitsRetryAfter = "retry_after"
	// WaitsRetry: an attempt was made and may be repeated.
	WaitsRetry = "retry"
	// WaitsStart: it was claimed, and its call was not started.
	WaitsStart = "not_started"
	// WaitsNotBefore: the proposal is not to begin sooner.
	WaitsNotBefore = "not_before"
	// WaitsTurn: it is due, and nothing holds it back.
	WaitsTurn = "turn"
	// WaitsHeld: the database may be a copy, or may have lost commits.
	WaitsHeld = "held"
)

// Explain returns, in a line for people, the reason for which an envelope waits.
func Explain(word string) string {
	switch word {
	case WaitsApproval:
		return "a person's decision"
	case WaitsBucket:
		return "its bucket, which has reached its limits for now"
	case WaitsRetryAfter:
		return "its bucket, which is closed because the provider asked to wait"
	case WaitsRetry:
		return "its next attempt"
	case WaitsStart, WaitsTurn:
		return "its turn"
	case WaitsHeld:
		return "a person to recover the database, which may be a copy or may have lost commits"
	case WaitsNotBefore:
		return "the time that the proposal names"
	case preflight.CodeQuietHours:
		return "the end of quiet hours"
	case preflight.CodePaused:
		return "an operator to resume it"
	case preflight.CodeLoginLost:
		return "somebody to log in to its source again"
	case source.CodeLoginUnavailable:
		return "the authorization server of its source, which does not renew the token now"
	case preflight.CodeBreakerOpen:
		return "its source, which failed too often and whose breaker is open"
	}
	return word
}
