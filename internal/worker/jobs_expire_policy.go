package worker

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// lapseArgs says: note which grants and sessions' modes have expired.
type expirePolicyArgs struct{}

func (expirePolicyArgs) Kind() string { return "countersign_lapse" }

func (expirePolicyArgs) InsertOpts() river.InsertOpts { return periodicOpts() }

type expirePolicyWorker struct {
	river.WorkerDefaults[expirePolicyArgs]
	db postgres.Begins
}

func (w *expirePolicyWorker) Work(ctx context.Context, _ *river.Job[expirePolicyArgs]) error {
	return ExpirePolicy(ctx, w.db)
}

// Lapse notes, a page a transaction, all that has expired of policy. Nothing
// that has expired is obeyed before that either; but what was let through by
// it is looked at again only when the version of its tenant goes up.
func ExpirePolicy(ctx context.Context, db postgres.Begins) error {
	const most = 500
	for taken := most; taken == most; {
		err := postgres.InTx(ctx, db, postgres.Worker(), func(tx pgx.Tx) (err error) {
			taken, err = settings.Expire(ctx, tx, most)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
