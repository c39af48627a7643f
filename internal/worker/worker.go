// Package worker executes actions: it claims due actions, rechecks policy and the
// preflight checks, calls the tools and commits the outcomes. Notifications wake
// it; River elects the process that starts the periodic
// jobs, and runs those; the state is in the outbox alone. The package has no
// rules of its own: policy, checks, outcomes and settlements are decided in the
// packages below.
package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/proposal"
	"github.com/countersign-dev/countersign/internal/action/reconcile"
	"github.com/countersign-dev/countersign/internal/action/subscription"
	"github.com/countersign-dev/countersign/internal/action/workflow"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/insight/execution"
	"github.com/countersign-dev/countersign/internal/link"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source/connect"
	"github.com/countersign-dev/countersign/internal/tenant/retention"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// Config configures a Worker. Its zero value has the defaults below.
type Config struct {
	Pipeline PipelineConfig
	// PollOnly does without LISTEN, for databases behind a pooler in
	// transaction mode.
	PollOnly bool
	// CatalogAge is how old a source's listing may get: 5 minutes.
	CatalogAge time.Duration
	// Links is where messages lead to.
	Links link.Base
}

// Worker is one worker process: a pipeline, the loops and River's client.
type Worker struct {
	db       *pgxpool.Pool
	pipeline *Pipeline
	client   *river.Client[pgx.Tx]
	waker    *Waker
	log      *slog.Logger

	watch, release                                   *loop
	take, sweep, deliver, expire, reconcile, advance *loop
	workflows                                        workflows
	// subscribed reports whether subscriptions had messages at some time, so that
	// events may have some again.
	subscribed atomic.Bool
	// listen wakes loops on notifications until a context ends; nil with PollOnly.
	listen func(context.Context)
}

// New returns a Worker, which Run starts.
func New(ctx context.Context, db *pgxpool.Pool, cache *settings.Cache, live *connect.Pool, cfg Config) (*Worker, error) {
	cfg.CatalogAge = cmp.Or(cfg.CatalogAge, 5*time.Minute)
	cfg.Pipeline.fill()
	log := cfg.Pipeline.Log
	waker := newWaker(ctx, db, cfg.Pipeline.ID, log)
	cfg.Pipeline.Backlog = waker.Wake
	if cfg.PollOnly {
		cfg.Pipeline.Poll = min(cfg.Pipeline.Poll, pollOnlyEvery)
	}
	f := &Worker{db: db, waker: waker, log: log}
	in := intake.New(db, cache, intake.Config{ApprovalWait: cfg.Pipeline.ApprovalWait, Wake: f.Wake})
	f.workflows.driver = workflow.NewDriver(db, in, log)
	f.watch = newLoop("look for work", lookEvery, log, f.look(cfg.CatalogAge))
	f.take = newLoop("take proposals", 0, log, takeProposals(proposal.NewTaker(db, in, log)))
	if !cfg.PollOnly {
		f.listen = func(ctx context.Context) {
			postgres.Listen(ctx, db, []string{proposalsChannel, workChannel, postgres.EventsChannel}, f.notified, log)
		}
	}
	f.sweep = newLoop("sweep pauses", sweepDebounce, log, func(ctx context.Context) (time.Duration, error) { return 0, Sweep(ctx, db, f.Wake) })
	f.deliver = newLoop("deliver messages", deliverDebounce, log, deliver(subscription.NewRelay(db, cache, in, cfg.Links, log)))
	f.expire = newLoop("expire decisions and policy", expireDebounce, log, expire(db))
	f.advance = newLoop("advance workflows", workflowDebounce, log, f.workflows.advance)
	f.advance.idle = workflowIdle
	f.release = newLoop("close replaced connections", 0, log, func(context.Context) (time.Duration, error) {
		live.Sweep()
		return releaseEvery, nil
	})
	cfg.Pipeline.Settled = func() {
		if f.workflows.live.Load() {
			f.advance.poll()
		}
	}
	f.pipeline = NewPipeline(db, cache, live, cfg.Pipeline)
	f.reconcile = newLoop("reconcile unknown outcomes", reconcileDebounce, log, reconciliations(reconcile.New(db, cache, live, reconcile.Config{Log: log}), f.pipeline.Poll))

	var err error
	f.client, err = river.NewClient(riverpgxv5.New(db), &river.Config{
		Schema:            postgres.RiverSchema,
		ID:                cfg.Pipeline.ID,
		Logger:            warnOnly(log),
		PollOnly:          cfg.PollOnly,
		FetchCooldown:     2 * time.Millisecond,
		FetchPollInterval: fetchPoll(cfg.PollOnly),
		Queues:            queues(),
		Workers:           jobs(db, connect.NewRefresher(db, cache, live, log), cfg.CatalogAge),
		PeriodicJobs:      periodicJobs(),
	})
	if err != nil {
		waker.Close()
		return nil, fmt.Errorf("new river client: %w", err)
	}
	return f, nil
}

// releaseEvery is longer than a call may take, which may still run on a
// connection that was replaced.
const releaseEvery = time.Minute

// fetchPoll returns how often River looks for jobs in every queue. Where LISTEN
// works it is told of each job, and polls only for notifications that were
// lost with a connection; a process looks for due work by itself in any case.
func fetchPoll(pollOnly bool) time.Duration {
	if pollOnly {
		return 250 * time.Millisecond
	}
	return 15 * time.Second
}

// proposalsChannel is the channel that countersign.propose notifies.
const proposalsChannel = "countersign_proposals"

// pollOnlyEvery is how often a worker that is not notified polls for due work.
const pollOnlyEvery = 100 * time.Millisecond

// notified wakes the loops that a notification is for; all of them without a channel.
func (f *Worker) notified(channel, payload string) {
	switch channel {
	case proposalsChannel:
		f.take.poll()
		return
	case workChannel:
		if payload != "" && payload == f.waker.name {
			return // it has looked
		}
		f.pipeline.notified()
		f.advance.poll()
		f.sweep.poll()
		return
	case "":
		f.take.poll()
		f.Poll()
	}
	if f.workflows.live.Load() {
		f.advance.poll()
	}
	if f.subscribed.Load() {
		f.deliver.poll()
	}
}

// Poll polls for due work in this process now.
func (f *Worker) Poll() {
	f.pipeline.Poll()
	f.advance.poll()
	f.sweep.poll()
}

// Wake has this process look for due work now, and the others soon. It does not
// block.
func (f *Worker) Wake() {
	f.Poll()
	f.waker.Wake()
}

// Run works until ctx ends, and then drains as Pipeline.Run does.
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
	if f.listen != nil {
		beside.Go(func() { f.listen(ctx) })
	}
	for _, l := range []*loop{f.watch, f.release, f.take, f.sweep, f.deliver, f.expire, f.reconcile, f.advance} {
		beside.Go(func() { l.run(ctx) })
	}
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

const (
	// queueRefresh is separate, since a source that is listed may hang.
	queueRefresh = "countersign_refresh"
	// queueMaintenance has the jobs that go through much data.
	queueMaintenance = "countersign_maintenance"

	// maintenanceFor is the time after which a maintenance job makes room for
	// another, and maintenancePause the time until it continues.
	maintenanceFor   = 5 * time.Second
	maintenancePause = time.Second
)

// queues returns River's queues with the jobs of each that a process works at.
func queues() map[string]river.QueueConfig {
	two := river.QueueConfig{MaxWorkers: 2}
	// A refresh takes as long as its slowest source, and others begin meanwhile.
	return map[string]river.QueueConfig{queueRefresh: {MaxWorkers: 20}, queueMaintenance: two}
}

// The arguments of jobs embed one of these types, which has the options of all
// jobs of a queue: a job is tried once, since the next comes soon.
type (
	refreshJob     struct{}
	maintenanceJob struct{}
)

// Every worker process asks for a refresh when it finds one due; one in a while
// is enough for the fleet.
func (refreshJob) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: queueRefresh, MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByPeriod: refreshEvery}}
}

func (maintenanceJob) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: queueMaintenance, MaxAttempts: 1}
}

// refreshEvery is the least time between two refreshes.
const refreshEvery = 5 * time.Second

// The jobs.
type (
	// refreshArgs lists the sources whose listing is old, or was asked for.
	refreshArgs struct{ refreshJob }
	// partitionArgs makes the coming partitions of the execution log.
	partitionArgs struct{ maintenanceJob }
	// checkpointArgs writes checkpoints of the events that are complete.
	checkpointArgs struct{ maintenanceJob }
	// retentionArgs deletes rows that are past the retention of their tenant.
	retentionArgs struct{ maintenanceJob }
	// pruneDryRunsArgs deletes old dry runs.
	pruneDryRunsArgs struct{ maintenanceJob }
	// pruneProposalsArgs deletes old answers to proposals.
	pruneProposalsArgs struct{ maintenanceJob }
	// pruneSessionsArgs deletes the counters of sessions that are idle.
	pruneSessionsArgs struct{ maintenanceJob }
	// pruneWorkflowsArgs deletes workflows whose steps retention deleted.
	pruneWorkflowsArgs struct{ maintenanceJob }
)

func (refreshArgs) Kind() string        { return "countersign_refresh" }
func (partitionArgs) Kind() string      { return "countersign_partition" }
func (checkpointArgs) Kind() string     { return "countersign_checkpoint" }
func (retentionArgs) Kind() string      { return "countersign_retention" }
func (pruneDryRunsArgs) Kind() string   { return "countersign_prune_dry_runs" }
func (pruneProposalsArgs) Kind() string { return "countersign_prune_proposals" }
func (pruneSessionsArgs) Kind() string  { return "countersign_prune_sessions" }
func (pruneWorkflowsArgs) Kind() string { return "countersign_prune_workflows" }

// periodicJobs returns the jobs that the fleet's leader inserts.
func periodicJobs() []*river.PeriodicJob {
	every := func(d time.Duration, args river.JobArgs) *river.PeriodicJob {
		return river.NewPeriodicJob(river.PeriodicInterval(d),
			func() (river.JobArgs, *river.InsertOpts) { return args, nil },
			&river.PeriodicJobOpts{RunOnStart: true})
	}
	return []*river.PeriodicJob{
		every(time.Hour, partitionArgs{}),
		every(time.Minute, checkpointArgs{}),
		every(24*time.Hour, retentionArgs{}),
		every(24*time.Hour, pruneDryRunsArgs{}),
		every(time.Minute, pruneProposalsArgs{}),
		every(time.Hour, pruneSessionsArgs{}),
		every(time.Hour, pruneWorkflowsArgs{}),
	}
}

// jobs returns what River calls for each kind of job.
func jobs(db postgres.Begins, refresher *connect.Refresher, age time.Duration) *river.Workers {
	all := river.NewWorkers()
	add(all, func(ctx context.Context, _ refreshArgs) error { return refresher.RefreshStale(ctx, age) })
	add(all, func(ctx context.Context, _ partitionArgs) error { return ensurePartitions(ctx, db) })
	add(all, func(ctx context.Context, _ checkpointArgs) error {
		return inParts(ctx, func(more func() bool) (bool, error) { return audit.CheckpointAll(ctx, db, more) })
	})
	add(all, func(ctx context.Context, _ retentionArgs) error {
		return inParts(ctx, func(more func() bool) (bool, error) { return retention.Sweep(ctx, db, more) })
	})
	add(all, func(ctx context.Context, _ pruneDryRunsArgs) error {
		return inParts(ctx, func(more func() bool) (bool, error) { return execution.PruneDryRuns(ctx, db, more) })
	})
	add(all, func(ctx context.Context, _ pruneProposalsArgs) error {
		return inParts(ctx, func(more func() bool) (bool, error) { return proposal.Prune(ctx, db, more) })
	})
	add(all, func(ctx context.Context, _ pruneSessionsArgs) error {
		_, err := intake.PruneSessions(ctx, db)
		return err
	})
	add(all, func(ctx context.Context, _ pruneWorkflowsArgs) error {
		return inParts(ctx, func(more func() bool) (bool, error) {
			for more() {
				if n, err := workflow.Prune(ctx, db); err != nil || n == 0 {
					return err == nil, err
				}
			}
			return false, nil
		})
	})
	return all
}

// job is a kind of job whose work is a function.
type job[T river.JobArgs] struct {
	river.WorkerDefaults[T]
	work func(context.Context, T) error
}

// Work does the job.
func (j *job[T]) Work(ctx context.Context, work *river.Job[T]) error { return j.work(ctx, work.Args) }

func add[T river.JobArgs](workers *river.Workers, work func(context.Context, T) error) {
	river.AddWorker(workers, &job[T]{work: work})
}

// inParts does a part of some work, and has River continue the job later if
// work is left.
func inParts(ctx context.Context, work func(more func() bool) (bool, error)) error {
	until := time.Now().Add(maintenanceFor)
	done, err := work(func() bool { return time.Now().Before(until) && ctx.Err() == nil })
	if err != nil || done || ctx.Err() != nil {
		return err
	}
	return river.JobSnooze(maintenancePause)
}

func ensurePartitions(ctx context.Context, db postgres.Begins) error {
	return postgres.InTx(ctx, db, postgres.Worker(), func(tx pgx.Tx) error {
		return audit.EnsurePartitions(ctx, tx, 2)
	})
}
