package account

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// purgeRows limits the messages, and the rows of each other table, that one
// transaction of a purge erases.
const purgeRows = 500

// Held counts the data of triage about an account, as the dry run of Purge.
func Held(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, name string) (wire.TriagePurge, error) {
	a, err := Get(ctx, tx, tenant, name)
	if err != nil {
		return wire.TriagePurge{}, err
	}
	p, err := held(ctx, tx, tenant, a.ID)
	p.Account, p.DryRun = name, true
	return p, err
}

func held(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, account uuid.UUID) (wire.TriagePurge, error) {
	r, err := dbsqlc.New().TriagePurgeCount(ctx, tx, &dbsqlc.TriagePurgeCountParams{TenantID: tenant, AccountID: account})
	return wire.TriagePurge{
		Rows: wire.TriageRows{
			Messages: r.Messages, References: r.Refs, Locations: r.Locations, Decisions: r.Decisions, Corrections: r.Corrections, Proposals: r.Proposals,
			Texts: r.Texts, Senders: r.Senders, SetAside: r.SetAside, Folders: r.Folders, Runs: r.Runs,
			Tags: r.Tags, Tries: r.Tries, Labels: r.Labels,
		},
		Open: r.Open, Recorded: r.Actions, RecordedTexts: r.ActionsWithText,
	}, err
}

// Purge erases a set of the data of triage about an account, and returns the number
// of rows. The account stays. Messages come first; Done reports that nothing is left.
// A message with an open action is kept, so that pauses go on to cover the action.
// If the account is read, the error is fault.Conflict. It is for api only.
func Purge(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, name string) (wire.TriagePurge, error) {
	p, q := wire.TriagePurge{Account: name}, dbsqlc.New()
	a, err := q.TriagePurgeHold(ctx, tx, &dbsqlc.TriagePurgeHoldParams{TenantID: tenant, Name: name})
	switch {
	case err != nil:
		return p, postgres.Found(err, errNone(name))
	case !a.Stopped:
		return p, fault.New(fault.Conflict, "triage reads the account %s; stop it and end its pending actions first: countersign kill --automation triage/%s", name, name)
	case a.Running:
		return p, fault.New(fault.Conflict, "a run of the account %s has not ended; ask again in a few seconds", name)
	}
	m, err := q.TriagePurgeMessages(ctx, tx, &dbsqlc.TriagePurgeMessagesParams{TenantID: tenant, AccountID: a.AccountID, Most: purgeRows})
	if err != nil {
		return p, err
	}
	p.Rows = wire.TriageRows{
		Messages: m.Messages, References: m.Refs, Locations: m.Locations, Decisions: m.Decisions, Corrections: m.Corrections, Proposals: m.Proposals, Texts: m.Texts,
		Tags: m.Tags, Tries: m.Tries,
	}
	switch {
	case m.More && m.Messages == 0:
		left, err := held(ctx, tx, tenant, a.AccountID)
		p.Open = left.Open
		return p, err
	case m.More:
		return p, nil
	}
	o, err := q.TriagePurgeOthers(ctx, tx, &dbsqlc.TriagePurgeOthersParams{TenantID: tenant, AccountID: a.AccountID, Most: purgeRows})
	if err != nil {
		return p, err
	}
	p.Rows.Senders, p.Rows.SetAside, p.Rows.Folders, p.Rows.Runs, p.Rows.Labels = o.Senders, o.SetAside, o.Folders, o.Runs, o.Labels
	if p.Done = max(o.Senders, o.SetAside, o.Folders, o.Runs) < purgeRows; !p.Done {
		return p, nil
	}
	return p, q.TriagePurgeSchedule(ctx, tx, &dbsqlc.TriagePurgeScheduleParams{TenantID: tenant, AccountID: a.AccountID})
}
