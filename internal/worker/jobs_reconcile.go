package worker

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"

	"github.com/countersign-dev/countersign/internal/action/reconcile"
)

const (
	// queueVerify is apart from the other periodic jobs: a read may take long,
	// and nothing else must wait for it.
	queueReconcile = "countersign_reconcile"
	// verifyFor is how long one job goes on taking letters on.
	reconcileFor = time.Minute
)

// reconcileArgs says: look into calls that nobody heard the end of.
type reconcileArgs struct{}

func (reconcileArgs) Kind() string { return "countersign_reconcile" }

func (reconcileArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: queueReconcile, MaxAttempts: 1}
}

type reconcileWorker struct {
	river.WorkerDefaults[reconcileArgs]
	verifier *reconcile.Reconciler
	// look has what runs again seen at once.
	look func()
	busy atomic.Bool
}

// Timeout leaves the reads that were taken on last the time that they may
// take.
func (*reconcileWorker) Timeout(*river.Job[reconcileArgs]) time.Duration { return 5 * time.Minute }

// Work goes on while letters are due. A job that comes while this process
// works at another has nothing to do.
func (w *reconcileWorker) Work(ctx context.Context, _ *river.Job[reconcileArgs]) error {
	if !w.busy.CompareAndSwap(false, true) {
		return nil
	}
	defer w.busy.Store(false)
	for until := time.Now().Add(reconcileFor); time.Now().Before(until) && ctx.Err() == nil; {
		n, err := w.verifier.Sweep(ctx)
		if err != nil || n == 0 {
			return err
		}
		w.look()
	}
	return nil
}
