package outbox

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/preflight"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// View is an envelope in its present state, with its decision.
type View struct {
	Envelope   envelope.Envelope
	Phase      envelope.Phase
	Effect     envelope.Effect
	Mode       envelope.Mode
	ModeSource string
	Trace      json.RawMessage
	// ToolDigest is of the tool's definition when it was proposed.
	ToolDigest []byte
	// ProposedBy is the token that submitted it; nil when it came from inside.
	ProposedBy *uuid.UUID
	// ApprovalExpiresAt is set while, and after, it waits for a decision.
	ApprovalExpiresAt *time.Time
	DecidedAt         *time.Time
	DecidedBy         envelope.Actor
	DecisionNote      string
	// DecisionID identifies the policy decision.
	DecisionID uuid.UUID
	// Review is the progress of its approval.
	Review Review
	// AttemptStartedAt and AttemptFinishedAt are of the last attempt of an envelope
	// that ended, with any outcome; AttemptStartedAt is nil where it ended
	// without one.
	AttemptStartedAt, AttemptFinishedAt *time.Time
	// NextAttemptAt is set while it is on the schedule.
	NextAttemptAt *time.Time
	// WaitsFor is the reason why the envelope waits, in one word: approval, the code
	// of a gate, bucket, retry, not_before, or its turn; empty if it does not wait.
	// WaitsUntil is the earliest end of the wait; zero if unknown.
	WaitsFor   string
	WaitsUntil time.Time
	// RevertedBy is its latest reversal, or nil.
	RevertedBy *Reversal
	// Traceparent names the span that proposed it; empty if none did.
	Traceparent string
}

// Reversal is an action that reverts another, and its state.
type Reversal struct {
	Action envelope.ActionID
	Phase  envelope.Phase
}

// Waiting returns the reason why the envelope waits; nil if it does not. A pause has no
// known end.
func (v View) Waiting() *wire.Waiting {
	if v.WaitsFor == "" {
		return nil
	}
	w := &wire.Waiting{For: v.WaitsFor, Message: Explain(v.WaitsFor)}
	if !v.WaitsUntil.IsZero() && v.WaitsFor != preflight.CodePaused {
		w.Until = &v.WaitsUntil
	}
	return w
}

// Review is the progress of an approval.
type Review struct {
	// Needed and Given count approvals; Needed is zero if no approval was
	// required.
	Needed, Given int
	// Round goes up when the subject of the decision changes.
	Round int
	// ProposedArgs are the agent's arguments, if a person edited them; the
	// envelope has the ones to be sent.
	ProposedArgs json.RawMessage
	// EditedBy is the latest editor, and Edits a JSON array of every edit.
	EditedBy envelope.Actor
	Edits    json.RawMessage
}

// Get returns the envelopes of those ids that exist, in no order.
func Get(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, actions ...envelope.ActionID) ([]View, error) {
	views, err := readViews(ctx, tx, tenant, actions)
	if err == nil {
		err = setPhases(ctx, tx, tenant, views)
	}
	return views, err
}

// readViews returns envelopes with their latest reversals. The phases of the reversals
// are left to setPhases.
func readViews(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, actions []envelope.ActionID) ([]View, error) {
	rows, err := dbsqlc.New().EnvelopePerID(ctx, tx, &dbsqlc.EnvelopePerIDParams{TenantID: tenant, ActionIds: postgres.UUIDs(actions)})
	return postgres.Map(rows, err, viewFromRow)
}

// reversals returns the reversals of envelopes that readViews returned.
func reversals(views []View) (ids []uuid.UUID) {
	for i := range views {
		if r := views[i].RevertedBy; r != nil {
			ids = append(ids, uuid.UUID(r.Action))
		}
	}
	return ids
}

// setPhases sets the phases of the reversals of envelopes.
func setPhases(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, views []View) error {
	ids := reversals(views)
	if len(ids) == 0 {
		return nil
	}
	rows, err := dbsqlc.New().EnvelopePhasePerID(ctx, tx, &dbsqlc.EnvelopePhasePerIDParams{TenantID: tenant, ActionIds: ids})
	if err != nil {
		return err
	}
	phases := make(map[envelope.ActionID]envelope.Phase, len(rows))
	for _, r := range rows {
		phases[r.ActionID] = envelope.Phase(r.Phase)
	}
	for i := range views {
		if r := views[i].RevertedBy; r != nil {
			r.Phase = phases[r.Action]
		}
	}
	return nil
}

// Attempts returns the attempts of an action, oldest first.
func Attempts(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, action envelope.ActionID) ([]wire.Attempt, error) {
	rows, err := dbsqlc.New().ToolExecutionList(ctx, tx, &dbsqlc.ToolExecutionListParams{TenantID: tenant, ActionID: action})
	return postgres.Map(rows, err, func(r dbsqlc.ToolExecutionListRow) wire.Attempt {
		return wire.Attempt{
			Attempt: int(r.Attempt), Status: envelope.Status(r.Status), Code: postgres.OrZero(r.Code), Message: postgres.OrZero(r.Message),
			Result: r.Result, ProviderID: postgres.OrZero(r.ProviderID), Worker: postgres.OrZero(r.Worker), StartedAt: postgres.UTC(r.StartedAt), FinishedAt: r.FinishedAt.UTC(),
		}
	})
}

func viewFromRow(r dbsqlc.EnvelopePerIDRow) View {
	v := View{
		Envelope: envelope.Envelope{
			Version: envelope.SchemaVersion, ActionID: r.ActionID, ExternalID: postgres.OrZero(r.ExternalID),
			TenantID: r.TenantID, Type: envelope.TypeExec,
			Tool: envelope.Tool{Name: r.ToolName, Source: r.SourceID, ComposioApp: postgres.OrZero(r.ComposioApp)},
			Args: r.Args, Risk: envelope.Risk(r.Risk), Approval: envelope.Approval(r.ApprovalState),
			EmployeeID: postgres.OrZero(r.EmployeeID), SessionID: postgres.OrZero(r.SessionID), AutomationID: postgres.OrZero(r.AutomationID),
			Constraints: envelope.Constraints{RateBucket: postgres.OrZero(r.RateBucket), MustRunBefore: utcOrZero(r.MustRunBefore), NotBefore: utcOrZero(r.NotBefore), Urgent: r.Urgent},
			Result: envelope.Result{
				Status: envelope.Status(r.Status), ProviderID: r.ProviderID, Output: r.Result, Attempts: int(r.Attempt),
			},
			Timestamps: envelope.Timestamps{CreatedAt: r.CreatedAt.UTC()},
		},
		Effect: envelope.Effect(r.Effect), Mode: envelope.Mode(r.Mode), ModeSource: r.ModeSource, Trace: r.Trace, ToolDigest: r.ToolDigest,
		ProposedBy: r.ProposedBy, ApprovalExpiresAt: r.ApprovalExpiresAt, DecidedAt: r.DecidedAt,
		DecidedBy: envelope.Actor(postgres.OrZero(r.DecidedBy)), DecisionNote: postgres.OrZero(r.DecisionNote), NextAttemptAt: r.NextAttemptAt,
		WaitsFor: r.WaitsFor, WaitsUntil: utcOrZero(&r.WaitsUntil), DecisionID: r.DecisionID, Traceparent: postgres.OrZero(r.Traceparent),
		Review: Review{
			Needed: int(r.ApprovalsNeeded), Given: int(r.ApprovalsGiven), Round: int(r.ApprovalRound),
			ProposedArgs: r.ProposedArgs, EditedBy: envelope.Actor(r.EditedBy), Edits: r.Edits,
		},
	}
	e := &v.Envelope
	if code := postgres.OrZero(r.Code); code != "" {
		e.Result.Error = &envelope.Failure{Code: code, Message: postgres.OrZero(r.Message)}
	}
	if r.ReversalID != uuid.Nil {
		v.RevertedBy = &Reversal{Action: envelope.ActionID(r.ReversalID)}
	}
	if envelope.Ended(e.Result.Status) {
		v.AttemptStartedAt, v.AttemptFinishedAt = postgres.UTC(r.StartedAt), postgres.UTC(r.FinishedAt)
	}
	switch status := e.Result.Status; {
	case status == envelope.StatusSent || status == envelope.StatusConflict:
		e.Timestamps.SentAt, e.Timestamps.CompletedAt = r.StartedAt, r.FinishedAt
	case envelope.Terminal(status):
		e.Timestamps.CompletedAt = r.FinishedAt
		e.Timestamps.CompletedAt = cmp.Or(e.Timestamps.CompletedAt, r.DecidedAt)
	}
	v.Phase = envelope.PhaseOf(e.Approval, e.Result.Status, postgres.OrZero(r.Code))
	return v
}

func utcOrZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// CodeUndone is the code of an envelope that was undone before it was sent.
const CodeUndone = envelope.CodeUndone

// Undo cancels an envelope that cannot have been sent yet, whether it is
// pending or scheduled. fault.Conflict means that it is too late, and its
// message is the current state.
func Undo(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, action envelope.ActionID, actor envelope.Actor) error {
	deleted, err := withdraw(ctx, tx, tenant, action, actor)
	if err != nil {
		return err
	}
	if !deleted {
		views, err := Get(ctx, tx, tenant, action)
		if err != nil {
			return err
		}
		if len(views) == 0 {
			return fault.New(fault.NotFound, "no action %s", action)
		}
		return views[0].cannotUndo()
	}
	return audit.Write(ctx, tx, audit.Event{
		Tenant: tenant, Kind: audit.Undone, Actor: actor,
		Items: []audit.Item{{Action: action, Status: envelope.StatusSkipped, Code: CodeUndone}},
	})
}

// cannotUndo returns why an envelope was not undone.
func (v *View) cannotUndo() error {
	id := v.Envelope.ActionID
	switch v.Phase {
	case envelope.PhaseUndone:
		return fault.New(fault.Conflict, "action %s is already undone: %s", id, v.Outcome())
	case envelope.PhaseCompleted:
		return fault.New(fault.Conflict, "action %s cannot be undone: %s; revert it instead (countersign revert)", id, v.Outcome())
	case envelope.PhasePending, envelope.PhaseApproved:
		// The class has no start mark, and the row is leased or had an attempt without
		// an answer.
		return fault.Coded(wire.CodeMayHaveHappened, fault.Conflict, "action %s cannot be undone: its call may be running, or may have had its effect", id)
	case envelope.PhaseExecuting, envelope.PhaseDenied, envelope.PhaseExpired, envelope.PhaseFailed, envelope.PhaseSkipped, envelope.PhaseUnknown:
	}
	return fault.New(fault.Conflict, "action %s cannot be undone: %s", id, v.Outcome())
}

// Outcome returns the state of the envelope for messages.
func (v *View) Outcome() envelope.Outcome {
	return envelope.Outcome{
		Phase: v.Phase, Mode: v.Mode, DecidedBy: v.DecidedBy, DecidedAt: v.DecidedAt, Note: v.DecisionNote, ExpiresAt: v.ApprovalExpiresAt,
		Failure: v.Envelope.Result.Error, EndedAt: v.Envelope.Timestamps.CompletedAt,
	}
}

// CheckUndecided returns the reason why the envelope can no longer be decided at a
// time, or nil while it is pending.
func (v *View) CheckUndecided(now time.Time) error {
	o, id := v.Outcome(), v.Envelope.ActionID
	if o.Phase == envelope.PhasePending && o.ExpiresAt != nil && !o.ExpiresAt.After(now) {
		o.Phase = envelope.PhaseExpired // though no sweep has stored that yet
	}
	switch o.Phase {
	case envelope.PhasePending:
		return nil
	case envelope.PhaseExpired:
		return fault.Coded(wire.CodeExpired, fault.Gone, "the time to decide about action %s is over: %s", id, o)
	case envelope.PhaseApproved, envelope.PhaseExecuting, envelope.PhaseCompleted, envelope.PhaseDenied, envelope.PhaseFailed,
		envelope.PhaseSkipped, envelope.PhaseUndone, envelope.PhaseUnknown:
	}
	return fault.Coded(wire.CodeDecided, fault.Conflict, "action %s does not wait for a decision: %s", id, o)
}
