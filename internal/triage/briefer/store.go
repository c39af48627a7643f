package briefer

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/triage/account"
)

// lock locks an account for its briefs and returns the database's clock. It reports
// false if another process holds the lock, or the account was changed or paused.
func lock(ctx context.Context, tx pgx.Tx, a account.Account) (now time.Time, ok bool, err error) {
	now, err = dbsqlc.New().TriageBriefLock(ctx, tx, &dbsqlc.TriageBriefLockParams{TenantID: a.Tenant, AccountID: a.ID, Version: a.Version})
	if errors.Is(err, pgx.ErrNoRows) {
		return now, false, nil
	}
	return now, err == nil, err
}

// last returns when the last brief of an account was due, and the end of the time that
// it covers. Before the first brief they are the last change of the account, and zero.
func last(ctx context.Context, tx pgx.Tx, a account.Account) (due, until time.Time, err error) {
	r, err := dbsqlc.New().TriageBriefLast(ctx, tx, &dbsqlc.TriageBriefLastParams{TenantID: a.Tenant, AccountID: a.ID})
	if err != nil || r.Briefs == 0 {
		return a.UpdatedAt, time.Time{}, err
	}
	return r.DueAt, r.UntilAt, nil
}

// propose stores messages and proposes those that are new.
func propose(ctx context.Context, tx pgx.Tx, a account.Account, kind string, due, until time.Time, rows []row) error {
	raw, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	q := dbsqlc.New()
	stored, err := q.TriageBriefInsert(ctx, tx, &dbsqlc.TriageBriefInsertParams{TenantID: a.Tenant, AccountID: a.ID, Kind: kind, DueAt: due, UntilAt: until, Rows: raw})
	if err != nil || len(stored) == 0 {
		return err
	}
	external, envelopes := make([]string, len(stored)), make([][]byte, len(stored))
	for i, s := range stored {
		external[i], envelopes[i] = s.ExternalID, s.Envelope
	}
	ids, err := q.TriageBriefPropose(ctx, tx, envelopes)
	if err != nil {
		return err
	}
	if err := q.TriageBriefProposed(ctx, tx, &dbsqlc.TriageBriefProposedParams{TenantID: a.Tenant, ExternalIds: external, ProposalIds: ids}); err != nil {
		return err
	}
	return q.TriageBriefErase(ctx, tx, &dbsqlc.TriageBriefEraseParams{TenantID: a.Tenant, AccountID: a.ID})
}

// urgent returns the urgent messages that no alert was about, and the number of alerts
// in the window.
func urgent(ctx context.Context, tx pgx.Tx, a account.Account, since, now time.Time) (pending messages, sent int64, err error) {
	rows, err := dbsqlc.New().TriageAlertsUrgent(ctx, tx, &dbsqlc.TriageAlertsUrgentParams{TenantID: a.Tenant, AccountID: a.ID, Since: since, Most: maxUrgent})
	if err != nil || len(rows) == 0 {
		return nil, 0, err
	}
	for _, r := range rows {
		pending = append(pending, wire.TriageBriefMessage{ID: r.MessageID, Sender: r.Sender, SenderName: r.SenderName, Subject: r.Subject})
	}
	sent, err = dbsqlc.New().TriageAlertsSent(ctx, tx, &dbsqlc.TriageAlertsSentParams{TenantID: a.Tenant, AccountID: a.ID, Since: now.Add(-window)})
	return pending, sent, err
}

// alerted records that an alert is about messages.
func alerted(ctx context.Context, tx pgx.Tx, a account.Account, about messages, now time.Time) error {
	ids := make([]uuid.UUID, len(about))
	for i, m := range about {
		ids[i] = m.ID
	}
	return dbsqlc.New().TriageAlerted(ctx, tx, &dbsqlc.TriageAlertedParams{TenantID: a.Tenant, MessageIds: ids, At: now})
}
