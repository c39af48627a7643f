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
			earlier: decide.Earlier{Touched: row.TouchedAt != nil}, judged: row.Judged, list: row.List, folder: mailbox.Folder{Name: row.Folder, Use: mailbox.Use(row.Use)},
			item: mailbox.Item{
				Location: mailbox.Location{Folder: row.Folder, Key: row.Key}, Flags: row.Flags, Received: row.ReceivedAt, Size: row.Size,
			},
		}
		for _, action := range row.Undone {
			d.earlier.Undone = append(d.earlier.Undone, decide.Action(action))
		}
		err := errors.Join(json.Unmarshal(row.Proposed, &d.proposed), json.Unmarshal(row.Answers, &d.replies), json.Unmarshal(row.Decision, &d.last),
			json.Unmarshal(row.Signals, &d.found))
		if err != nil {
			return nil, err
		}
		due = append(due, d)
	}
	return due, err
}

// What became of an action, as the database writes it: what a person did to it, or
// that nobody did in time.
const (
	outcomeApproved = "approved"
	outcomeDenied   = "denied"
	outcomeUndone   = "undone"
	outcomeReverted = "reverted"
	outcomeExpired  = "expired"
)

// outcomes is what became of proposals since the last time: how many there were,
// how many expired without a decision, and how many of those are proposed again.
type outcomes struct{ taken, expired, repeated int }

// takeOutcomes records what people did to proposals, for the messages and for their
// senders, and proposes once more what expired without a decision.
func takeOutcomes(ctx context.Context, tx pgx.Tx, p *pass) (o outcomes, err error) {
	rows, err := dbsqlc.New().TriageOutcomesTake(ctx, tx, &dbsqlc.TriageOutcomesTakeParams{TenantID: p.tenant(), AccountID: p.account.ID, Most: maxOutcomes})
	if err != nil || len(rows) == 0 {
		return o, err
	}
	undone := map[uuid.UUID][]string{}
	var counts []outcomeRow
	var expired []string
	for _, row := range rows {
		switch row.Outcome {
		case outcomeApproved:
			counts = append(counts, outcomeRow{Message: row.MessageID, Accepted: 1})
		case outcomeDenied, outcomeUndone, outcomeReverted:
			counts = append(counts, outcomeRow{Message: row.MessageID, Refused: 1})
			var parts []plan.Part
			if err := json.Unmarshal(row.Parts, &parts); err != nil {
				return o, err
			}
			for _, part := range parts {
				undone[row.MessageID] = append(undone[row.MessageID], string(part.Action))
			}
		case outcomeExpired:
			expired = append(expired, row.ExternalID)
		}
	}
	var touched []touchedRow
	for id, actions := range undone {
		touched = append(touched, touchedRow{Message: id, Undone: actions})
	}
	if err := errors.Join(touch(ctx, tx, p.run, touched), countOutcomes(ctx, tx, p.run, counts)); err != nil {
		return o, err
	}
	repeated, err := repeat(ctx, tx, p, expired)
	return outcomes{taken: len(rows), expired: len(expired), repeated: repeated}, err
}

// repeat proposes once more what expired, unless the account proposes nothing any
// more, and returns how much of it.
func repeat(ctx context.Context, tx pgx.Tx, p *pass, expired []string) (int, error) {
	if len(expired) == 0 || !p.account.Proposes() {
		return 0, nil
	}
	rows, err := dbsqlc.New().TriageProposalsRepeat(ctx, tx, &dbsqlc.TriageProposalsRepeatParams{TenantID: p.tenant(), AccountID: p.account.ID, ExternalIds: expired})
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	envelopes, external := make([][]byte, len(rows)), make([]string, len(rows))
	for i, r := range rows {
		envelopes[i], external[i] = r.Envelope, r.ExternalID
	}
	if err := proposeAll(ctx, tx, p.run, envelopes, external); err != nil {
		return 0, err
	}
	return len(rows), dbsqlc.New().TriageRunCount(ctx, tx, &dbsqlc.TriageRunCountParams{
		TenantID: p.tenant(), AccountID: p.account.ID, RunID: p.id, Kind: string(p.kind), Proposed: int32(len(rows)),
	})
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
