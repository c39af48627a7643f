package dev

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/embedded"
	"github.com/countersign-dev/countersign/internal/telemetry"
)

// startDatabase connects to the database of the configuration, or starts a
// private server.
func (e *Environment) startDatabase(ctx context.Context) (string, error) {
	if e.cfg.DatabaseURL != "" {
		e.database = e.cfg.DatabaseURL
		return "the one of DATABASE_URL", e.openPool(ctx)
	}
	cfg := embedded.Config{Logger: e.cfg.Log, Download: true, Fast: e.cfg.Dir == ""}
	where := "in a temporary folder"
	if e.cfg.Dir != "" {
		cfg.Dir = filepath.Join(e.dir, "postgres")
		where = "in " + cfg.Dir
	}
	server, err := embedded.Start(ctx, cfg)
	if running, ok := errors.AsType[*embedded.RunningError](err); ok {
		return "", fmt.Errorf("another countersign dev uses %s (its postgres is process %d); stop it, or choose another folder with --data-dir", e.dir, running.Pid)
	}
	if err != nil {
		return "", err
	}
	e.onClose(server.Stop)
	e.database = server.URL()
	return fmt.Sprintf("%s, private, %s", server.Version(), where), e.openPool(ctx)
}

// openPool opens the pool and the telemetry that API and worker share.
func (e *Environment) openPool(ctx context.Context) error {
	pool, err := postgres.Open(ctx, postgres.Config{URL: e.database, MaxConns: poolConns, Name: "countersign-dev"})
	if err != nil {
		return err
	}
	e.pool = pool
	e.onClose(func(context.Context) error {
		pool.Close()
		return nil
	})
	if err := pool.Ping(ctx); err != nil {
		return fmt.Errorf("the database does not answer: %w", err)
	}
	watched, err := telemetry.Setup(ctx, telemetry.Config{Service: "countersign-dev"})
	if err != nil {
		return err
	}
	e.watched = watched
	e.onClose(watched.Shutdown)
	return nil
}

// poolConns are enough for the API, the worker and River side by side.
const poolConns = 20

func (e *Environment) migrate(ctx context.Context) (string, error) {
	m, err := postgres.Migrate(ctx, e.database)
	if err != nil {
		return "", err
	}
	if m.From == m.To {
		return fmt.Sprintf("schema %d, as it was", m.To), nil
	}
	return fmt.Sprintf("schema %d, from %d", m.To, m.From), nil
}
