package audit

import (
	"context"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// logScan and logItems bound the events that List reads, and the items that it
// returns of each.
const (
	logScan  = 5000
	logItems = 20
)

// List returns a page of the events of a filter, newest first, and the position
// at which the next page begins; zero at the end. It leaves out events that others
// may still precede.
func List(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, f Filter) ([]wire.AuditEvent, Position, error) {
	if f.Until.IsZero() {
		f.Until = endOfTime()
	}
	after, before, err := bounds(ctx, tx, tenant, f.Span, Position{})
	if err != nil {
		return nil, Position{}, err
	}
	if before.Tx < math.MaxUint64 {
		before.Event++ // the event at the end of a checkpoint is among its events
	}
	if f.Before != (Position{}) && f.Before.Compare(before) < 0 {
		before = f.Before
	}
	action := ""
	if f.Action != (envelope.ActionID{}) {
		action = f.Action.String()
	}
	rows, err := dbsqlc.New().EventLog(ctx, tx, &dbsqlc.EventLogParams{
		TenantID: tenant, BeforeTxid: before.Tx, BeforeEvent: before.Event, AfterTxid: after.Tx, AfterEvent: after.Event,
		Kind: string(f.Kind), Actor: f.Actor, Subject: f.Subject, Action: action, FromAt: f.From, UntilAt: f.Until,
		Scan: logScan, Most: int64(f.Most), MostItems: logItems,
	})
	events, next := []wire.AuditEvent{}, Position{}
	for i, r := range rows {
		at := Position{r.Txid, r.EventID}
		if r.Matches {
			events = append(events, wire.AuditEvent{
				Position: at.String(), At: r.At.UTC(), Kind: r.Kind, Actor: envelope.Actor(r.Actor), Items: r.Items, ItemsTotal: r.ItemsCount,
			})
		}
		if !r.Matches || i == f.Most-1 {
			next = at
		}
	}
	return events, next, err
}
