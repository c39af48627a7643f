package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// CheckpointAll adds the checkpoints that are due of all tenants, one per
// transaction, while more reports that there is time for another. One tenant's
// error does not stop the others. It reports whether all tenants were reached.
func CheckpointAll(ctx context.Context, db postgres.Begins, more func() bool) (bool, error) {
	var failed error
	for after := (envelope.TenantID{}); more(); {
		const tenantsAtOnce = 100
		var due []envelope.TenantID
		err := postgres.InTx(ctx, db, postgres.Worker(), func(tx pgx.Tx) (err error) {
			due, err = Due(ctx, tx, after, tenantsAtOnce)
			return err
		})
		if err != nil {
			return false, errors.Join(failed, err)
		}
		for _, tenant := range due {
			if err := checkpointTenant(ctx, db, tenant, more); err != nil {
				failed = errors.Join(failed, fmt.Errorf("checkpoint events of tenant %s: %w", tenant, err))
			}
			after = tenant
		}
		if len(due) < tenantsAtOnce {
			return more(), failed
		}
	}
	return false, failed
}

func checkpointTenant(ctx context.Context, db postgres.Begins, tenant envelope.TenantID, more func() bool) error {
	for n := checkpointEvents; n == checkpointEvents && more(); {
		err := postgres.InTx(ctx, db, postgres.Worker(), func(tx pgx.Tx) (err error) {
			n, err = Checkpoint(ctx, tx, tenant, checkpointEvents)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
