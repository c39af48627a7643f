package actions

import (
	"cmp"
	"encoding/json"
	"net/http"
	"time"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/preflight"
	"github.com/countersign-dev/countersign/internal/insight/execution"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// invocation is the outcome of a call of a tool.
type invocation struct {
	ID     envelope.ActionID `json:"execution_id"`
	Status execution.Status  `json:"status"`
	Phase  envelope.Phase    `json:"phase,omitzero"`
	Tool   string            `json:"tool"`
	// Known says that the call was made before, under the same external id.
	Known      bool              `json:"known"`
	Outputs    json.RawMessage   `json:"outputs"`
	Error      *envelope.Failure `json:"error"`
	Attempts   int               `json:"attempts"`
	StartedAt  *time.Time        `json:"started_at"`
	FinishedAt *time.Time        `json:"finished_at"`
	DurationMS *int64            `json:"duration_ms"`
	Policy     policyDecision    `json:"policy"`
	Decision   *decision         `json:"decision"`
	Waiting    *wire.Waiting     `json:"waiting"`
	DryRun     *dryRun           `json:"dry_run,omitempty"`
}

func invocationFrom(v outbox.View, known bool) invocation {
	a := ViewOf(v)
	e := &a.Envelope
	inv := invocation{
		ID: e.ActionID, Status: execution.StatusOf(e.Approval, e.Result.Status), Phase: a.Phase, Known: known,
		Tool: policy.Key{Source: e.Tool.Source, Action: e.Tool.Name}.String(), Outputs: source.Outputs(e.Result.Output), Error: e.Result.Error,
		Attempts: e.Result.Attempts, StartedAt: e.Timestamps.SentAt, FinishedAt: e.Timestamps.CompletedAt,
		Policy: a.Policy, Decision: a.Decision, Waiting: a.Waiting,
	}
	if inv.StartedAt != nil && inv.FinishedAt != nil {
		inv.DurationMS = new(inv.FinishedAt.Sub(*inv.StartedAt).Milliseconds())
	}
	return inv
}

// answerInvocation answers with the outcome of a call: 200 if it is done, 202
// if its outcome is not known yet, and a problem that carries the outcome
// otherwise.
func answerInvocation(c *request.Call, v outbox.View, known bool) error {
	inv := invocationFrom(v, known)
	c.W.Header().Set("Location", "/api/v1/actions/"+inv.ID.String())
	switch inv.Status {
	case execution.StatusSuccess:
		return c.JSON(http.StatusOK, inv)
	case execution.StatusPending, execution.StatusExecuting:
		c.W.Header().Set("Countersign-Pending", "true")
		return c.JSON(http.StatusAccepted, inv)
	case execution.StatusDenied, execution.StatusExpired, execution.StatusSkipped, execution.StatusError, execution.StatusUnknown, execution.StatusDryRun:
	}
	return &callError{inv}
}

// callError says that a call was not done or that its outcome is unknown, and
// carries what is on record.
type callError struct{ invocation }

// Error returns one line without any text of the tool.
func (e *callError) Error() string {
	note := ""
	if e.Decision != nil && e.Decision.Note != "" {
		note = ": " + e.Decision.Note
	}
	why := ""
	if e.invocation.Error != nil {
		why = ": " + cmp.Or(e.invocation.Error.Message, e.invocation.Error.Code)
	}
	switch e.Status {
	case execution.StatusDenied:
		if e.Policy.Mode == envelope.ModeDeny {
			return "policy denies this call: " + policy.Because(envelope.ModeDeny, e.Policy.Source, policy.Denying(e.Policy.Trace))
		}
		return "a person denied this call" + note
	case execution.StatusExpired:
		return "nobody decided about this call in time"
	case execution.StatusSkipped:
		return "the call was undone before it began" + why
	case execution.StatusUnknown:
		return "the call was sent, and nobody knows whether it happened; do not make it again under another name" + why
	case execution.StatusError:
		return "the call failed" + why
	case execution.StatusSuccess, execution.StatusPending, execution.StatusExecuting, execution.StatusDryRun:
	}
	return "the call was not done"
}

// Problem returns the problem, with the outcome.
func (e *callError) Problem() request.Problem {
	var p request.Problem
	switch e.Status {
	case execution.StatusDenied:
		p = request.NewProblem("denied", http.StatusForbidden, "Not allowed", e.Error())
	case execution.StatusExpired:
		p = request.NewProblem("gone", http.StatusGone, "Too late", e.Error())
	case execution.StatusSkipped:
		p = e.skipped()
	case execution.StatusError, execution.StatusUnknown, execution.StatusSuccess, execution.StatusPending, execution.StatusExecuting, execution.StatusDryRun:
		p = request.NewProblem("execution_failed", http.StatusBadGateway, "The call failed", e.Error())
	}
	p.Execution = &e.invocation
	return p
}

// skipped returns the problem of a call that was not sent: too late, not
// allowed, or undone.
func (e *callError) skipped() request.Problem {
	code := ""
	if e.invocation.Error != nil {
		code = e.invocation.Error.Code
	}
	switch code {
	case preflight.CodeDeadline, preflight.CodeQuietHours:
		return request.NewProblem("gone", http.StatusGone, "Too late", e.Error())
	case preflight.CodeDoNotContact, "policy_denied":
		return request.NewProblem("denied", http.StatusForbidden, "Not allowed", e.Error())
	}
	return request.NewProblem("conflict", http.StatusConflict, "Not possible as things stand", e.Error())
}
