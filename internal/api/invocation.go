package api

import (
	"cmp"
	"encoding/json"
	"net/http"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/executor"
	"github.com/countersign-dev/countersign/internal/forensic"
	"github.com/countersign-dev/countersign/internal/gate"
	"github.com/countersign-dev/countersign/internal/outbox"
	"github.com/countersign-dev/countersign/internal/policy"
)

// invocation is what became of a call of a tool.
type invocation struct {
	ID     envelope.ActionID `json:"execution_id"`
	Status forensic.Status   `json:"status"`
	Phase  envelope.Phase    `json:"phase,omitzero"`
	Tool   string            `json:"tool"`
	// Known says that the call had been made before, under the same name.
	Known      bool              `json:"known"`
	Outputs    json.RawMessage   `json:"outputs"`
	Error      *envelope.Failure `json:"error"`
	Attempts   int               `json:"attempts"`
	StartedAt  *time.Time        `json:"started_at"`
	FinishedAt *time.Time        `json:"finished_at"`
	DurationMS *int64            `json:"duration_ms"`
	Policy     verdict           `json:"policy"`
	Decision   *decision         `json:"decision"`
	Waiting    *waiting          `json:"waiting"`
	DryRun     *dryRun           `json:"dry_run,omitempty"`
}

func invocationFrom(v outbox.View, known bool) invocation {
	a := actionFromView(v)
	e := &a.Envelope
	inv := invocation{
		ID: e.ActionID, Status: forensic.StatusOf(e.Approval, e.Result.Status), Phase: a.Phase, Known: known,
		Tool: policy.Key{Source: e.Tool.Source, Action: e.Tool.Name}.String(), Outputs: executor.Outputs(e.Result.Output), Error: e.Result.Error,
		Attempts: e.Result.Attempts, StartedAt: e.Timestamps.SentAt, FinishedAt: e.Timestamps.CompletedAt,
		Policy: a.Policy, Decision: a.Decision, Waiting: a.Waiting,
	}
	if inv.StartedAt != nil && inv.FinishedAt != nil {
		inv.DurationMS = new(inv.FinishedAt.Sub(*inv.StartedAt).Milliseconds())
	}
	return inv
}

// answerInvocation answers with what became of a call: 200 if it was done, 202
// if that is not known yet, and a problem that carries it if it was not done.
func (c *call) answerInvocation(v outbox.View, known bool) error {
	inv := invocationFrom(v, known)
	c.w.Header().Set("Location", "/api/v1/actions/"+inv.ID.String())
	switch inv.Status {
	case forensic.StatusSuccess:
		return c.json(http.StatusOK, inv)
	case forensic.StatusPending, forensic.StatusExecuting:
		c.w.Header().Set("Countersign-Pending", "true")
		return c.json(http.StatusAccepted, inv)
	case forensic.StatusDenied, forensic.StatusExpired, forensic.StatusSkipped, forensic.StatusError, forensic.StatusUnknown, forensic.StatusDryRun:
	}
	return &undoneError{inv}
}

// undoneError says that a call was not done, or that nobody knows, and what is
// on record of it.
type undoneError struct{ invocation }

// Error says it in one line, without a word of the tool's.
func (e *undoneError) Error() string {
	note := ""
	if e.Decision != nil && e.Decision.Note != "" {
		note = ": " + e.Decision.Note
	}
	why := ""
	if e.invocation.Error != nil {
		why = ": " + cmp.Or(e.invocation.Error.Message, e.invocation.Error.Code)
	}
	switch e.Status {
	case forensic.StatusDenied:
		if e.Policy.Mode == envelope.ModeDeny {
			return "policy denies this call: " + policy.Denial(e.Policy.Source, policy.Denying(e.Policy.Trace))
		}
		return "a person denied this call" + note
	case forensic.StatusExpired:
		return "nobody decided about this call in time"
	case forensic.StatusSkipped:
		return "the call was taken off the schedule before it began" + why
	case forensic.StatusUnknown:
		return "the call was sent, and nobody knows whether it happened; do not make it again under another name" + why
	case forensic.StatusError:
		return "the call failed" + why
	case forensic.StatusSuccess, forensic.StatusPending, forensic.StatusExecuting, forensic.StatusDryRun:
	}
	return "the call was not done"
}

// problem is what the outside sees of it.
func (e *undoneError) problem() problem {
	var p problem
	switch e.Status {
	case forensic.StatusDenied:
		p = problemOf("denied", http.StatusForbidden, "Not allowed", e.Error())
	case forensic.StatusExpired:
		p = problemOf("gone", http.StatusGone, "Too late", e.Error())
	case forensic.StatusSkipped:
		p = e.skipped()
	case forensic.StatusError, forensic.StatusUnknown, forensic.StatusSuccess, forensic.StatusPending, forensic.StatusExecuting, forensic.StatusDryRun:
		p = problemOf("execution_failed", http.StatusBadGateway, "The call failed", e.Error())
	}
	p.Execution = &e.invocation
	return p
}

// skipped tells what came too late from what is not allowed and from what
// somebody took back.
func (e *undoneError) skipped() problem {
	code := ""
	if e.invocation.Error != nil {
		code = e.invocation.Error.Code
	}
	switch code {
	case gate.CodeDeadline, gate.CodeQuietHours:
		return problemOf("gone", http.StatusGone, "Too late", e.Error())
	case gate.CodeDoNotContact, "policy_denied":
		return problemOf("denied", http.StatusForbidden, "Not allowed", e.Error())
	}
	return problemOf("conflict", http.StatusConflict, "Not possible as things stand", e.Error())
}
