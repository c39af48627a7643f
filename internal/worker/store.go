package worker

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// backgroundWork reports which loops have work, and whether a source's listing is older
// than age and must be refreshed.
func backgroundWork(ctx context.Context, db postgres.Begins, age time.Duration) (work dbsqlc.BackgroundDueRow, err error) {
	ctx, cancel := context.WithTimeout(ctx, txTimeout)
	defer cancel()
	err = postgres.InTx(ctx, db, postgres.Worker().Alone(), func(tx pgx.Tx) (err error) {
		work, err = dbsqlc.New().BackgroundDue(ctx, tx, age.Seconds())
		return err
	})
	return work, err
}
