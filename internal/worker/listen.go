package worker

import (
	"context"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// proposalsChannel is the channel that countersign.propose notifies.
const proposalsChannel = "countersign_proposals"

// listen calls notified for each notification, on a connection of its own that it
// opens again whenever it is lost, until ctx ends. What was proposed meanwhile is
// found by the next look for work.
func listen(ctx context.Context, db *pgxpool.Pool, notified func(), log *slog.Logger) {
	pause := backoff.NewExponentialBackOff(backoff.WithInitialInterval(100*time.Millisecond), backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(0))
	_ = backoff.RetryNotify(func() error {
		return listenOnce(ctx, db, func() {
			pause.Reset()
			notified()
		})
	}, backoff.WithContext(pause, ctx), func(err error, after time.Duration) {
		log.WarnContext(ctx, "not notified of proposals", slog.Duration("retry_in", after), slog.Any("error", err))
	})
}

// listenOnce listens until the connection is lost or ctx ends.
func listenOnce(ctx context.Context, db *pgxpool.Pool, notified func()) error {
	config := db.Config().ConnConfig.Copy()
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "LISTEN "+proposalsChannel); err != nil {
		return err
	}
	for notified(); ; notified() {
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return err
		}
	}
}
