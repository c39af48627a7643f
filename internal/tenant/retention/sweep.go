package retention

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres"
)

const (
	// chunk is the approximate number of rows that one transaction deletes.
	// searched is the number of rows per search, since each search passes over
	// the rows that previous ones deleted.
	chunk    = 5000
	searched = 10 * chunk
	// tenantsAtOnce is the number of tenants per page.
	tenantsAtOnce = 100

	// actor is the actor of the events.
	actor = "retention"
)

// sweep is one run over the data of all tenants.
type sweep struct {
	db   postgres.Begins
	more func() bool
}

// Sweep deletes data older than its tenant's settings, and the log of tries of action
// tags older than 90 days with their arguments. It drops empty partitions of
// the actions' tables, and reports data that is kept, while more returns true.
// Each chunk is a separate transaction, so that the next sweep continues an
// interrupted one. It reports whether it reached the end. One tenant's error
// does not stop the others.
func Sweep(ctx context.Context, db postgres.Begins, more func() bool) (bool, error) {
	s := &sweep{db, more}
	var failed error
	for _, part := range []func(context.Context) error{s.actions, s.events, s.tries, s.partitions, s.reports} {
		failed = errors.Join(failed, part(ctx))
	}
	return more(), failed
}

// inTx calls do in a transaction. The error begins with what, the operation.
func inTx[T any](ctx context.Context, s *sweep, what string, do func(tx pgx.Tx) (T, error)) (T, error) {
	value, err := postgres.InTxReturning(ctx, s.db, postgres.Worker(), do)
	if err != nil {
		return value, fmt.Errorf("%s: %w", what, err)
	}
	return value, nil
}

// actions deletes ended actions with their attempts.
func (s *sweep) actions(ctx context.Context) error {
	for s.more() {
		old, err := inTx(ctx, s, "find old actions", func(tx pgx.Tx) ([]oldAction, error) { return oldActions(ctx, tx) })
		if err != nil {
			return err
		}
		pruned, err := s.prune(ctx, old)
		// Nothing was deleted: all actions have become active again.
		if err != nil || len(old) < searched || pruned == 0 {
			return err
		}
	}
	return nil
}

// prune deletes actions in chunks, and returns their number.
func (s *sweep) prune(ctx context.Context, old []oldAction) (all int64, err error) {
	for part := range slices.Chunk(old, chunk) {
		if !s.more() {
			break
		}
		pruned, err := inTx(ctx, s, "delete old actions", func(tx pgx.Tx) (int64, error) { return pruneActions(ctx, tx, part) })
		if err != nil {
			return all, err
		}
		all += pruned
	}
	return all, nil
}

// events deletes events whose checkpoints are older than the settings.
func (s *sweep) events(ctx context.Context) error {
	return s.eachTenant(ctx, deletingEvents, func(tenant envelope.TenantID) error {
		for s.more() {
			pruned, err := inTx(ctx, s, "delete old events of tenant "+tenant.String(), func(tx pgx.Tx) (int64, error) { return audit.Prune(ctx, tx, tenant, chunk) })
			if err != nil || pruned == 0 {
				return err
			}
		}
		return nil
	})
}

// tries deletes the old log of tries of action tags, and erases their arguments.
func (s *sweep) tries(ctx context.Context) error {
	for s.more() {
		erased, err := inTx(ctx, s, "erase old tries of action tags", func(tx pgx.Tx) (int64, error) { return eraseTries(ctx, tx) })
		if err != nil || erased == 0 {
			return err
		}
	}
	return nil
}

// partitions drops the empty partitions.
func (s *sweep) partitions(ctx context.Context) error {
	for s.more() {
		dropped, err := inTx(ctx, s, "drop a partition", func(tx pgx.Tx) (bool, error) { return dropPartition(ctx, tx) })
		if err != nil || !dropped {
			return err
		}
	}
	return nil
}

// reports reports the amount of old data to each tenant once a day.
func (s *sweep) reports(ctx context.Context) error {
	return s.eachTenant(ctx, unchecked, func(tenant envelope.TenantID) error {
		_, err := inTx(ctx, s, "check for old data of tenant "+tenant.String(), func(tx pgx.Tx) (any, error) { return nil, checkTenant(ctx, tx, tenant) })
		return err
	})
}

// eachTenant calls do for each tenant of all pages, while more returns true.
func (s *sweep) eachTenant(ctx context.Context, page func(context.Context, pgx.Tx, envelope.TenantID) ([]envelope.TenantID, error), do func(envelope.TenantID) error) error {
	var failed error
	for after := (envelope.TenantID{}); s.more(); {
		tenants, err := inTx(ctx, s, "list tenants", func(tx pgx.Tx) ([]envelope.TenantID, error) { return page(ctx, tx, after) })
		if err != nil {
			return errors.Join(failed, err)
		}
		for _, tenant := range tenants {
			if !s.more() {
				return failed
			}
			failed = errors.Join(failed, do(tenant))
			after = tenant
		}
		if len(tenants) < tenantsAtOnce {
			return failed
		}
	}
	return failed
}

// reportItem returns the event item that reports the amount of a kind.
func reportItem(s Setting, older int64) audit.Item {
	amount := fmt.Sprint(older)
	if older >= CountMost {
		amount += " or more"
	}
	return audit.Item{
		Subject: fmt.Sprintf("%s %s are older than %d days; nothing is deleted", amount, s.Kind, s.Days),
		Detail:  map[string]any{"kind": s.Kind, "days": s.Days, "older": older, "or_more": older >= CountMost},
	}
}
