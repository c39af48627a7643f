package outbox

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/coalesce"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// readMost bounds the single reads of a tenant that share a transaction.
const readMost = 128

// Reader reads single envelopes. Concurrent reads of a tenant share one
// statement. It is safe for concurrent use.
type Reader struct {
	reads *coalesce.Group[envelope.TenantID, *read]
}

// read is a question for an envelope, with the answer.
type read struct {
	action envelope.ActionID
	view   View
	found  bool
}

// NewReader returns a Reader, which reads with the rights of the API.
func NewReader(db postgres.Begins) *Reader {
	return &Reader{coalesce.New(readMost, func(ctx context.Context, tenant envelope.TenantID, reads []*read) (undone bool, err error) {
		ids := make([]envelope.ActionID, len(reads))
		for i, r := range reads {
			ids[i] = r.action
		}
		// This is a read by key, whose plan does not depend on the values.
		api := postgres.API(tenant).Planned()
		views, err := postgres.InTxReturning(ctx, db, api.Alone(), func(tx pgx.Tx) ([]View, error) { return readViews(ctx, tx, tenant, ids) })
		if err == nil && len(reversals(views)) > 0 {
			err = postgres.InTx(ctx, db, api.Alone(), func(tx pgx.Tx) error { return setPhases(ctx, tx, tenant, views) })
		}
		if err != nil {
			return true, err
		}
		found := make(map[envelope.ActionID]View, len(views))
		for _, v := range views {
			found[v.Envelope.ActionID] = v
		}
		for _, r := range reads {
			r.view, r.found = found[r.action]
		}
		return false, nil
	})}
}

// Get returns the envelope of an id, if there is one. It has every change that was
// committed before the call.
func (r *Reader) Get(ctx context.Context, tenant envelope.TenantID, action envelope.ActionID) (v View, found bool, err error) {
	one := &read{action: action}
	if err := r.reads.Do(ctx, tenant, one); err != nil {
		return View{}, false, err
	}
	return one.view, one.found, nil
}
