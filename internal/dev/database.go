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

// startDatabase finds the database, or starts one that ends with the house.
func (h *House) startDatabase(ctx context.Context) (string, error) {
	if h.cfg.DatabaseURL != "" {
		h.database = h.cfg.DatabaseURL
		return "the one of DATABASE_URL", h.openPool(ctx)
	}
	cfg := embedded.Config{Logger: h.cfg.Log, Download: true, Fast: h.cfg.Dir == ""}
	where := "in a temporary folder"
	if h.cfg.Dir != "" {
		cfg.Dir = filepath.Join(h.dir, "postgres")
		where = "in " + cfg.Dir
	}
	server, err := embedded.Start(ctx, cfg)
	if running, ok := errors.AsType[*embedded.RunningError](err); ok {
		return "", fmt.Errorf("another countersign dev uses %s (its postgres is process %d); stop it, or choose another folder with --data-dir", h.dir, running.Pid)
	}
	if err != nil {
		return "", err
	}
	h.onClose(server.Stop)
	h.database = server.URL()
	return fmt.Sprintf("%s, private, %s", server.Version(), where), h.openPool(ctx)
}

// openPool opens the pool that API and worker share, and what both are watched
// with.
func (h *House) openPool(ctx context.Context) error {
	pool, err := postgres.Open(ctx, postgres.Config{URL: h.database, MaxConns: poolConns, Name: "countersign-dev"})
	if err != nil {
		return err
	}
	h.pool = pool
	h.onClose(func(context.Context) error {
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
	h.watched = watched
	h.onClose(watched.Shutdown)
	return nil
}

// poolConns are enough for the API, the worker and River side by side.
const poolConns = 20

func (h *House) migrate(ctx context.Context) (string, error) {
	m, err := postgres.Migrate(ctx, h.database)
	if err != nil {
		return "", err
	}
	if m.From == m.To {
		return fmt.Sprintf("schema %d, as it was", m.To), nil
	}
	return fmt.Sprintf("schema %d, from %d", m.To, m.From), nil
}
