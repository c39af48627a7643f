package calendar

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// claim claims the calendars that no process has tried to read since a time.
func claim(ctx context.Context, tx pgx.Tx, before time.Time) ([]due, error) {
	rows, err := dbsqlc.New().TriageCalendarClaim(ctx, tx, &dbsqlc.TriageCalendarClaimParams{Before: before, Most: most})
	return postgres.Map(rows, err, func(r dbsqlc.TriageCalendarClaimRow) due { return due{r.TenantID, r.AccountID, r.SourceID, r.Zone} })
}

// put stores the events of a calendar, or why it was not read, unless the account has
// another one meanwhile.
func put(ctx context.Context, tx pgx.Tx, d due, events json.RawMessage, problem string) error {
	if problem != "" {
		events = json.RawMessage(`{}`)
	}
	return dbsqlc.New().TriageCalendarPut(ctx, tx, &dbsqlc.TriageCalendarPutParams{TenantID: d.tenant, AccountID: d.account, SourceID: d.source, Zone: d.zone, Events: events, Problem: problem})
}
