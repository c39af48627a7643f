package worker

import (
	"context"

	"github.com/riverqueue/river"

	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// pruneSessionsArgs says: forget what sessions used that propose nothing any
// more.
type pruneSessionsArgs struct{}

func (pruneSessionsArgs) Kind() string { return "countersign_prune_sessions" }

func (pruneSessionsArgs) InsertOpts() river.InsertOpts { return maintenanceOpts() }

type pruneSessionsWorker struct {
	river.WorkerDefaults[pruneSessionsArgs]
	db postgres.Begins
}

func (w *pruneSessionsWorker) Work(ctx context.Context, _ *river.Job[pruneSessionsArgs]) error {
	_, err := intake.PruneSessions(ctx, w.db)
	return err
}
