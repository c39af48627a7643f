// Command worker claims actions that are due, calls their tools and commits the
// outcomes, until SIGTERM drains it. Run as many as needed.
package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/fence"
	"github.com/countersign-dev/countersign/internal/action/fence/configmap"
	"github.com/countersign-dev/countersign/internal/config"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/connection/login"
	"github.com/countersign-dev/countersign/internal/insight/overview"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source/mail"
	"github.com/countersign-dev/countersign/internal/telemetry"
	"github.com/countersign-dev/countersign/internal/tenant/notebook"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/worker"
	"github.com/countersign-dev/countersign/web"
)

func main() {
	ctx := config.UntilSignal()
	os.Exit(run(ctx, os.Args[1:], config.TakeEnviron(), os.Stdout, os.Stderr))
}

// run works until ctx ends and returns the exit code.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	var cfg config.Worker
	return config.Run(ctx, &cfg, args, environ, stdout, stderr, func() error {
		config.CollectSeldom(environ)
		config.LimitHeap(environ)
		return work(ctx, cfg, stdout)
	})
}

// work builds the process and runs it.
func work(ctx context.Context, cfg config.Worker, out io.Writer) (err error) {
	tel, err := telemetry.Setup(ctx, telemetry.Config{
		Service: "countersign-worker", Instance: cfg.ID, Level: cfg.LogLevel, Log: out, Endpoint: cfg.OTLP,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tel.Flush(ctx)) }()
	log := tel.Log
	log.InfoContext(ctx, "worker starting", slog.String("version", telemetry.Version()), slog.Any("config", cfg))
	pool, err := postgres.Open(ctx, postgres.Config{URL: cfg.DatabaseURL, MaxConns: cfg.MaxConns, Pooled: cfg.Pooled, Name: "countersign-worker"})
	if err != nil {
		return err
	}
	defer pool.Close()
	ready := func(ctx context.Context) error { return postgres.CheckSchema(ctx, pool) }
	return tel.RunWithProbes(ctx, cfg.MetricsListen, ready, func(ctx context.Context) error {
		if err := postgres.AwaitSchema(ctx, pool, log); err != nil {
			return err
		}
		return process(ctx, cfg, tel, pool)
	})
}

// process claims actions of a migrated database until ctx ends.
func process(ctx context.Context, cfg config.Worker, tel *telemetry.Telemetry, pool *pgxpool.Pool) (err error) {
	log := tel.Log
	vault, err := connection.NewCipher(cfg.SecretKey)
	if err != nil {
		return err
	}
	unobserve, err := overview.Observe(tel.Meter(), overview.Reader(pool))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unobserve()) }()
	logins := login.New(pool, vault, cfg.SourceNetworks, log)
	live := connection.NewPool(connection.Config{
		Tokens: logins.Of, Cipher: vault, Networks: cfg.SourceNetworks, Stdio: func(envelope.TenantID) bool { return cfg.StdioSources },
		Maildir: mail.Below(cfg.Maildirs), Notes: notebook.NewBook(pool).Of, SkippedLine: tel.Metrics.SkippedLine, Log: log,
	})
	defer live.Close()
	host, _ := os.Hostname() // empty on an error
	fenced := fence.Config{Name: cfg.ID, Lease: cfg.Lease, Host: host, Version: telemetry.Version(), Concurrency: cfg.Concurrency, Database: cfg.DatabaseID, File: cfg.StateFile, Log: log}
	if cfg.StateConfigMap != "" {
		if fenced.Memory, err = configmap.InCluster(cfg.StateConfigMap); err != nil {
			return err
		}
	}
	guard := fence.New(pool, fenced)
	if err := guard.Load(); err != nil {
		return err
	}
	fleet, err := worker.New(ctx, pool, settings.NewCache(), live, worker.Config{RenewLogins: logins.RenewDue, PollOnly: cfg.PollOnly, Links: web.Base(cfg.PublicURL), Pipeline: worker.PipelineConfig{
		ID: cfg.ID, Concurrency: cfg.Concurrency, Batch: cfg.Batch, Lease: cfg.Lease, Grace: cfg.Grace,
		Guard: guard, Log: log, Metrics: tel.Metrics, Tracer: tel.Tracer(),
	}})
	if err != nil {
		return err
	}
	return fleet.Run(ctx)
}
