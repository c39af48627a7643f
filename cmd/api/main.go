// Command api serves Countersign's HTTP interface. It is stateless: run as
// many of it as needed.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/config"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/server/mcpserver"
	"github.com/countersign-dev/countersign/internal/server/rest"
	"github.com/countersign-dev/countersign/internal/source/connect"
	"github.com/countersign-dev/countersign/internal/telemetry"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/worker"
	"github.com/countersign-dev/countersign/web"
)

// drainFor bounds how long running requests may take to end.
const drainFor = 10 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks for an orderly end; a second one has its usual
	// effect.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], config.TakeEnviron(), os.Stdout, os.Stderr))
}

// run serves until ctx ends and returns the exit code.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	var cfg config.API
	if exit, ended := config.Start(&cfg, args, environ, stdout, stderr); ended {
		return exit
	}
	if err := serve(ctx, cfg, stdout); err != nil {
		fmt.Fprintln(stderr, "api:", err)
		return config.ExitFailed
	}
	return config.ExitOK
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
	ready := func(ctx context.Context) error { return postgres.CheckSchema(ctx, pool) }
	if err := ready(ctx); err != nil {
		return err
	}
	mails, err := account.NewCipher(cfg.TriageKey)
	if err != nil {
		return err
	}
	vault, err := connect.NewCipher(cfg.SecretKey)
	if err != nil {
		return err
	}
	waker, err := worker.NewWaker(ctx, pool, tel.Log)
	if err != nil {
		return err
	}
	defer waker.Close()
	cache, db := settings.NewCache(), postgres.Share(pool)
	proposals := intake.New(db, cache, intake.Config{ApprovalWait: cfg.ApprovalWait, Wake: waker.Wake})
	page, err := web.New()
	if err != nil {
		return err
	}
	server, err := rest.New(rest.Core{
		DB: db, Catalog: cache, Intake: proposals,
		Approval: approval.New(db, cache, approval.Config{Wake: waker.Wake}),
	}, rest.Config{Vault: vault, MailCipher: mails, Wake: waker.Wake, Log: tel.Log, Metrics: tel.Metrics, Tracer: tel.Tracer(), PublicURL: cfg.Address(), TrustedProxies: cfg.TrustedProxies, Streams: cfg.TokenStreams, Waits: cfg.TokenWaits, Page: page})
	if err != nil {
		return err
	}
	front := mcpserver.New(server.Backend(), mcpserver.Config{Version: telemetry.Version(), Wait: cfg.MCPWait})
	server.Mount("/mcp", front)
	return tel.RunWithProbes(ctx, cfg.MetricsListen, ready, func(ctx context.Context) error {
		return listen(ctx, cfg.Listen, server, front, tel.Log)
	})
}

// listen serves until ctx ends, then ends the streams and the waits, and lets
// the other requests finish.
func listen(ctx context.Context, address string, server *rest.Server, front *mcpserver.Server, log *slog.Logger) error {
	defer server.Close()
	defer front.Close()
	at, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	// Bodies and answers have deadlines of their own, by what they are.
	serving := &http.Server{
		Handler: server, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- serving.Serve(at) }() // listen waits for it
	log.InfoContext(ctx, "listening", slog.String("address", at.Addr().String()))
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	log.InfoContext(ctx, "api stopping")
	front.Close()
	server.Close()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainFor)
	defer cancel()
	err = serving.Shutdown(last)
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
