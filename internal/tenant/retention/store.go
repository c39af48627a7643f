package retention

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// List returns what holds for a tenant, of every kind.
func List(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) ([]Holding, error) {
	settings, err := current(ctx, tx, tenant)
	if err != nil {
		return nil, err
	}
	check, err := dbsqlc.New().RetentionCheckGet(ctx, tx, uuid.UUID(tenant))
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, err
	}
	older := map[Kind]int64{Ledger: check.Ledger, Events: check.Events}
	all := make([]Holding, len(settings))
	for i, s := range settings {
		all[i] = Holding{Setting: s, Older: older[s.Kind], CheckedAt: check.CheckedAt}
	}
	return all, nil
}

// current returns a tenant's setting of every kind, in the order of Kinds.
func current(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) ([]Setting, error) {
	rows, err := dbsqlc.New().RetentionList(ctx, tx, uuid.UUID(tenant))
	if err != nil {
		return nil, err
	}
	all := make([]Setting, 0, len(Kinds()))
	for _, kind := range Kinds() {
		s := Setting{kind, DefaultDays, Notice}
		for _, r := range rows {
			if Kind(r.Kind) == kind {
				s.Days, s.Action = int(r.Days), Action(r.Action)
			}
		}
		all = append(all, s)
	}
	return all, nil
}

// Put sets how long a tenant keeps one kind, and returns what held before. An
// invalid setting is an *envelope.InvalidError and changes nothing.
func Put(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, s Setting, by string) (Setting, error) {
	if err := s.Check(); err != nil {
		return Setting{}, err
	}
	settings, err := current(ctx, tx, tenant)
	if err != nil {
		return Setting{}, err
	}
	was := Setting{}
	for _, old := range settings {
		if old.Kind == s.Kind {
			was = old
		}
	}
	return was, violations.Fault(dbsqlc.New().RetentionPut(ctx, tx, &dbsqlc.RetentionPutParams{
		TenantID: uuid.UUID(tenant), Kind: string(s.Kind), Days: int32(s.Days), Action: string(s.Action), UpdatedBy: by,
	}))
}

// envelopes are ids of envelopes of several tenants, side by side.
type envelopes struct{ tenants, actions []uuid.UUID }

// oldLedger finds envelopes to be deleted, at most so many.
func oldLedger(ctx context.Context, tx pgx.Tx, most int) (envelopes, error) {
	q := dbsqlc.New()
	least, err := q.RetentionShortest(ctx, tx)
	if err != nil || least == 0 {
		return envelopes{}, err
	}
	rows, err := q.RetentionOldLedger(ctx, tx, &dbsqlc.RetentionOldLedgerParams{LeastDays: least, Most: int64(most)})
	var old envelopes
	for _, r := range rows {
		old.tenants, old.actions = append(old.tenants, r.TenantID), append(old.actions, r.ActionID)
	}
	return old, err
}

// pruneLedger deletes envelopes that are still to be deleted, and says how
// many.
func pruneLedger(ctx context.Context, tx pgx.Tx, old envelopes) (int64, error) {
	return dbsqlc.New().RetentionPruneLedger(ctx, tx, &dbsqlc.RetentionPruneLedgerParams{TenantIds: old.tenants, ActionIds: old.actions})
}

// deleting returns tenants behind one that delete what is old of a kind.
func deleting(ctx context.Context, tx pgx.Tx, kind Kind, after envelope.TenantID) ([]envelope.TenantID, error) {
	ids, err := dbsqlc.New().RetentionDeleting(ctx, tx, &dbsqlc.RetentionDeletingParams{Kind: string(kind), After: uuid.UUID(after), Most: tenantsAtOnce})
	return tenantIDs(ids), err
}

// unchecked returns tenants behind one that nobody looked at today.
func unchecked(ctx context.Context, tx pgx.Tx, after envelope.TenantID) ([]envelope.TenantID, error) {
	ids, err := dbsqlc.New().RetentionCheckDue(ctx, tx, &dbsqlc.RetentionCheckDueParams{After: uuid.UUID(after), Most: tenantsAtOnce})
	return tenantIDs(ids), err
}

func tenantIDs(ids []uuid.UUID) []envelope.TenantID {
	tenants := make([]envelope.TenantID, len(ids))
	for i, id := range ids {
		tenants[i] = envelope.TenantID(id)
	}
	return tenants
}

// dropPartition drops one partition of the ledger in which nothing is left.
// It is false when there is none, or the ledger is too busy.
func dropPartition(ctx context.Context, tx pgx.Tx) (bool, error) {
	n, err := dbsqlc.New().PartitionDrop(ctx, tx)
	return n > 0, err
}

// CountMost bounds how many rows are counted that are older than a limit.
const CountMost = 10_000

// check counts what a tenant has that is older than the limits that only give
// notice, and tells of it by one event. Of several checks of a day the first
// alone does anything.
func check(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) error {
	q := dbsqlc.New()
	mine, err := q.RetentionCheckBegin(ctx, tx, uuid.UUID(tenant))
	err = violations.Fault(err)
	if err != nil || mine == 0 {
		return err
	}
	settings, err := current(ctx, tx, tenant)
	if err != nil {
		return err
	}
	older := map[Kind]int64{}
	event := audit.Event{Tenant: tenant, Kind: audit.Noticed, Actor: actor}
	for _, s := range settings {
		if s.Action != Notice {
			continue
		}
		n, err := count(ctx, tx, tenant, s)
		if err != nil {
			return err
		}
		if older[s.Kind] = n; n > 0 {
			event.Items = append(event.Items, noticeOf(s, n))
		}
	}
	if err := q.RetentionCheckEnd(ctx, tx, &dbsqlc.RetentionCheckEndParams{TenantID: uuid.UUID(tenant), Ledger: older[Ledger], Events: older[Events]}); err != nil {
		return err
	}
	return audit.Write(ctx, tx, event)
}

func count(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, s Setting) (int64, error) {
	q := dbsqlc.New()
	if s.Kind == Ledger {
		return q.RetentionOlderLedger(ctx, tx, &dbsqlc.RetentionOlderLedgerParams{TenantID: uuid.UUID(tenant), Days: int32(s.Days), Most: CountMost})
	}
	return q.RetentionOlderEvents(ctx, tx, &dbsqlc.RetentionOlderEventsParams{TenantID: uuid.UUID(tenant), Days: int32(s.Days), Most: CountMost})
}
