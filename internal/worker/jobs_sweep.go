package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// sweepArgs says: end what kills hit, and wake what lifted pauses held.
type sweepArgs struct{}

func (sweepArgs) Kind() string { return "countersign_sweep" }

func (sweepArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: queueSweep, MaxAttempts: 1}
}

// queueSweep is a queue of its own: while a sweep of many takes a minute, one
// is inserted every second, and the other jobs must not wait behind them.
const queueSweep = "countersign_sweep"

// sweepTime bounds one round; the next goes on.
const sweepTime = time.Minute

type sweepWorker struct {
	river.WorkerDefaults[sweepArgs]
	db   postgres.Begins
	wake func()
}

func (w *sweepWorker) Timeout(*river.Job[sweepArgs]) time.Duration { return sweepTime }

func (w *sweepWorker) Work(ctx context.Context, _ *river.Job[sweepArgs]) error {
	return Sweep(ctx, w.db, w.wake)
}

// Sweep goes once through all that operators' changes left to do, a page a
// transaction. It calls wake when it has put something on the schedule again.
func Sweep(ctx context.Context, db postgres.Begins, wake func()) error {
	const most, page = 100, 1000
	var sweeps []outbox.Sweep
	err := postgres.InTx(ctx, db, postgres.Worker(), func(tx pgx.Tx) (err error) {
		sweeps, err = outbox.Sweeps(ctx, tx, most)
		return err
	})
	if err != nil {
		return fmt.Errorf("sweep pauses: %w", err)
	}
	for i := range sweeps {
		var at outbox.SweepCursor
		for ended := false; !ended; {
			err := postgres.InTx(ctx, db, postgres.Worker().Planned(), func(tx pgx.Tx) (err error) {
				at, ended, err = sweeps[i].Step(ctx, tx, at, page)
				return err
			})
			if err != nil {
				return fmt.Errorf("sweep pauses: %w", err)
			}
		}
		wake()
	}
	return nil
}
