package retention

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres"
)

const (
	// chunk is how many rows one transaction deletes, give or take; found is
	// how many are looked for at a time, since each look passes over what the
	// ones before deleted.
	chunk = 5000
	found = 10 * chunk
	// tenantsAtOnce is how many tenants are read at a time.
	tenantsAtOnce = 100

	// actor is who tells of a notice.
	actor = "retention"
)

// sweep is one run over what all tenants keep.
type sweep struct {
	db   postgres.Begins
	more func() bool
}

// Sweep deletes what is past its tenant's limits, drops the partitions of the
// ledger that are empty by now, and gives notice of what is only to be told,
// while more says that there is time for another chunk. Each chunk is a
// transaction of its own, so that a sweep that is cut short is taken up by the
// next. It says whether it came to the end. One tenant's error does not keep
// the others from it.
func Sweep(ctx context.Context, db postgres.Begins, more func() bool) (bool, error) {
	s := &sweep{db, more}
	var failed error
	for _, part := range []func(context.Context) error{s.ledger, s.events, s.partitions, s.notices} {
		failed = errors.Join(failed, part(ctx))
	}
	return more(), failed
}

func (s *sweep) inTx(ctx context.Context, do func(tx pgx.Tx) error) error {
	return postgres.InTx(ctx, s.db, postgres.Worker(), do)
}

// ledger deletes envelopes that ended, with their attempts.
func (s *sweep) ledger(ctx context.Context) error {
	for s.more() {
		var old envelopes
		err := s.inTx(ctx, func(tx pgx.Tx) (err error) {
			old, err = oldLedger(ctx, tx, found)
			return err
		})
		if err != nil {
			return fmt.Errorf("find old envelopes: %w", err)
		}
		pruned, err := s.prune(ctx, old)
		if err != nil {
			return fmt.Errorf("delete old envelopes: %w", err)
		}
		// Nothing deleted: all of them came alive in between.
		if len(old.actions) < found || pruned == 0 {
			return nil
		}
	}
	return nil
}

// prune deletes envelopes in chunks, and says how many.
func (s *sweep) prune(ctx context.Context, old envelopes) (all int64, err error) {
	for len(old.actions) > 0 && s.more() {
		n := min(chunk, len(old.actions))
		err := s.inTx(ctx, func(tx pgx.Tx) error {
			pruned, err := pruneLedger(ctx, tx, envelopes{old.tenants[:n], old.actions[:n]})
			all += pruned
			return err
		})
		if err != nil {
			return all, err
		}
		old.tenants, old.actions = old.tenants[n:], old.actions[n:]
	}
	return all, nil
}

// events deletes events whose checkpoints are past the limits.
func (s *sweep) events(ctx context.Context) error {
	return s.eachTenant(ctx, func(tx pgx.Tx, after envelope.TenantID) ([]envelope.TenantID, error) {
		return deleting(ctx, tx, Events, after)
	}, func(tenant envelope.TenantID) error {
		for pruned := int64(1); pruned > 0 && s.more(); {
			err := s.inTx(ctx, func(tx pgx.Tx) (err error) {
				pruned, err = audit.Prune(ctx, tx, tenant, chunk)
				return err
			})
			if err != nil {
				return fmt.Errorf("delete old events of tenant %s: %w", tenant, err)
			}
		}
		return nil
	})
}

// partitions drops those of the ledger that are empty.
func (s *sweep) partitions(ctx context.Context) error {
	for dropped := true; dropped && s.more(); {
		err := s.inTx(ctx, func(tx pgx.Tx) (err error) {
			dropped, err = dropPartition(ctx, tx)
			return err
		})
		if err != nil {
			return fmt.Errorf("drop a partition: %w", err)
		}
	}
	return nil
}

// notices tells each tenant once a day what it has that is old.
func (s *sweep) notices(ctx context.Context) error {
	return s.eachTenant(ctx, func(tx pgx.Tx, after envelope.TenantID) ([]envelope.TenantID, error) {
		return unchecked(ctx, tx, after)
	}, func(tenant envelope.TenantID) error {
		if err := s.inTx(ctx, func(tx pgx.Tx) error { return check(ctx, tx, tenant) }); err != nil {
			return fmt.Errorf("look for old data of tenant %s: %w", tenant, err)
		}
		return nil
	})
}

// eachTenant does something for each tenant that a page names, while there is
// time.
func (s *sweep) eachTenant(ctx context.Context, page func(pgx.Tx, envelope.TenantID) ([]envelope.TenantID, error), do func(envelope.TenantID) error) error {
	var failed error
	for after := (envelope.TenantID{}); s.more(); {
		var tenants []envelope.TenantID
		err := s.inTx(ctx, func(tx pgx.Tx) (err error) {
			tenants, err = page(tx, after)
			return err
		})
		if err != nil {
			return errors.Join(failed, fmt.Errorf("list tenants: %w", err))
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

// noticeOf is the item that tells how much there is of a kind.
func noticeOf(s Setting, older int64) audit.Item {
	amount := fmt.Sprint(older)
	if older >= CountMost {
		amount += " or more"
	}
	return audit.Item{
		Subject: fmt.Sprintf("%s of the %s are older than %d days; nothing is deleted", amount, s.Kind, s.Days),
		Detail:  map[string]any{"kind": s.Kind, "days": s.Days, "older": older, "or_more": older >= CountMost},
	}
}
