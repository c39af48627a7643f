package inspect

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/triage/plan"
	"github.com/countersign-dev/countersign/internal/visible"
)

// maxMailText bounds the bytes shown of a sender's name, and of a subject.
const maxMailText = 512

// Mail returns the messages that actions of triage are about. Other actions have
// none. Senders chose the texts, which are therefore cut, and otherwise exact.
func Mail(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, actions ...envelope.ActionID) (map[envelope.ActionID]*wire.ActionMail, error) {
	ids := make([]uuid.UUID, len(actions))
	for i, id := range actions {
		ids[i] = uuid.UUID(id)
	}
	rows, err := dbsqlc.New().TriageActionMail(ctx, tx, &dbsqlc.TriageActionMailParams{TenantID: tenant, ActionIds: ids})
	if err != nil {
		return nil, err
	}
	found := make(map[envelope.ActionID]*wire.ActionMail, len(rows))
	for _, r := range rows {
		why, err := storedReason(r.Decision, r.Signals)
		if err != nil {
			return nil, err
		}
		found[r.ActionID] = &wire.ActionMail{
			MessageID: r.MessageID, Account: r.Account, Sender: beginning(r.Sender), SenderName: beginning(r.SenderName),
			Subject: beginning(r.Subject), ReceivedAt: postgres.OrZero(postgres.UTC(&r.ReceivedAt)), Cohort: r.Cohort, Reason: why,
		}
	}
	return found, nil
}

// beginning returns the beginning of a text, with a mark where it was cut.
func beginning(text string) string {
	shown, cut := visible.Cut(text, maxMailText)
	if cut {
		shown += "…"
	}
	return shown
}

// CheckEdit checks arguments that a person wrote in place of those of an action, if
// triage proposed it or its source is a mailbox. The error is an
// *envelope.InvalidError.
func CheckEdit(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, action envelope.ActionID, args json.RawMessage) error {
	rows, err := dbsqlc.New().MailActionArgs(ctx, tx, &dbsqlc.MailActionArgsParams{TenantID: tenant, ActionID: uuid.UUID(action)})
	if err != nil || len(rows) == 0 {
		return err
	}
	if rows[0].Action == string(plan.Tagged) {
		return nil // the tool is any, and its schema holds
	}
	return plan.CheckEdit(plan.Edited{Tool: plan.Tool(rows[0].Tool), Proposed: rows[0].Args, Now: args, Own: rows[0].Own})
}
