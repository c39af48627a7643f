package background

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/proposal"
	"github.com/countersign-dev/countersign/internal/action/workflow"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/connection/calendar"
	"github.com/countersign-dev/countersign/internal/insight/execution"
	"github.com/countersign-dev/countersign/internal/insight/overview"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/retention"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

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

// Queues returns River's queues with the jobs of each that a process works at.
func Queues() map[string]river.QueueConfig {
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

// Every worker process requests a refresh when one is due; one per interval is
// enough for all of them.
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
	// RefreshArgs are the arguments of the job that lists sources whose listing is old or for which a listing
	// was requested.
	RefreshArgs struct{ refreshJob }
	// calendarArgs reads the calendars of briefs.
	calendarArgs struct{ refreshJob }
	// partitionArgs makes the coming partitions of the execution log.
	partitionArgs struct{ maintenanceJob }
	// checkpointArgs writes checkpoints of the events that are complete.
	checkpointArgs struct{ maintenanceJob }
	// retentionArgs deletes rows that are past the retention of their tenant.
	retentionArgs struct{ maintenanceJob }
	// sampleArgs stores the backlogs of this minute.
	sampleArgs struct{ maintenanceJob }
	// pruneSamplesArgs deletes old samples of backlogs.
	pruneSamplesArgs struct{ maintenanceJob }
	// pruneDryRunsArgs deletes old dry runs.
	pruneDryRunsArgs struct{ maintenanceJob }
	// pruneProposalsArgs deletes old answers to proposals.
	pruneProposalsArgs struct{ maintenanceJob }
	// pruneSessionsArgs deletes the counters of sessions that are idle.
	pruneSessionsArgs struct{ maintenanceJob }
	// pruneWorkflowsArgs deletes workflows whose steps retention has deleted.
	pruneWorkflowsArgs struct{ maintenanceJob }
)

// Kind implements river.JobArgs.
func (RefreshArgs) Kind() string { return "countersign_refresh" }

func (calendarArgs) Kind() string       { return "countersign_calendars" }
func (partitionArgs) Kind() string      { return "countersign_partition" }
func (checkpointArgs) Kind() string     { return "countersign_checkpoint" }
func (retentionArgs) Kind() string      { return "countersign_retention" }
func (sampleArgs) Kind() string         { return "countersign_sample" }
func (pruneSamplesArgs) Kind() string   { return "countersign_prune_samples" }
func (pruneDryRunsArgs) Kind() string   { return "countersign_prune_dry_runs" }
func (pruneProposalsArgs) Kind() string { return "countersign_prune_proposals" }
func (pruneSessionsArgs) Kind() string  { return "countersign_prune_sessions" }
func (pruneWorkflowsArgs) Kind() string { return "countersign_prune_workflows" }

// PeriodicJobs returns the jobs that the fleet's leader inserts.
func PeriodicJobs() []*river.PeriodicJob {
	every := func(d time.Duration, args river.JobArgs) *river.PeriodicJob {
		return river.NewPeriodicJob(river.PeriodicInterval(d),
			func() (river.JobArgs, *river.InsertOpts) { return args, nil },
			&river.PeriodicJobOpts{RunOnStart: true})
	}
	return []*river.PeriodicJob{
		every(time.Minute, calendarArgs{}),
		every(time.Hour, partitionArgs{}),
		every(time.Minute, checkpointArgs{}),
		every(24*time.Hour, retentionArgs{}),
		every(time.Minute, sampleArgs{}),
		every(24*time.Hour, pruneSamplesArgs{}),
		every(24*time.Hour, pruneDryRunsArgs{}),
		every(time.Minute, pruneProposalsArgs{}),
		every(time.Hour, pruneSessionsArgs{}),
		every(time.Hour, pruneWorkflowsArgs{}),
	}
}

// Jobs returns River's workers for each kind of job. A source's listing is refreshed
// after age.
func Jobs(db postgres.Begins, cache *settings.Cache, live *connection.Pool, age time.Duration, log *slog.Logger) *river.Workers {
	refresher := connection.NewRefresher(db, cache, live, log)
	all := river.NewWorkers()
	add(all, func(ctx context.Context, _ RefreshArgs) error { return refresher.RefreshStale(ctx, age) })
	calendars := calendar.New(db, cache, live, log)
	add(all, func(ctx context.Context, _ calendarArgs) error { return calendars.Read(ctx, time.Now()) })
	add(all, func(ctx context.Context, _ partitionArgs) error { return EnsurePartitions(ctx, db) })
	add(all, func(ctx context.Context, _ checkpointArgs) error {
		return inParts(ctx, func(more func() bool) (bool, error) { return audit.CheckpointAll(ctx, db, more) })
	})
	add(all, func(ctx context.Context, _ retentionArgs) error {
		return inParts(ctx, func(more func() bool) (bool, error) { return retention.Sweep(ctx, db, more) })
	})
	add(all, func(ctx context.Context, _ sampleArgs) error { return overview.Sample(ctx, db) })
	add(all, func(ctx context.Context, _ pruneSamplesArgs) error { return overview.PruneSamples(ctx, db) })
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

// EnsurePartitions makes the partitions of the execution log for the coming months.
func EnsurePartitions(ctx context.Context, db postgres.Begins) error {
	return postgres.InTx(ctx, db, postgres.Worker(), func(tx pgx.Tx) error {
		return audit.EnsurePartitions(ctx, tx, 2)
	})
}
