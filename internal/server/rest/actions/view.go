package actions

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/preflight"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
)

// Action is an action as the API shows it.
type Action struct {
	Envelope      envelope.Envelope `json:"envelope"`
	Phase         envelope.Phase    `json:"phase"`
	Effect        envelope.Effect   `json:"effect"`
	Policy        policyDecision    `json:"policy"`
	Decision      *decision         `json:"decision"`
	NextAttemptAt *time.Time        `json:"next_attempt_at"`
	Waiting       *waiting          `json:"waiting"`
}

// waiting is what an action waits for.
type waiting struct {
	For     string     `json:"for"`
	Message string     `json:"message"`
	Until   *time.Time `json:"until"`
}

func waitingFrom(v outbox.View) *waiting {
	if v.WaitsFor == "" {
		return nil
	}
	w := &waiting{For: v.WaitsFor, Message: outbox.Explain(v.WaitsFor)}
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
	ExpiresAt *time.Time `json:"expires_at"`
	At        *time.Time `json:"at"`
	By        string     `json:"by"`
	Note      string     `json:"note"`
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
	By           string          `json:"by"`
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

// ViewOf returns an action as the API shows it.
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

// Attempt is one try at calling a tool, as the API shows it.
type Attempt struct {
	Attempt    int             `json:"attempt"`
	Status     envelope.Status `json:"status"`
	Code       string          `json:"code,omitzero"`
	Message    string          `json:"message,omitzero"`
	Result     json.RawMessage `json:"result,omitempty"`
	ProviderID string          `json:"provider_id,omitzero"`
	Worker     string          `json:"worker,omitzero"`
	StartedAt  *time.Time      `json:"started_at"`
	FinishedAt time.Time       `json:"finished_at"`
}

// AttemptsOf returns attempts as the API shows them.
func AttemptsOf(rows []outbox.Attempt) []Attempt {
	all := make([]Attempt, len(rows))
	for i, r := range rows {
		all[i] = Attempt{
			Attempt: r.Attempt, Status: r.Status, Code: r.Code, Message: r.Message, Result: r.Result,
			ProviderID: r.ProviderID, Worker: r.Worker, StartedAt: request.UTC(r.StartedAt), FinishedAt: r.FinishedAt.UTC(),
		}
	}
	return all
}
