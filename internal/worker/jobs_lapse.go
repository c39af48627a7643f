package worker

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
)

// lapseArgs says: note which grants and sessions' modes have expired.
type lapseArgs struct{}

func (lapseArgs) Kind() string { return "countersign_lapse" }

func (lapseArgs) InsertOpts() river.InsertOpts { return once() }

type lapseWorker struct {
	river.WorkerDefaults[lapseArgs]
	db postgres.Begins
}

func (w *lapseWorker) Work(ctx context.Context, _ *river.Job[lapseArgs]) error {
	return Lapse(ctx, w.db)
}

// Lapse notes, a page a transaction, all that has expired of policy. Nothing
// that has expired is obeyed before that either; but what was let through by
// it is looked at again only when the version of its tenant goes up.
func Lapse(ctx context.Context, db postgres.Begins) error {
	const most = 500
	for taken := most; taken == most; {
		err := postgres.InTx(ctx, db, postgres.Worker(), func(tx pgx.Tx) (err error) {
			taken, err = catalog.Lapse(ctx, tx, most)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
