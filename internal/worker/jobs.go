package worker

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/workflow"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/insight/execution"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source/connect"
	"github.com/countersign-dev/countersign/internal/tenant/retention"
)

const (
	queuePoll = "countersign_poll"
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
	return map[string]river.QueueConfig{queuePoll: two, queueRefresh: two, queueMaintenance: two}
}

// The arguments of jobs embed one of these types, which has the options of all
// jobs of a queue: a job is tried once, since the next comes soon.
type (
	pollJob        struct{}
	refreshJob     struct{}
	maintenanceJob struct{}
)

func (pollJob) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: queuePoll, MaxAttempts: 1}
}

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
	// pollArgs polls for due work.
	pollArgs struct{ pollJob }
	// refreshArgs lists the sources whose listing is old, or was asked for.
	refreshArgs struct{ refreshJob }
	// partitionArgs makes the coming partitions of the execution log.
	partitionArgs struct{ maintenanceJob }
	// checkpointArgs writes checkpoints of the events that are complete.
	checkpointArgs struct{ maintenanceJob }
	// retentionArgs deletes what is past the retention of its tenant.
	retentionArgs struct{ maintenanceJob }
	// pruneDryRunsArgs deletes old dry runs.
	pruneDryRunsArgs struct{ maintenanceJob }
	// pruneSessionsArgs deletes the counters of sessions that are idle.
	pruneSessionsArgs struct{ maintenanceJob }
	// pruneWorkflowsArgs deletes workflows whose steps retention deleted.
	pruneWorkflowsArgs struct{ maintenanceJob }
)

func (pollArgs) Kind() string           { return "countersign_poll" }
func (refreshArgs) Kind() string        { return "countersign_refresh" }
func (partitionArgs) Kind() string      { return "countersign_partition" }
func (checkpointArgs) Kind() string     { return "countersign_checkpoint" }
func (retentionArgs) Kind() string      { return "countersign_retention" }
func (pruneDryRunsArgs) Kind() string   { return "countersign_prune_dry_runs" }
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
		every(time.Hour, pruneSessionsArgs{}),
		every(time.Hour, pruneWorkflowsArgs{}),
	}
}

// jobs returns what River calls for each kind of job.
func jobs(db postgres.Begins, refresher *connect.Refresher, age time.Duration, poll func()) *river.Workers {
	all := river.NewWorkers()
	add(all, func(context.Context, pollArgs) error {
		poll()
		return nil
	})
	var refreshing sync.Mutex
	add(all, func(ctx context.Context, _ refreshArgs) error {
		// A source that hangs is not asked again meanwhile, nor does it fill the
		// queue.
		if !refreshing.TryLock() {
			return nil
		}
		defer refreshing.Unlock()
		return refresher.RefreshStale(ctx, age)
	})
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
