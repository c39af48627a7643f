package worker

import (
	"context"
	"time"

	"github.com/riverqueue/river"

	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/retention"
)

const (
	// queueUpkeep is apart from the other periodic jobs, which must not wait
	// for what goes through much data.
	queueMaintenance = "countersign_maintenance"
	// upkeepFor is how long one such job goes on before it makes room for
	// another, and upkeepPause when it comes back.
	maintenanceFor   = 5 * time.Second
	maintenancePause = time.Second
)

func maintenanceOpts() river.InsertOpts {
	return river.InsertOpts{Queue: queueMaintenance, MaxAttempts: 1}
}

// inTurns does a part of some work, and has River bring the job back for the
// rest.
func inTurns(ctx context.Context, work func(more func() bool) (bool, error)) error {
	until := time.Now().Add(maintenanceFor)
	done, err := work(func() bool { return time.Now().Before(until) && ctx.Err() == nil })
	if err != nil || done || ctx.Err() != nil {
		return err
	}
	return river.JobSnooze(maintenancePause)
}

// checkpointArgs says: seal the events that are complete.
type checkpointArgs struct{}

func (checkpointArgs) Kind() string { return "countersign_checkpoint" }

func (checkpointArgs) InsertOpts() river.InsertOpts { return maintenanceOpts() }

type checkpointWorker struct {
	river.WorkerDefaults[checkpointArgs]
	db postgres.Begins
}

func (w *checkpointWorker) Work(ctx context.Context, _ *river.Job[checkpointArgs]) error {
	return inTurns(ctx, func(more func() bool) (bool, error) { return audit.CheckpointAll(ctx, w.db, more) })
}

// retentionArgs says: delete what is past what its tenant keeps.
type retentionArgs struct{}

func (retentionArgs) Kind() string { return "countersign_retention" }

func (retentionArgs) InsertOpts() river.InsertOpts { return maintenanceOpts() }

type retentionWorker struct {
	river.WorkerDefaults[retentionArgs]
	db postgres.Begins
}

func (w *retentionWorker) Work(ctx context.Context, _ *river.Job[retentionArgs]) error {
	return inTurns(ctx, func(more func() bool) (bool, error) { return retention.Sweep(ctx, w.db, more) })
}
