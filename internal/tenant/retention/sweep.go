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

// Sweep deletes data older than its tenant's settings, drops empty partitions of
// the actions' tables, and reports data that is kept, while more returns true.
// Each chunk is a separate transaction, so that the next sweep continues an
// interrupted one. It reports whether it reached the end. One tenant's error
// does not stop the others.
func Sweep(ctx context.Context, db postgres.Begins, more func() bool) (bool, error) {
	s := &sweep{db, more}
	var failed error
	for _, part := range []func(context.Context) error{s.actions, s.events, s.partitions, s.reports} {
		failed = errors.Join(failed, part(ctx))
	}
	return more(), failed
}

// inTx calls do in a transaction. The error begins with what, the operation.
func (s *sweep) inTx(ctx context.Context, what string, do func(tx pgx.Tx) error) error {
	if err := postgres.InTx(ctx, s.db, postgres.Worker(), do); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// actions deletes ended actions with their attempts.
func (s *sweep) actions(ctx context.Context) error {
	for s.more() {
		var old []oldAction
		err := s.inTx(ctx, "find old actions", func(tx pgx.Tx) (err error) {
			old, err = oldActions(ctx, tx)
			return err
		})
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
		err := s.inTx(ctx, "delete old actions", func(tx pgx.Tx) error {
			pruned, err := pruneActions(ctx, tx, part)
			all += pruned
			return err
		})
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// events deletes events whose checkpoints are older than the settings.
func (s *sweep) events(ctx context.Context) error {
	return s.eachTenant(ctx, deletingEvents, func(tenant envelope.TenantID) error {
		for pruned := int64(1); pruned > 0 && s.more(); {
			err := s.inTx(ctx, "delete old events of tenant "+tenant.String(), func(tx pgx.Tx) (err error) {
				pruned, err = audit.Prune(ctx, tx, tenant, chunk)
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// partitions drops the empty partitions.
func (s *sweep) partitions(ctx context.Context) error {
	for dropped := true; dropped && s.more(); {
		err := s.inTx(ctx, "drop a partition", func(tx pgx.Tx) (err error) {
			dropped, err = dropPartition(ctx, tx)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// reports reports the amount of old data to each tenant once a day.
func (s *sweep) reports(ctx context.Context) error {
	return s.eachTenant(ctx, unchecked, func(tenant envelope.TenantID) error {
		return s.inTx(ctx, "check for old data of tenant "+tenant.String(), func(tx pgx.Tx) error { return checkTenant(ctx, tx, tenant) })
	})
}

// eachTenant calls do for each tenant of all pages, while more returns true.
func (s *sweep) eachTenant(ctx context.Context, page func(context.Context, pgx.Tx, envelope.TenantID) ([]envelope.TenantID, error), do func(envelope.TenantID) error) error {
	var failed error
	for after := (envelope.TenantID{}); s.more(); {
		var tenants []envelope.TenantID
		err := s.inTx(ctx, "list tenants", func(tx pgx.Tx) (err error) {
			tenants, err = page(ctx, tx, after)
			return err
		})
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
