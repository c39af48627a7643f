package actions

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/preflight"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// Action is an action as the API shows it.
type Action struct {
	Envelope      envelope.Envelope `json:"envelope"`
	Phase         envelope.Phase    `json:"phase"`
	Effect        envelope.Effect   `json:"effect"`
	Policy        policyDecision    `json:"policy"`
	Decision      *decision         `json:"decision"`
	NextAttemptAt *time.Time        `json:"next_attempt_at"`
	Waiting       *wire.Waiting     `json:"waiting"`
}

func waitingFrom(v outbox.View) *wire.Waiting {
	if v.WaitsFor == "" {
		return nil
	}
	w := &wire.Waiting{For: v.WaitsFor, Message: outbox.Explain(v.WaitsFor)}
	if !v.WaitsUntil.IsZero() && v.WaitsFor != preflight.CodePaused {
		w.Until = &v.WaitsUntil
	}
	return w
}

// policyDecision is the decision of policy.
type policyDecision struct {
	Mode   envelope.Mode   `json:"mode"`
	Source string          `json:"source"`
	Trace  json.RawMessage `json:"trace"`
}

// decision is the decision of a person, or the wait for one.
type decision struct {
	ExpiresAt *time.Time     `json:"expires_at"`
	At        *time.Time     `json:"at"`
	By        envelope.Actor `json:"by"`
	Note      string         `json:"note"`
	// Needed and Given count the people who must agree, and who have.
	Needed int `json:"approvals_needed"`
	Given  int `json:"approvals_given"`
	// ETag is the ETag of the action while it waits for a decision.
	ETag string `json:"etag,omitzero"`
	// Edited is what people changed in the proposal; nil if nothing.
	Edited *edited `json:"edited,omitempty"`
}

// edited is what people changed in a proposal.
type edited struct {
	By           envelope.Actor  `json:"by"`
	ProposedArgs json.RawMessage `json:"proposed_args"`
	Edits        json.RawMessage `json:"edits"`
}

func decisionFrom(v outbox.View) *decision {
	if v.ApprovalExpiresAt == nil && v.DecidedAt == nil {
		return nil
	}
	d := &decision{
		ExpiresAt: request.UTC(v.ApprovalExpiresAt), At: request.UTC(v.DecidedAt), By: v.DecidedBy, Note: v.DecisionNote,
		Needed: max(v.Review.Needed, 1), Given: v.Review.Given,
	}
	if v.Envelope.Approval == envelope.ApprovalRequired {
		d.ETag = approval.ETag(v)
	}
	if v.Review.EditedBy != "" {
		d.Edited = &edited{By: v.Review.EditedBy, ProposedArgs: v.Review.ProposedArgs, Edits: v.Review.Edits}
	}
	return d
}

// ViewFor returns an action as the API shows it to a caller.
func ViewFor(by identity.Principal, v outbox.View) Action {
	a := ViewOf(v)
	a.Envelope.Args = access.Args(by, a.Envelope.Args)
	if a.Decision != nil && a.Decision.Edited != nil {
		a.Decision.Edited.ProposedArgs = access.Args(by, a.Decision.Edited.ProposedArgs)
	}
	return a
}

// ViewOf returns an action as the API shows it to whoever may see all of it.
func ViewOf(v outbox.View) Action {
	a := Action{
		Envelope: v.Envelope, Phase: v.Phase, Effect: v.Effect,
		Policy:   policyDecision{Mode: v.Mode, Source: v.ModeSource, Trace: v.Trace},
		Decision: decisionFrom(v), NextAttemptAt: request.UTC(v.NextAttemptAt), Waiting: waitingFrom(v),
	}
	stamps := &a.Envelope.Timestamps
	stamps.SentAt, stamps.CompletedAt = request.UTC(stamps.SentAt), request.UTC(stamps.CompletedAt)
	if bytes.Equal(a.Envelope.Result.Output, []byte("null")) {
		a.Envelope.Result.Output = nil
	}
	return a
}

// AttemptsOf returns attempts as the API shows them.
func AttemptsOf(rows []outbox.Attempt) []wire.Attempt {
	return request.Map(rows, func(r outbox.Attempt) wire.Attempt {
		return wire.Attempt{
			Attempt: r.Attempt, Status: r.Status, Code: r.Code, Message: r.Message, Result: r.Result,
			ProviderID: r.ProviderID, Worker: r.Worker, StartedAt: request.UTC(r.StartedAt), FinishedAt: r.FinishedAt.UTC(),
		}
	})
}
