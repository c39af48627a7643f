package reversal_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/reversal"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// dying is a database whose client dies at each commit: before it, or after it
// but before it gets the reply.
type dying struct {
	postgres.Begins
	after bool
}

func (d dying) BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error) {
	tx, err := d.Begins.BeginTx(ctx, opts)
	return doomed{tx, d.after}, err
}

type doomed struct {
	pgx.Tx
	after bool
}

var errDied = errors.New("the process died")

func (d doomed) Commit(ctx context.Context) error {
	if !d.after {
		return errors.Join(errDied, d.Rollback(ctx))
	}
	return errors.Join(errDied, d.Tx.Commit(ctx))
}

// A process that dies at the commit leaves nothing, or a reversal that the
// next request finds.
func TestRevertResumesAfterADeath(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, after := range []bool{false, true} {
		id := f.done("create", `{"name":"Ana"}`, sent)
		db, cache := dying{f.db, after}, settings.NewCache()
		woken := false
		doomed := reversal.New(db, cache, intake.New(db, cache, intake.Config{ApprovalWait: time.Hour, Wake: func() { woken = true }}))

		_, err := doomed.Revert(t.Context(), f.request(id))
		left := f.view(id).RevertedBy
		again := f.revert(id)

		if !errors.Is(err, errDied) || woken || (left != nil) != after {
			t.Errorf("death after the commit %t: Revert = %v, woken %t, and leaves %+v", after, err, woken, left)
		}
		if again.Err != nil || again.Known != after || f.view(id).RevertedBy.Action != again.Action {
			t.Errorf("death after the commit %t: reverting again = %+v", after, again)
		}
		if calls := f.settle(sent); len(calls) != 1 || f.view(again.Action).Phase != envelope.PhaseCompleted {
			t.Errorf("death after the commit %t: calls = %q", after, calls)
		}
	}
}
