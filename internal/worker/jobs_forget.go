package worker

import (
	"context"

	"github.com/riverqueue/river"

	"github.com/countersign-dev/countersign/internal/insight/execution"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// forgetArgs says: delete the dry runs that are old.
type forgetArgs struct{}

func (forgetArgs) Kind() string { return "countersign_forget" }

func (forgetArgs) InsertOpts() river.InsertOpts { return upkeep() }

type forgetWorker struct {
	river.WorkerDefaults[forgetArgs]
	db postgres.Begins
}

func (w *forgetWorker) Work(ctx context.Context, _ *river.Job[forgetArgs]) error {
	return inTurns(ctx, func(more func() bool) (bool, error) { return execution.PruneDryRuns(ctx, w.db, more) })
}
