// Command api serves Countersign's HTTP interface. It is stateless: run as
// many of it as needed.
package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/config"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/listen"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/server/broker"
	"github.com/countersign-dev/countersign/internal/server/mcpserver"
	"github.com/countersign-dev/countersign/internal/server/rest"
	"github.com/countersign-dev/countersign/internal/telemetry"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/worker"
	"github.com/countersign-dev/countersign/web"
)

func main() {
	ctx := config.UntilSignal()
	os.Exit(run(ctx, os.Args[1:], config.TakeEnviron(), os.Stdout, os.Stderr))
}

// run serves until ctx ends and returns the exit code.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	var cfg config.API
	return config.Run(ctx, &cfg, args, environ, stdout, stderr, func() error {
		config.CollectSeldom(environ)
		config.LimitAPIHeap(environ)
		return serve(ctx, cfg, stdout)
	})
}

// serve builds the process and runs it.
func serve(ctx context.Context, cfg config.API, out io.Writer) (err error) {
	tel, err := telemetry.Setup(ctx, telemetry.Config{Service: "countersign-api", Level: cfg.LogLevel, Log: out, Endpoint: cfg.OTLP})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tel.Flush(ctx)) }()
	tel.Log.InfoContext(ctx, "api starting", slog.String("version", telemetry.Version()), slog.Any("config", cfg))
	pool, err := postgres.Open(ctx, postgres.Config{URL: cfg.DatabaseURL, MaxConns: cfg.MaxConns, Pooled: cfg.Pooled, Name: "countersign-api"})
	if err != nil {
		return err
	}
	defer pool.Close()
	ready := func(probe context.Context) error {
		if ctx.Err() != nil {
			return fault.New(fault.Busy, "this process is about to end")
		}
		return postgres.CheckSchema(probe, pool)
	}
	return tel.RunWithProbes(ctx, cfg.MetricsListen, ready, func(ctx context.Context) error {
		if err := postgres.AwaitSchema(ctx, pool, tel.Log); err != nil {
			return err
		}
		return answer(ctx, cfg, tel, pool, ready)
	})
}

// answer builds the server on a migrated database and listens.
func answer(ctx context.Context, cfg config.API, tel *telemetry.Telemetry, pool *pgxpool.Pool, ready func(context.Context) error) error {
	mails, err := account.NewCipher(cfg.TriageKey)
	if err != nil {
		return err
	}
	vault, err := connection.NewCipher(cfg.SecretKey)
	if err != nil {
		return err
	}
	waker := worker.NewWaker(ctx, pool, tel.Log)
	defer waker.Close()
	if cfg.OAuth && (cfg.SecretKey == "" || cfg.Address() == "") {
		return errors.New("COUNTERSIGN_OAUTH needs COUNTERSIGN_SECRET_KEY, the same in every replica, and COUNTERSIGN_PUBLIC_URL")
	}
	cache, db := settings.NewCache(), postgres.Share(pool, cfg.DBWait)
	proposals := intake.New(db, cache, intake.Config{ApprovalWait: cfg.ApprovalWait, Wake: waker.Wake})
	page, err := web.New()
	if err != nil {
		return err
	}
	var events broker.Listen // nil polls
	if !cfg.PollOnly {
		events = postgres.ListenEvents(pool, tel.Log)
	}
	server, err := rest.New(rest.Core{
		DB: db, Catalog: cache, Intake: proposals,
		Approval: approval.New(db, cache, approval.Config{Wake: waker.Wake}),
	}, rest.Config{Vault: vault, MailKey: mails.Key, Wake: waker.Wake, Events: events, Log: tel.Log, Metrics: tel.Metrics, Tracer: tel.Tracer(), PublicURL: cfg.Address(), TrustedProxies: cfg.Limits.TrustedProxies, IssuerNetworks: cfg.IssuerNetworks, SourceNetworks: cfg.SourceNetworks, OAuth: cfg.OAuth, Streams: cfg.TokenStreams, Waits: cfg.TokenWaits, Page: page, Ready: ready})
	if err != nil {
		return err
	}
	defer server.Close()
	front := mcpserver.New(server.Backend(), mcpserver.Config{Version: telemetry.Version(), Wait: cfg.MCPWait})
	defer front.Close()
	server.Mount("/mcp", front)
	// Building the server leaves tens of megabytes of garbage, which an idle process would keep.
	debug.FreeOSMemory()
	return listen.Run(ctx, listen.Config{Address: cfg.Listen, Setting: "COUNTERSIGN_LISTEN", Handler: server, Limits: cfg.Limits, Refused: tel.Metrics.RefusedConnection, Linger: cfg.Linger, Log: tel.Log, End: func() {
		front.Close()
		server.Close()
	}})
}
