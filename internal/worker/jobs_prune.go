package worker

import (
	"context"

	"github.com/riverqueue/river"

	"github.com/countersign-dev/countersign/internal/insight/execution"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// pruneDryRunsArgs says: delete the dry runs that are old.
type pruneDryRunsArgs struct{}

func (pruneDryRunsArgs) Kind() string { return "countersign_prune_dry_runs" }

func (pruneDryRunsArgs) InsertOpts() river.InsertOpts { return maintenanceOpts() }

type pruneDryRunsWorker struct {
	river.WorkerDefaults[pruneDryRunsArgs]
	db postgres.Begins
}

func (w *pruneDryRunsWorker) Work(ctx context.Context, _ *river.Job[pruneDryRunsArgs]) error {
	return inTurns(ctx, func(more func() bool) (bool, error) { return execution.PruneDryRuns(ctx, w.db, more) })
}
