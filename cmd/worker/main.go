// Command worker is one process of the fleet: it claims what is due, calls the
// tools and commits what became of it, until SIGTERM asks it to drain.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/internal/insight/overview"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/connect"
	"github.com/countersign-dev/countersign/internal/telemetry"
	"github.com/countersign-dev/countersign/internal/tenant/notebook"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/worker"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks to drain; a second one has its usual effect.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// run works until ctx ends and returns the exit code: 2 for a configuration
// that cannot be used, 1 if the worker could not go on.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		if args[0] == "--help" || args[0] == "-help" || args[0] == "-h" {
			usage(stdout)
			return 0
		}
		fmt.Fprintln(stderr, "worker: it takes no arguments; --help lists the variables that configure it")
		return 2
	}
	cfg, err := configFrom(getenv)
	if err != nil {
		fmt.Fprintf(stderr, "worker: the configuration cannot be used:\n%v\n", err)
		return 2
	}
	err = work(ctx, cfg, stdout)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil // it was asked to end before it had begun to work
	}
	if err != nil {
		fmt.Fprintln(stderr, "worker:", err)
		return 1
	}
	return 0
}

// work builds the process and runs it.
func work(ctx context.Context, cfg config, out io.Writer) (err error) {
	watched, err := telemetry.Setup(ctx, telemetry.Config{
		Service: "countersign-worker", Version: version(), Level: cfg.level, Log: out, Endpoint: cfg.otlp,
	})
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		err = errors.Join(err, watched.Shutdown(end))
	}()
	log := watched.Log
	log.InfoContext(ctx, "worker starting", slog.String("version", version()), slog.Any("config", cfg))
	pool, err := postgres.Open(ctx, postgres.Config{URL: cfg.database, MaxConns: cfg.conns, Pooled: cfg.pooled, Name: "countersign-worker"})
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := usable(ctx, pool); err != nil {
		return err
	}
	unobserve, err := watched.Metrics.ObserveStanding(overview.Reader(pool))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unobserve()) }()
	live := connect.NewLive(cfg.vault, source.BreakerConfig{}, log)
	live.Stdio = cfg.stdio
	live.Notes = notebook.NewBook(pool).Of
	defer live.Close()
	fleet, err := worker.New(ctx, pool, settings.NewCache(), live, worker.Config{PollOnly: cfg.pollOnly, Pipeline: worker.PipelineConfig{
		ID: cfg.id, Concurrency: cfg.concurrency, Batch: cfg.batch, Lease: cfg.lease, Grace: cfg.grace,
		Log: log, Metrics: watched.Metrics, Tracer: watched.Tracer(),
	}})
	if err != nil {
		return err
	}
	return runBeside(ctx, cfg.metricsListen, probes(pool, watched), log, fleet.Run)
}

// usable says what to do about a database that is not ready for a worker.
func usable(ctx context.Context, pool *pgxpool.Pool) error {
	if err := pool.Ping(ctx); err != nil {
		return fmt.Errorf("the database of %s does not answer: %w", varDatabase, err)
	}
	if _, err := worker.Backlog(ctx, pool); err != nil {
		return fmt.Errorf("the database cannot be worked on; run `countersign migrate` first: %w", err)
	}
	return nil
}
