package reader

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/lease"
	"github.com/countersign-dev/countersign/internal/triage/plan"
)

// dueAgain returns the messages that are due to be decided again.
func (r *Reader) dueAgain(ctx context.Context, tx pgx.Tx) ([]Stored, error) {
	ids, err := dbsqlc.New().TriageDecisionsDue(ctx, tx, &dbsqlc.TriageDecisionsDueParams{TenantID: r.lease.Tenant, AccountID: r.lease.Account.ID, Most: chunkItems})
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return r.Stored(ctx, tx, ids)
}

// Stored returns messages with the input for deciding them again.
func (r *Reader) Stored(ctx context.Context, tx pgx.Tx, ids []uuid.UUID) (due []Stored, err error) {
	rows, err := dbsqlc.New().TriageDecisionsOf(ctx, tx, &dbsqlc.TriageDecisionsOfParams{TenantID: r.lease.Tenant, MessageIds: ids})
	for _, row := range rows {
		d := Stored{
			ID: row.MessageID, thread: row.ThreadID, identity: string(row.Identity), reason: reason(row.Reason),
			earlier: decide.Earlier{Touched: row.TouchedAt != nil}, judged: row.Judged, list: row.List, folder: mailbox.Folder{Name: row.Folder, Use: mailbox.Use(row.Use)},
			item: mailbox.Item{
				Location: mailbox.Location{Folder: row.Folder, Key: row.Key}, Flags: row.Flags, Received: row.ReceivedAt, Size: row.Size,
			},
		}
		for _, action := range row.Undone {
			d.earlier.Undone = append(d.earlier.Undone, decide.Action(action))
		}
		err := errors.Join(json.Unmarshal(row.Proposed, &d.proposed), json.Unmarshal(row.Answers, &d.answers.Replies), json.Unmarshal(row.Decision, &d.Decision),
			json.Unmarshal(row.Signals, &d.Found))
		if err != nil {
			return nil, err
		}
		due = append(due, d)
	}
	return due, err
}

// The outcomes of an action, as the database writes them: a person's decision,
// or none in time.
const (
	outcomeApproved = "approved"
	outcomeDenied   = "denied"
	outcomeUndone   = "undone"
	outcomeReverted = "reverted"
	outcomeExpired  = "expired"
)

// outcomes counts the outcomes of proposals: all of them, those that expired
// without a decision, and those that were proposed again.
type outcomes struct{ taken, expired, repeated int }

// takeOutcomes records the outcomes of proposals for messages and senders, and
// repeats once the proposals that expired without a decision.
func takeOutcomes(ctx context.Context, tx pgx.Tx, l *lease.Lease, run *Run) (o outcomes, err error) {
	rows, err := dbsqlc.New().TriageOutcomesTake(ctx, tx, &dbsqlc.TriageOutcomesTakeParams{TenantID: l.Tenant, AccountID: l.Account.ID, Most: maxOutcomes})
	if err != nil || len(rows) == 0 {
		return o, err
	}
	undone := map[uuid.UUID][]string{}
	var counts []outcomeRow
	var expired []string
	for _, row := range rows {
		if decide.Action(row.Action) == plan.Tagged {
			continue // a tag is no sign of the sender
		}
		switch row.Outcome {
		case outcomeApproved:
			counts = append(counts, outcomeRow{Message: row.MessageID, Accepted: 1})
		case outcomeDenied, outcomeUndone, outcomeReverted:
			// A move that the owner reversed in the mailbox counted already.
			brought := row.Outcome == outcomeReverted && slices.Contains([]decide.Action{decide.Archive, decide.Quarantine, decide.Trash}, decide.Action(row.Action)) && slices.Contains(row.Undone, row.Action)
			if !brought {
				counts = append(counts, outcomeRow{Message: row.MessageID, Refused: 1})
			}
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
	if err := errors.Join(touch(ctx, tx, l, touched), countOutcomes(ctx, tx, l, counts)); err != nil {
		return o, err
	}
	repeated, err := repeat(ctx, tx, l, run, expired)
	return outcomes{taken: len(rows), expired: len(expired), repeated: repeated}, err
}

// repeat proposes expired actions once more, unless the account no longer
// proposes anything. It returns how many.
func repeat(ctx context.Context, tx pgx.Tx, l *lease.Lease, run *Run, expired []string) (int, error) {
	if len(expired) == 0 || !l.Account.Proposes() {
		return 0, nil
	}
	rows, err := dbsqlc.New().TriageProposalsRepeat(ctx, tx, &dbsqlc.TriageProposalsRepeatParams{TenantID: l.Tenant, AccountID: l.Account.ID, RunID: run.id, ExternalIds: expired})
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	if err := proposeAll(ctx, tx, l, rows); err != nil {
		return 0, err
	}
	return len(rows), count(ctx, tx, l, run, runCounts{proposed: len(rows)})
}

// countOutcomes adds outcomes to the statistics of senders.
func countOutcomes(ctx context.Context, tx pgx.Tx, l *lease.Lease, rows []outcomeRow) error {
	return inserted(rows, func(raw []byte) error {
		return dbsqlc.New().TriageOutcomesCount(ctx, tx, &dbsqlc.TriageOutcomesCountParams{TenantID: l.Tenant, Rows: raw})
	})
}

// decideAgain schedules messages to be decided again for a reason, or
// unschedules them if it is empty.
func decideAgain(ctx context.Context, tx pgx.Tx, l *lease.Lease, ids []uuid.UUID, cause reason) error {
	return dbsqlc.New().TriageDecisionsAgain(ctx, tx, &dbsqlc.TriageDecisionsAgainParams{TenantID: l.Tenant, Reason: string(cause), MessageIds: ids})
}

// decidedAgain unschedules the messages that could not be decided again, and
// drops their questions.
func decidedAgain(ctx context.Context, tx pgx.Tx, l *lease.Lease, ids []uuid.UUID, decided map[uuid.UUID]bool) error {
	var failed []uuid.UUID
	for _, id := range ids {
		if !decided[id] {
			failed = append(failed, id)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return errors.Join(decideAgain(ctx, tx, l, failed, ""), dropQuestions(ctx, tx, l, failed))
}

// dropQuestions drops the open questions about messages.
func dropQuestions(ctx context.Context, tx pgx.Tx, l *lease.Lease, ids []uuid.UUID) error {
	if len(ids) == 0 {
		return nil
	}
	return dbsqlc.New().TriageQuestionsDrop(ctx, tx, &dbsqlc.TriageQuestionsDropParams{TenantID: l.Tenant, MessageIds: ids})
}

// askTexts requests texts about messages on behalf of the account.
func askTexts(ctx context.Context, tx pgx.Tx, l *lease.Lease, messages []uuid.UUID, kinds []string) error {
	return dbsqlc.New().TriageTextWanted(ctx, tx, &dbsqlc.TriageTextWantedParams{
		TenantID: l.Tenant, AccountID: l.Account.ID, AskedBy: "triage", MessageIds: messages, Kinds: kinds,
	})
}
