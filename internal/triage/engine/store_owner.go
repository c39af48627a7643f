package engine

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/plan"
)

// dueAgain returns messages that are to be decided again.
func dueAgain(ctx context.Context, tx pgx.Tx, r *run) ([]dueMessage, error) {
	ids, err := dbsqlc.New().TriageDecisionsDue(ctx, tx, &dbsqlc.TriageDecisionsDueParams{TenantID: r.tenant(), AccountID: r.account.ID, Most: chunkItems})
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return dueMessages(ctx, tx, r, ids)
}

// dueMessages returns messages with what deciding about them again depends on.
func dueMessages(ctx context.Context, tx pgx.Tx, r *run, ids []uuid.UUID) (due []dueMessage, err error) {
	rows, err := dbsqlc.New().TriageDecisionsOf(ctx, tx, &dbsqlc.TriageDecisionsOfParams{TenantID: r.tenant(), MessageIds: ids})
	for _, row := range rows {
		d := dueMessage{
			id: row.MessageID, thread: row.ThreadID, identity: string(row.Identity), reason: reason(row.Reason),
			earlier: decide.Earlier{Touched: row.TouchedAt != nil}, folder: mailbox.Folder{Name: row.Folder, Use: mailbox.Use(row.Use)},
			item: mailbox.Item{
				Location: mailbox.Location{Folder: row.Folder, Key: row.Key}, Flags: row.Flags, Received: row.ReceivedAt, Size: row.Size,
			},
		}
		for _, action := range row.Undone {
			d.earlier.Undone = append(d.earlier.Undone, decide.Action(action))
		}
		if err := errors.Join(json.Unmarshal(row.Proposed, &d.proposed), json.Unmarshal(row.Answers, &d.replies)); err != nil {
			return nil, err
		}
		due = append(due, d)
	}
	return due, err
}

// What a person did to an action, as the database writes it.
const (
	outcomeApproved = "approved"
	outcomeDenied   = "denied"
	outcomeUndone   = "undone"
	outcomeReverted = "reverted"
)

// takeOutcomes records what people did to proposals since the last time, for the
// messages and for their senders, and returns how many proposals that were.
func takeOutcomes(ctx context.Context, tx pgx.Tx, r *run) (int, error) {
	rows, err := dbsqlc.New().TriageOutcomesTake(ctx, tx, &dbsqlc.TriageOutcomesTakeParams{TenantID: r.tenant(), AccountID: r.account.ID, Most: maxOutcomes})
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	undone := map[uuid.UUID][]string{}
	counts := make([]outcomeRow, len(rows))
	for i, row := range rows {
		counts[i] = outcomeRow{Message: row.MessageID}
		switch row.Outcome {
		case outcomeApproved:
			counts[i].Accepted = 1
		case outcomeDenied, outcomeUndone, outcomeReverted:
			counts[i].Refused = 1
			var parts []plan.Part
			if err := json.Unmarshal(row.Parts, &parts); err != nil {
				return 0, err
			}
			for _, part := range parts {
				undone[row.MessageID] = append(undone[row.MessageID], string(part.Action))
			}
		}
	}
	var touched []touchedRow
	for id, actions := range undone {
		touched = append(touched, touchedRow{Message: id, Undone: actions})
	}
	if err := touch(ctx, tx, r, touched); err != nil {
		return 0, err
	}
	return len(rows), countOutcomes(ctx, tx, r, counts)
}

// countOutcomes adds to what is known of the senders of messages.
func countOutcomes(ctx context.Context, tx pgx.Tx, r *run, rows []outcomeRow) error {
	return inserted(rows, func(raw []byte) error {
		return dbsqlc.New().TriageOutcomesCount(ctx, tx, &dbsqlc.TriageOutcomesCountParams{TenantID: r.tenant(), Rows: raw})
	})
}

// decideAgain has messages decided again for a reason; without one they stay as
// they were decided.
func decideAgain(ctx context.Context, tx pgx.Tx, r *run, ids []uuid.UUID, why reason) error {
	return dbsqlc.New().TriageDecisionsAgain(ctx, tx, &dbsqlc.TriageDecisionsAgainParams{TenantID: r.tenant(), Reason: string(why), MessageIds: ids})
}

// readAll records that all folders were looked at.
func readAll(ctx context.Context, tx pgx.Tx, r *run) error {
	return dbsqlc.New().TriageScheduleRead(ctx, tx, &dbsqlc.TriageScheduleReadParams{TenantID: r.tenant(), AccountID: r.account.ID, Holder: &r.holder})
}
