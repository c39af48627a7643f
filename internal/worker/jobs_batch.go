package worker

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"

	"github.com/countersign-dev/countersign/internal/action/workflow"
	"github.com/countersign-dev/countersign/internal/postgres"
)

const (
	// batchSoonest and batchLatest bound how often batches are looked for that
	// can move on. A look that takes long, because many batches wait, is not
	// made as often.
	batchSoonest = 50 * time.Millisecond
	batchLatest  = 200 * time.Millisecond
	// batchShare is how much longer the pause is than the look before it.
	batchShare = 20
	// batchDebounce is the least time between two looks.
	batchDebounce = 10 * time.Millisecond
)

// batches moves batches on while a process of the fleet runs.
type batches struct {
	driver *workflow.Driver
	wake   chan struct{}
	// live says that there were batches under way at the last look.
	live atomic.Bool
	log  *slog.Logger
}

func newBatches(driver *workflow.Driver, log *slog.Logger) *batches {
	return &batches{driver: driver, wake: make(chan struct{}, 1), log: log}
}

// look has batches looked for now. It does not block.
func (b *batches) look() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// settled says that envelopes have ended. Where no batch is under way, nobody
// looks.
func (b *batches) settled() {
	if b.live.Load() {
		b.look()
	}
}

// run works until ctx is over. What it is about to write then is rolled back,
// and another process does it.
func (b *batches) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var began time.Time
	for failures := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-b.wake:
			if early := batchDebounce - time.Since(began); early > 0 {
				timer.Reset(early)
				continue
			}
		case <-timer.C:
		}
		began = time.Now()
		pause, err := b.sweep(ctx)
		if ctx.Err() != nil {
			return
		}
		if failures++; err == nil {
			failures = 0
		} else {
			pause = min(batchLatest<<min(failures, 4), 5*time.Second)
			b.log.ErrorContext(ctx, "worker waits for the database", slog.String("operation", "move batches on"), slog.Int("failures", failures), slog.Any("error", err))
		}
		timer.Reset(pause)
	}
}

// sweep moves on what can be, and returns when to look again.
func (b *batches) sweep(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	moved, live, err := b.driver.Sweep(ctx)
	if err != nil {
		return 0, err
	}
	b.live.Store(live)
	switch {
	case moved > 0:
		return batchSoonest, nil
	case !live:
		return batchLatest, nil
	}
	return min(max(batchShare*time.Since(began), batchSoonest), batchLatest), nil
}

// pruneBatchesArgs says: forget batches that are older than what is kept of
// their steps.
type pruneBatchesArgs struct{}

func (pruneBatchesArgs) Kind() string { return "countersign_prune_batches" }

func (pruneBatchesArgs) InsertOpts() river.InsertOpts { return upkeep() }

type pruneBatchesWorker struct {
	river.WorkerDefaults[pruneBatchesArgs]
	db postgres.Begins
}

func (w *pruneBatchesWorker) Work(ctx context.Context, _ *river.Job[pruneBatchesArgs]) error {
	return inTurns(ctx, func(more func() bool) (bool, error) {
		for more() {
			n, err := workflow.Prune(ctx, w.db)
			if err != nil || n == 0 {
				return err == nil, err
			}
		}
		return false, nil
	})
}
