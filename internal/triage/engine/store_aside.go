package engine

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// loadAside reads which messages were set aside, and which of them a person asked
// for.
func (r *run) loadAside(ctx context.Context, tx pgx.Tx) error {
	rows, err := dbsqlc.New().TriageSetAsideOf(ctx, tx, &dbsqlc.TriageSetAsideOfParams{TenantID: r.tenant(), AccountID: r.account.ID, Most: maxAside})
	r.aside, r.readAgain = map[mailbox.Location]bool{}, map[string][]mailbox.Item{}
	for _, row := range rows {
		at := mailbox.Location{Folder: row.Folder, Key: row.Key}
		if row.Again {
			r.readAgain[row.Folder] = append(r.readAgain[row.Folder], mailbox.Item{Location: at, Received: row.ReceivedAt, Size: row.Size})
		} else if row.Key != "" {
			r.aside[at] = true
		}
	}
	return err
}

func putAside(ctx context.Context, tx pgx.Tx, r *run, f mailbox.Folder, rows []asideRow) error {
	return inserted(rows, func(raw []byte) error {
		return dbsqlc.New().TriageSetAsidePut(ctx, tx, &dbsqlc.TriageSetAsidePutParams{TenantID: r.tenant(), AccountID: r.account.ID, Folder: f.Name, Rows: raw})
	})
}

// countSkipped adds messages that were set aside to the row of a pass.
func countSkipped(ctx context.Context, tx pgx.Tx, p *pass, n int) error {
	return dbsqlc.New().TriageRunCount(ctx, tx, &dbsqlc.TriageRunCountParams{
		TenantID: p.tenant(), AccountID: p.account.ID, RunID: p.id, Kind: string(p.kind), Skipped: int32(n),
	})
}

// clearAside removes what was set aside of a folder: at locations that are empty by
// now, or with every everything.
func clearAside(ctx context.Context, tx pgx.Tx, r *run, folder string, keys []string, every bool) error {
	return dbsqlc.New().TriageSetAsideClear(ctx, tx, &dbsqlc.TriageSetAsideClearParams{
		TenantID: r.tenant(), AccountID: r.account.ID, Folder: folder, Keys: append([]string{}, keys...), Every: every,
	})
}

// clearAsked removes what a person asked for in a folder, and what was not set
// aside anew.
func clearAsked(ctx context.Context, tx pgx.Tx, r *run, folder string) error {
	return dbsqlc.New().TriageSetAsideClear(ctx, tx, &dbsqlc.TriageSetAsideClearParams{
		TenantID: r.tenant(), AccountID: r.account.ID, Folder: folder, Keys: []string{}, Asked: true,
	})
}

// latest returns the newest messages of a folder that were read before.
func latest(ctx context.Context, tx pgx.Tx, r *run, folder string) ([]mailbox.Item, error) {
	rows, err := dbsqlc.New().TriageLocationsLatest(ctx, tx, &dbsqlc.TriageLocationsLatestParams{
		TenantID: r.tenant(), AccountID: r.account.ID, Folder: folder, Most: controls,
	})
	return postgres.Map(rows, err, func(row dbsqlc.TriageLocationsLatestRow) mailbox.Item {
		return mailbox.Item{Location: mailbox.Location{Folder: row.Folder, Key: row.Key}, Received: row.ReceivedAt, Size: row.Size}
	})
}
