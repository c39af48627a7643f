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
	// workflowMinPoll and workflowMaxPoll bound the pause between two polls
	// while workflows are running, and workflowIdlePoll is the pause while none
	// is: starting a workflow wakes a worker.
	workflowMinPoll  = 50 * time.Millisecond
	workflowMaxPoll  = 200 * time.Millisecond
	workflowIdlePoll = 2 * time.Second
	// workflowPollShare is the ratio of a pause to the poll before it, so that
	// polls which take long, because many workflows wait, are made less often.
	workflowPollShare = 20
	// workflowDebounce is the least time between two polls.
	workflowDebounce = 10 * time.Millisecond
)

// workflowLoop advances workflows.
type workflowLoop struct {
	driver *workflow.Driver
	wake   chan struct{}
	// live reports whether workflows were running at the last poll.
	live atomic.Bool
	log  *slog.Logger
}

func newWorkflowLoop(driver *workflow.Driver, log *slog.Logger) *workflowLoop {
	return &workflowLoop{driver: driver, wake: make(chan struct{}, 1), log: log}
}

// poll polls for workflows now. It does not block.
func (b *workflowLoop) poll() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// settled is called after actions ended. It polls if workflows are running.
func (b *workflowLoop) settled() {
	if b.live.Load() {
		b.poll()
	}
}

// run polls until ctx ends. What it is about to write then is rolled back, and
// another worker does it.
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
			b.log.ErrorContext(ctx, "worker waits for the database", slog.String("operation", "advance workflows"), slog.Int("failures", failures), slog.Any("error", err))
		}
		timer.Reset(pause)
	}
}

// advance advances workflows once, and returns the pause until the next poll.
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
		return workflowIdlePoll, nil
	}
	return min(max(workflowPollShare*time.Since(began), workflowMinPoll), workflowMaxPoll), nil
}

// pruneWorkflowsArgs is the job that deletes workflows whose steps retention
// deleted.
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
