package actions

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/visible"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/reversal"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/telemetry"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

func decisionFrom(v outbox.View) *wire.Decision {
	if v.ApprovalExpiresAt == nil && v.DecidedAt == nil {
		return nil
	}
	d := &wire.Decision{
		ExpiresAt: postgres.UTC(v.ApprovalExpiresAt), At: postgres.UTC(v.DecidedAt), By: v.DecidedBy, Note: v.DecisionNote,
		Needed: max(v.Review.Needed, 1), Given: v.Review.Given,
	}
	if v.Envelope.Approval == envelope.ApprovalRequired {
		d.ETag = approval.ETag(v)
	}
	if v.Review.EditedBy != "" {
		d.Edited = &wire.Edited{By: v.Review.EditedBy, ProposedArgs: v.Review.ProposedArgs, Edits: approval.Edits(v)}
	}
	return d
}

// ViewFor returns an action as the API shows it to a caller.
func ViewFor(by identity.Principal, v outbox.View) wire.Action {
	return viewFor(by, v, traces{})
}

func viewFor(by identity.Principal, v outbox.View, decoded traces) wire.Action {
	a := viewOf(v, decoded)
	a.Envelope.Args = access.ArgsOf(by, v.Envelope.ExternalID, a.Envelope.Args)
	if a.Decision != nil && a.Decision.Edited != nil {
		a.Decision.Edited.ProposedArgs = access.ArgsOf(by, v.Envelope.ExternalID, a.Decision.Edited.ProposedArgs)
	}
	return a
}

// AddMail sets the messages that actions of triage are about, where the caller may
// read mail. of returns the action of a row, and the place of its message.
func AddMail[T any](c *request.Call, rows []T, of func(*T) (envelope.ActionID, **wire.ActionMail)) error {
	if len(rows) == 0 || !access.ReadsMail(c.By) {
		return nil
	}
	ids := make([]envelope.ActionID, len(rows))
	for i := range rows {
		ids[i], _ = of(&rows[i])
	}
	found, err := request.Read(c, func(ctx context.Context, tx pgx.Tx) (map[envelope.ActionID]*wire.ActionMail, error) {
		return c.Mail(ctx, tx, c.By.Tenant, ids...)
	})
	for i := range rows {
		id, mail := of(&rows[i])
		*mail = found[id]
	}
	return err
}

// addMail is AddMail for actions of triage among some actions.
func addMail(c *request.Call, rows []wire.Action) error {
	if !slices.ContainsFunc(rows, func(a wire.Action) bool { return strings.HasPrefix(a.Envelope.ExternalID, "triage:") }) {
		return nil
	}
	return AddMail(c, rows, func(a *wire.Action) (envelope.ActionID, **wire.ActionMail) { return a.Envelope.ActionID, &a.Mail })
}

// describe sets the headlines and the look-alikes of actions, from the arguments that the
// caller sees. It reads by inTx.
func describe(inTx func(func(ctx context.Context, tx pgx.Tx) error) error, by identity.Principal, snap *settings.Settings, rows []wire.Action) error {
	for i := range rows {
		rows[i].Headline = headlineOf(snap, rows[i])
	}
	return access.MarkLookalikes(inTx, by, snap, rows)
}

// headlineOf returns one line about the arguments that the caller sees.
func headlineOf(snap *settings.Settings, a wire.Action) string {
	tool := a.Envelope.Tool
	return snap.Headline(policy.Key{Source: tool.Source, Action: tool.Name}, a.Envelope.Args)
}

// Summary returns an action as lists of summaries show it.
func Summary(a wire.Action) wire.Action {
	var cut bool
	a.Envelope.Args, a.ArgsPreview, cut = visible.Summary(a.Envelope.Args)
	a.ArgsCut, a.Policy.Trace = &cut, []wire.PolicyStep{}
	a.Envelope.Result.Output = visible.Short(a.Envelope.Result.Output, nil)
	if a.Decision != nil && a.Decision.Edited != nil {
		a.Decision.Edited.ProposedArgs = visible.Short(a.Decision.Edited.ProposedArgs, json.RawMessage("{}"))
	}
	return a
}

// traces are decoded traces of policy, by their text: most actions of a page have
// the same.
type traces map[string][]policy.Step

func (t traces) steps(trace json.RawMessage) []policy.Step {
	steps, ok := t[string(trace)]
	if !ok {
		steps = policy.Steps(trace)
		t[string(trace)] = steps
	}
	return steps
}

// ViewOf returns an action as the API shows it to callers who may see all of it.
func ViewOf(v outbox.View) wire.Action { return viewOf(v, traces{}) }

func viewOf(v outbox.View, decoded traces) wire.Action {
	a := wire.Action{
		Envelope: v.Envelope, Phase: v.Phase, Effect: v.Effect,
		Policy:   wire.PolicyDecision{Mode: v.Mode, Source: v.ModeSource, Trace: decoded.steps(v.Trace)},
		Decision: decisionFrom(v), NextAttemptAt: postgres.UTC(v.NextAttemptAt), Waiting: v.Waiting(),
		Reverts: reversal.Reverts(v.Envelope.ExternalID), TraceID: telemetry.TraceID(v.Traceparent),
	}
	if r, ok := settings.RepeatOf(v.Envelope.AutomationID, v.Envelope.ExternalID); ok {
		a.Resends = &r.Of
	}
	if r := v.RevertedBy; r != nil {
		a.RevertedBy = &wire.Reverted{ActionID: r.Action, Phase: r.Phase}
	}
	stamps := &a.Envelope.Timestamps
	stamps.SentAt, stamps.CompletedAt = postgres.UTC(stamps.SentAt), postgres.UTC(stamps.CompletedAt)
	if bytes.Equal(a.Envelope.Result.Output, []byte("null")) {
		a.Envelope.Result.Output = nil
	}
	return a
}
