package actions

import (
	"cmp"
	"net/http"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/preflight"
	"github.com/countersign-dev/countersign/internal/insight/execution"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

func invocationFrom(v outbox.View, known bool) wire.Invocation {
	a := ViewOf(v)
	e := &a.Envelope
	inv := wire.Invocation{
		ID: e.ActionID, Status: execution.StatusOf(e.Approval, e.Result.Status), Phase: a.Phase, Known: known,
		Tool: policy.Key{Source: e.Tool.Source, Action: e.Tool.Name}.String(), Outputs: source.Outputs(e.Result.Output), Error: e.Result.Error,
		Attempts: e.Result.Attempts, StartedAt: v.AttemptStartedAt, FinishedAt: cmp.Or(e.Timestamps.CompletedAt, v.AttemptFinishedAt),
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
	case wire.ExecutionSuccess:
		return c.JSON(http.StatusOK, inv)
	case wire.ExecutionPending, wire.ExecutionExecuting:
		c.W.Header().Set("Countersign-Pending", "true")
		return c.JSON(http.StatusAccepted, inv)
	case wire.ExecutionDenied, wire.ExecutionExpired, wire.ExecutionSkipped, wire.ExecutionError, wire.ExecutionUnknown, wire.ExecutionDryRun:
	}
	return &callError{inv, v.Outcome()}
}

// callError is the error of a call that was not made, or whose outcome is unknown, with
// its record.
type callError struct {
	wire.Invocation

	outcome envelope.Outcome
}

// Error returns one line without any text of the tool.
func (e *callError) Error() string {
	why := ""
	if e.Invocation.Error != nil {
		why = ": " + cmp.Or(e.Invocation.Error.Message, e.Invocation.Error.Code)
	}
	switch e.Status {
	case wire.ExecutionDenied:
		if e.Policy.Mode == envelope.ModeDeny {
			return "policy denies this call: " + policy.Because(envelope.ModeDeny, e.Policy.Source, e.Policy.Trace)
		}
		return "the call was not made: " + e.outcome.String()
	case wire.ExecutionExpired, wire.ExecutionSkipped:
		return "the call was not made: " + e.outcome.String()
	case wire.ExecutionUnknown:
		return "the call was sent and its outcome is unknown; do not repeat it under another external_id" + why
	case wire.ExecutionError:
		return "the call failed" + why
	case wire.ExecutionSuccess, wire.ExecutionPending, wire.ExecutionExecuting, wire.ExecutionDryRun:
	}
	return "the call was not done"
}

// Problem returns the problem, with the outcome.
func (e *callError) Problem() wire.Problem {
	var p wire.Problem
	switch e.Status {
	case wire.ExecutionDenied:
		p = request.NewProblem("denied", http.StatusForbidden, "Not allowed", e.Error())
	case wire.ExecutionExpired:
		p = request.NewProblem("gone", http.StatusGone, "Too late", e.Error())
		p.Code = wire.CodeExpired
	case wire.ExecutionSkipped:
		p = e.skipped()
	case wire.ExecutionError, wire.ExecutionUnknown, wire.ExecutionSuccess, wire.ExecutionPending, wire.ExecutionExecuting, wire.ExecutionDryRun:
		p = request.NewProblem("execution_failed", http.StatusBadGateway, "The call failed", e.Error())
	}
	p.Execution = &e.Invocation
	return p
}

// skipped returns the problem of a call that was not sent: too late, not
// allowed, or undone.
func (e *callError) skipped() wire.Problem {
	code := ""
	if e.Invocation.Error != nil {
		code = e.Invocation.Error.Code
	}
	switch code {
	case preflight.CodeDeadline, preflight.CodeQuietHours:
		return request.NewProblem("gone", http.StatusGone, "Too late", e.Error())
	case preflight.CodeDoNotContact, "policy_denied":
		p := request.NewProblem("denied", http.StatusForbidden, "Not allowed", e.Error())
		if code == "policy_denied" {
			p.Code = wire.CodePolicyDenied
		}
		return p
	}
	return request.NewProblem("conflict", http.StatusConflict, "Not possible in this state", e.Error())
}
