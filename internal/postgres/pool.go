package postgres

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/slot"
)

// Shared is a pool whose connections tenants share: if all are in use, InTx
// gives the next one to the tenant that has the fewest. A wait for a
// connection is bounded; beyond it the error is fault.Busy.
type Shared struct {
	*pgxpool.Pool
	connections *slot.Queue
	wait        time.Duration
}

// Share returns a pool that tenants share, whose transactions wait at most wait
// for a connection; zero means 5 s.
func Share(pool *pgxpool.Pool, wait time.Duration) *Shared {
	return &Shared{pool, slot.NewQueue(int(pool.Config().MaxConns)), cmp.Or(wait, 5*time.Second)}
}

// begin begins a transaction on a connection for a tenant, which end gives back.
func (s *Shared) begin(ctx context.Context, as Scope) (tx pgx.Tx, end func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	if err := s.connections.Take(waiting, as.tenant); err != nil {
		return nil, nil, s.exhausted(ctx, waiting, err)
	}
	conn, err := s.Acquire(waiting)
	if err != nil {
		s.connections.Give(as.tenant)
		return nil, nil, s.exhausted(ctx, waiting, err)
	}
	if tx, err = beginOn(ctx, conn, as); err != nil {
		s.connections.Give(as.tenant)
	}
	return tx, func() {
		conn.Release()
		s.connections.Give(as.tenant)
	}, err
}

// exhausted returns the error of waiting for a connection, which is fault.Busy if
// the wait was over before the caller's context.
func (s *Shared) exhausted(ctx, waiting context.Context, err error) error {
	if ctx.Err() != nil || waiting.Err() == nil {
		return err
	}
	return &fault.Error{Kind: fault.Busy, Cause: err, After: reconnectAfter,
		Text: fmt.Sprintf("no connection to the database was free within %s; try again", s.wait)}
}
