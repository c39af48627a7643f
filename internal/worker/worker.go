// Package worker is the fleet: it claims what is due, decides a second time,
// calls the tools and commits what became of it. River carries the wake-ups
// between processes, elects the one that starts the periodic jobs, and runs
// those; the truth is in the outbox alone. It refuses to be the place of any
// rule: policy, gates, outcomes and dispositions are decided below it.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/reconcile"
	"github.com/countersign-dev/countersign/internal/action/subscription"
	"github.com/countersign-dev/countersign/internal/action/workflow"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source/connect"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// FleetConfig says how one process of the fleet works.
type Config struct {
	Pipeline PipelineConfig
	// PollOnly does without LISTEN, for databases behind a pooler in
	// transaction mode.
	PollOnly bool
	// CatalogAge is how old a source's listing may get: 5 minutes.
	CatalogAge time.Duration
}

// Fleet is one process of the fleet: a pipeline, and the River client that
// wakes it.
type Worker struct {
	db                     *pgxpool.Pool
	pipeline               *Pipeline
	client                 *river.Client[pgx.Tx]
	waker                  *Waker
	workflows              *workflowLoop
	sweep, deliver, expire *loop
	log                    *slog.Logger
}

// NewFleet returns a process of the fleet that Run starts.
func New(ctx context.Context, db *pgxpool.Pool, cache *settings.Cache, live *connect.Pool, cfg Config) (*Worker, error) {
	cfg.CatalogAge = or(cfg.CatalogAge, 5*time.Minute)
	cfg.Pipeline.fill()
	log := cfg.Pipeline.Log
	waker, err := NewWaker(ctx, db, log)
	if err != nil {
		return nil, err
	}
	cfg.Pipeline.Backlog = waker.Wake
	f := &Worker{db: db, waker: waker, log: log}
	door := intake.New(db, cache, intake.Config{ApprovalWait: cfg.Pipeline.ApprovalWait, Wake: f.pollAll})
	f.workflows = newWorkflowLoop(workflow.NewDriver(db, door, log), log)
	f.sweep = newLoop("sweep pauses", time.Second, sweepDebounce, log, func(ctx context.Context) error { return Sweep(ctx, db, f.pollAll) })
	f.deliver = newLoop("deliver messages", time.Second, time.Second, log, deliver(subscription.NewRelay(db, cache, door, log)))
	f.expire = newLoop("expire decisions and policy", 2*time.Second, 2*time.Second, log, expire(db))
	cfg.Pipeline.Settled = f.workflows.settled
	f.pipeline = NewPipeline(db, cache, live, cfg.Pipeline)

	workers := river.NewWorkers()
	river.AddWorker(workers, &pollWorker{look: f.Poll})
	river.AddWorker(workers, &pruneWorkflowsWorker{db: db})
	river.AddWorker(workers, &refreshWorker{refresher: connect.NewRefresher(db, cache, live, log), age: cfg.CatalogAge})
	river.AddWorker(workers, &partitionWorker{db: db})
	river.AddWorker(workers, &checkpointWorker{db: db})
	river.AddWorker(workers, &retentionWorker{db: db})
	river.AddWorker(workers, &pruneDryRunsWorker{db: db})
	river.AddWorker(workers, &pruneSessionsWorker{db: db})
	river.AddWorker(workers, &reconcileWorker{verifier: reconcile.New(db, cache, live, reconcile.Config{Log: log}), look: f.pipeline.Poll})
	f.client, err = river.NewClient(riverpgxv5.New(db), &river.Config{
		Schema:            postgres.RiverSchema,
		ID:                cfg.Pipeline.ID,
		Logger:            warnOnly(log),
		PollOnly:          cfg.PollOnly,
		FetchCooldown:     2 * time.Millisecond,
		FetchPollInterval: fetchPoll(cfg.PollOnly),
		Queues: map[string]river.QueueConfig{
			queuePoll:        {MaxWorkers: 2},
			queuePeriodic:    {MaxWorkers: 2},
			queueMaintenance: {MaxWorkers: 2},
			queueReconcile:   {MaxWorkers: 2},
		},
		Workers:      workers,
		PeriodicJobs: periodic(),
		// Wake-ups are worth nothing once they are done.
		CompletedJobRetentionPeriod: time.Minute,
	})
	if err != nil {
		waker.Close()
		return nil, fmt.Errorf("new river client: %w", err)
	}
	return f, nil
}

// sweepDebounce is the least time between two sweeps that wake-ups cause.
const sweepDebounce = 250 * time.Millisecond

// fetchPoll returns how often River looks for jobs in every queue. Where LISTEN
// works it is told of each job, and polls only for notifications that were
// lost with a connection.
func fetchPoll(pollOnly bool) time.Duration {
	if pollOnly {
		return 250 * time.Millisecond
	}
	return 5 * time.Second
}

// Look has this process look for due work now, without a detour over River.
func (f *Worker) Poll() {
	f.pipeline.Poll()
	f.workflows.poll()
	f.sweep.poll()
}

// wakeAll has this process, and one other, look for due work.
func (f *Worker) pollAll() {
	f.pipeline.Poll()
	f.waker.Wake()
}

// Run works until ctx is over, and then as Pipeline.Run says.
func (f *Worker) Run(ctx context.Context) error {
	defer f.waker.Close()
	if err := ensurePartitions(ctx, f.db); err != nil {
		return err
	}
	// River's context is not ctx: cancelling it would cut jobs short instead
	// of letting them end.
	if err := f.client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("start river client: %w", err)
	}
	f.log.InfoContext(ctx, "worker started")
	var beside sync.WaitGroup
	beside.Go(func() { f.workflows.run(ctx) })
	beside.Go(func() { f.sweep.run(ctx) })
	beside.Go(func() { f.deliver.run(ctx) })
	beside.Go(func() { f.expire.run(ctx) })
	err := f.pipeline.Run(ctx)
	beside.Wait()

	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if stopErr := f.client.Stop(stop); stopErr != nil {
		err = errors.Join(err, fmt.Errorf("stop river client: %w", stopErr))
	}
	f.log.InfoContext(stop, "worker stopped")
	return err
}

// Backlog counts what waits, across tenants.
func Backlog(ctx context.Context, db postgres.Begins) (outbox.Waiting, error) {
	var waiting outbox.Waiting
	err := postgres.InTx(ctx, db, postgres.Worker(), func(tx pgx.Tx) (err error) {
		waiting, err = outbox.Backlog(ctx, tx)
		return err
	})
	return waiting, err
}
