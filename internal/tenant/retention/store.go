package retention

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// List returns the setting of every kind of a tenant.
func List(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) ([]Status, error) {
	last, err := dbsqlc.New().RetentionCheckGet(ctx, tx, tenant)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, err
	}
	older := map[Kind]int64{Actions: last.Actions, Events: last.Events}
	settings, err := current(ctx, tx, tenant)
	return postgres.Map(settings, err, func(s Setting) Status { return Status{s, older[s.Kind], last.CheckedAt} })
}

// current returns a tenant's setting of every kind, in the order of Kinds.
func current(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) ([]Setting, error) {
	rows, err := dbsqlc.New().RetentionList(ctx, tx, tenant)
	return postgres.Map(Kinds(), err, func(kind Kind) Setting {
		for _, r := range rows {
			if Kind(r.Kind) == kind {
				return Setting{kind, int(r.Days), Action(r.Action)}
			}
		}
		return Setting{kind, defaultDays, Report}
	})
}

// Put sets the retention of one kind, and returns the previous setting. An
// invalid setting is an *envelope.InvalidError and changes nothing.
func Put(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, s Setting, by envelope.Actor) (was Setting, err error) {
	if err := s.Check(); err != nil {
		return was, err
	}
	settings, err := current(ctx, tx, tenant)
	if err != nil {
		return was, err
	}
	for _, old := range settings {
		if old.Kind == s.Kind {
			was = old
		}
	}
	return was, violations.Fault(dbsqlc.New().RetentionPut(ctx, tx, &dbsqlc.RetentionPutParams{
		TenantID: tenant, Kind: string(s.Kind), Days: int32(s.Days), Action: string(s.Action), UpdatedBy: string(by),
	}))
}

// oldAction is the ids of an action and of its tenant.
type oldAction = dbsqlc.RetentionOldActionsRow

// oldActions returns the ids of up to searched actions to delete, of any tenant.
func oldActions(ctx context.Context, tx pgx.Tx) ([]oldAction, error) {
	q := dbsqlc.New()
	least, err := q.RetentionShortest(ctx, tx)
	if err != nil || least == 0 {
		return nil, err
	}
	return q.RetentionOldActions(ctx, tx, &dbsqlc.RetentionOldActionsParams{LeastDays: least, Most: searched})
}

// pruneActions deletes those of the actions that may still be deleted, and
// returns their number.
func pruneActions(ctx context.Context, tx pgx.Tx, old []oldAction) (int64, error) {
	p := &dbsqlc.RetentionPruneActionsParams{}
	for _, r := range old {
		p.TenantIds, p.ActionIds = append(p.TenantIds, uuid.UUID(r.TenantID)), append(p.ActionIds, uuid.UUID(r.ActionID))
	}
	return dbsqlc.New().RetentionPruneActions(ctx, tx, p)
}

// eraseTries erases a chunk of old tries of action tags, and returns their number.
func eraseTries(ctx context.Context, tx pgx.Tx) (int64, error) {
	return dbsqlc.New().RetentionEraseTries(ctx, tx, chunk)
}

// deletingEvents returns a page of the tenants after one that delete events.
func deletingEvents(ctx context.Context, tx pgx.Tx, after envelope.TenantID) ([]envelope.TenantID, error) {
	return dbsqlc.New().RetentionDeleting(ctx, tx, &dbsqlc.RetentionDeletingParams{Kind: string(Events), After: uuid.UUID(after), Most: tenantsAtOnce})
}

// unchecked returns a page of the tenants after one that were not checked today.
func unchecked(ctx context.Context, tx pgx.Tx, after envelope.TenantID) ([]envelope.TenantID, error) {
	return dbsqlc.New().RetentionCheckDue(ctx, tx, &dbsqlc.RetentionCheckDueParams{After: uuid.UUID(after), Most: tenantsAtOnce})
}

// dropPartition drops one empty partition of the actions' tables. It returns
// false if none is found, or if the tables are too busy.
func dropPartition(ctx context.Context, tx pgx.Tx) (bool, error) {
	n, err := dbsqlc.New().PartitionDrop(ctx, tx)
	return n > 0, err
}

// CountMost bounds the count of rows older than a limit.
const CountMost = 10_000

// checkTenant counts the rows of a tenant that are older than the settings with
// the action Report, and reports them by one event. Only the first check of a
// day has an effect.
func checkTenant(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) error {
	q := dbsqlc.New()
	begun, err := q.RetentionCheckBegin(ctx, tx, tenant)
	if err != nil || begun == 0 {
		return violations.Fault(err)
	}
	settings, err := current(ctx, tx, tenant)
	if err != nil {
		return err
	}
	older := map[Kind]int64{}
	event := audit.Event{Tenant: tenant, Kind: audit.RetentionReported, Actor: actor}
	for _, s := range settings {
		if s.Action != Report {
			continue
		}
		n, err := count(ctx, tx, tenant, s)
		if err != nil {
			return err
		}
		if older[s.Kind] = n; n > 0 {
			event.Items = append(event.Items, reportItem(s, n))
		}
	}
	if err := q.RetentionCheckEnd(ctx, tx, &dbsqlc.RetentionCheckEndParams{TenantID: tenant, Actions: older[Actions], Events: older[Events]}); err != nil {
		return err
	}
	return audit.Write(ctx, tx, event)
}

func count(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, s Setting) (int64, error) {
	q := dbsqlc.New()
	if s.Kind == Actions {
		return q.RetentionOlderActions(ctx, tx, &dbsqlc.RetentionOlderActionsParams{TenantID: tenant, Days: int32(s.Days), Most: CountMost})
	}
	return q.RetentionOlderEvents(ctx, tx, &dbsqlc.RetentionOlderEventsParams{TenantID: tenant, Days: int32(s.Days), Most: CountMost})
}

// violations are the faults for constraints that a caller's input can violate.
var violations = postgres.Violations{
	"retention_tenant_id_fkey":        fault.New(fault.NotFound, "no such tenant"),
	"retention_checks_tenant_id_fkey": fault.New(fault.NotFound, "no such tenant"),
	"retention_kind_check":            fault.New(fault.Invalid, "retention must be of actions or of events"),
	"retention_days_check":            fault.New(fault.Invalid, "a period must be 1 to 9999 days"),
	"retention_action_check":          fault.New(fault.Invalid, "a retention's action must be delete or report"),
}
