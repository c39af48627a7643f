package settings

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/coalesce"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// readMost bounds the readers of a tenant's settings that share a statement.
const readMost = 128

// Reader reads tenants' current settings for callers without a transaction.
// Concurrent reads of a tenant share one statement. It is safe for concurrent use.
type Reader struct {
	reads *coalesce.Group[envelope.TenantID, **Settings]
}

// NewReader returns a Reader, which reads with the rights of the API.
func NewReader(db postgres.Begins, cache *Cache) *Reader {
	return &Reader{coalesce.New(readMost, func(ctx context.Context, tenant envelope.TenantID, reads []**Settings) (undone bool, err error) {
		states, err := postgres.InTxReturning(ctx, db, postgres.API(tenant).Alone(), func(tx pgx.Tx) (map[envelope.TenantID]State, error) {
			return States(ctx, tx, []envelope.TenantID{tenant})
		})
		if err != nil {
			return true, err
		}
		version := states[tenant].Version
		snap := cache.Known(tenant)
		if snap == nil || snap.Version < version {
			snap, err = postgres.InTxReturning(ctx, db, postgres.API(tenant), func(tx pgx.Tx) (*Settings, error) {
				return cache.At(ctx, tx, tenant, version)
			})
		}
		for _, read := range reads {
			*read = snap
		}
		return true, err
	})}
}

// Current returns the settings of a tenant with every change that was committed before
// the call.
func (r *Reader) Current(ctx context.Context, tenant envelope.TenantID) (snap *Settings, err error) {
	err = r.reads.Do(ctx, tenant, &snap)
	return snap, err
}
