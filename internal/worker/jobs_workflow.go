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
	// workflowSoonest and workflowLatest bound how often workflows are looked for that
	// can move on. A look that takes long, because many workflows wait, is not
	// made as often.
	workflowMinPoll = 50 * time.Millisecond
	workflowMaxPoll = 200 * time.Millisecond
	// workflowShare is how much longer the pause is than the look before it.
	workflowPollShare = 20
	// workflowDebounce is the least time between two looks.
	workflowDebounce = 10 * time.Millisecond
)

// workflows moves workflows on while a process of the fleet runs.
type workflowLoop struct {
	driver *workflow.Driver
	wake   chan struct{}
	// live says that there were workflows under way at the last look.
	live atomic.Bool
	log  *slog.Logger
}

func newWorkflowLoop(driver *workflow.Driver, log *slog.Logger) *workflowLoop {
	return &workflowLoop{driver: driver, wake: make(chan struct{}, 1), log: log}
}

// look has workflows looked for now. It does not block.
func (b *workflowLoop) poll() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// settled says that envelopes have ended. Where no workflow is under way, nobody
// looks.
func (b *workflowLoop) settled() {
	if b.live.Load() {
		b.poll()
	}
}

// run works until ctx is over. What it is about to write then is rolled back,
// and another process does it.
func (b *workflowLoop) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var began time.Time
	for failures := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-b.wake:
			if early := workflowDebounce - time.Since(began); early > 0 {
				timer.Reset(early)
				continue
			}
		case <-timer.C:
		}
		began = time.Now()
		pause, err := b.advance(ctx)
		if ctx.Err() != nil {
			return
		}
		if failures++; err == nil {
			failures = 0
		} else {
			pause = min(workflowMaxPoll<<min(failures, 4), 5*time.Second)
			b.log.ErrorContext(ctx, "worker waits for the database", slog.String("operation", "move workflows on"), slog.Int("failures", failures), slog.Any("error", err))
		}
		timer.Reset(pause)
	}
}

// sweep moves on what can be, and returns when to look again.
func (b *workflowLoop) advance(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	moved, live, err := b.driver.Sweep(ctx)
	if err != nil {
		return 0, err
	}
	b.live.Store(live)
	switch {
	case moved > 0:
		return workflowMinPoll, nil
	case !live:
		return workflowMaxPoll, nil
	}
	return min(max(workflowPollShare*time.Since(began), workflowMinPoll), workflowMaxPoll), nil
}

// pruneWorkflowsArgs says: forget workflows that are older than what is kept of
// their steps.
type pruneWorkflowsArgs struct{}

func (pruneWorkflowsArgs) Kind() string { return "countersign_prune_workflows" }

func (pruneWorkflowsArgs) InsertOpts() river.InsertOpts { return maintenanceOpts() }

type pruneWorkflowsWorker struct {
	river.WorkerDefaults[pruneWorkflowsArgs]
	db postgres.Begins
}

func (w *pruneWorkflowsWorker) Work(ctx context.Context, _ *river.Job[pruneWorkflowsArgs]) error {
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
