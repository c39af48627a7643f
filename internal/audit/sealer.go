package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// SealAll seals what is to be sealed of all tenants, a batch and transaction
// at a time, while more says that there is time for another. One tenant's
// error does not keep the others from it. It says whether it came to the end.
func SealAll(ctx context.Context, db postgres.Begins, more func() bool) (bool, error) {
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
			if err := sealTenant(ctx, db, tenant, more); err != nil {
				failed = errors.Join(failed, fmt.Errorf("seal events of tenant %s: %w", tenant, err))
			}
			after = tenant
		}
		if len(due) < tenantsAtOnce {
			return more(), failed
		}
	}
	return false, failed
}

func sealTenant(ctx context.Context, db postgres.Begins, tenant envelope.TenantID, more func() bool) error {
	for n := sealMost; n == sealMost && more(); {
		err := postgres.InTx(ctx, db, postgres.Worker(), func(tx pgx.Tx) (err error) {
			n, err = Seal(ctx, tx, tenant, sealMost)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
