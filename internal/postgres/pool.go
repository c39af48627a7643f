package postgres

import (
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/internal/slot"
)

// Shared is a pool whose connections the tenants share: where they do not
// suffice, InTx gives the next one to the tenant that has the fewest.
type Shared struct {
	*pgxpool.Pool
	connections *slot.Queue
}

// Share returns a pool as one that tenants share.
func Share(pool *pgxpool.Pool) *Shared {
	return &Shared{pool, slot.NewQueue(int(pool.Config().MaxConns))}
}
