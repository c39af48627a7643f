package background

import (
	"context"
	"log/slog"
	"slices"
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
	// refreshArgs lists sources whose listing is old or for which a listing was requested.
	refreshArgs struct{ refreshJob }
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

func (refreshArgs) Kind() string        { return "countersign_refresh" }
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

// periodic are the jobs of every minute, hour and day.
func periodic() []river.InsertManyParams {
	every := func(period time.Duration, all ...river.JobArgs) (jobs []river.InsertManyParams) {
		for _, args := range all {
			jobs = append(jobs, river.InsertManyParams{Args: args, InsertOpts: &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByPeriod: period}}})
		}
		return jobs
	}
	return slices.Concat(
		every(time.Minute, calendarArgs{}, checkpointArgs{}, sampleArgs{}, pruneProposalsArgs{}),
		every(time.Hour, partitionArgs{}, pruneSessionsArgs{}, pruneWorkflowsArgs{}),
		every(24*time.Hour, retentionArgs{}, pruneSamplesArgs{}, pruneDryRunsArgs{}),
	)
}

// workersOf returns River's workers for each kind of job, which record their work. A
// source's listing is refreshed after age.
func workersOf(db postgres.Begins, cache *settings.Cache, live *connection.Pool, age time.Duration, log *slog.Logger, record *activity) *river.Workers {
	refresher := connection.NewRefresher(db, cache, live, log)
	all := recorded{river.NewWorkers(), record}
	add(all, func(ctx context.Context, _ refreshArgs) error { return refresher.RefreshStale(ctx, age) })
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
	return all.Workers
}

// recorded are River's workers, whose work is recorded.
type recorded struct {
	*river.Workers
	record *activity
}

// job is a kind of job whose work is a function.
type job[T river.JobArgs] struct {
	river.WorkerDefaults[T]
	work   func(context.Context, T) error
	record *activity
}

// Work does the job.
func (j *job[T]) Work(ctx context.Context, work *river.Job[T]) error {
	defer j.record.begin()()
	return j.work(ctx, work.Args)
}

func add[T river.JobArgs](workers recorded, work func(context.Context, T) error) {
	river.AddWorker(workers.Workers, &job[T]{work: work, record: workers.record})
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
