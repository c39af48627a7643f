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
	"runtime/debug"
	"syscall"
	"time"

	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/server/mcpserver"
	"github.com/countersign-dev/countersign/internal/server/rest"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/source/connect"
	"github.com/countersign-dev/countersign/internal/telemetry"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/worker"
)

// drainFor is how long requests that run may take to end.
const drainFor = 10 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "countersign api:", err)
		stop()
		os.Exit(1) // stop has run: deferred calls are done
	}
}

// run serves until ctx ends.
func run(ctx context.Context, args []string, env func(string) string, out io.Writer) error {
	if asked, err := usage(args, out); asked || err != nil {
		return err
	}
	cfg, err := readConfig(env)
	if err != nil {
		return err
	}
	tel, err := telemetry.Setup(ctx, telemetry.Config{Service: "countersign-api", Version: version(), Level: cfg.level, Log: out, Endpoint: cfg.otlp})
	if err != nil {
		return err
	}
	defer func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainFor)
		defer cancel()
		if err := tel.Shutdown(last); err != nil {
			tel.Log.WarnContext(last, "telemetry not flushed", slog.Any("error", err))
		}
	}()
	tel.Log.InfoContext(ctx, "starting", slog.Any("config", cfg))
	pool, err := postgres.Open(ctx, postgres.Config{URL: cfg.database, MaxConns: cfg.maxConns, Pooled: cfg.pooled, Name: "countersign-api"})
	if err != nil {
		return err
	}
	defer pool.Close()
	vault, err := connect.NewVault(cfg.secretKey)
	if err != nil {
		return err
	}
	waker, err := worker.NewWaker(ctx, pool, tel.Log)
	if err != nil {
		return err
	}
	defer waker.Close()
	cache := settings.NewCache()
	door := intake.New(pool, cache, intake.Config{ApprovalWait: cfg.approvalWait, Wake: waker.Wake})
	server, err := rest.New(rest.Core{
		DB: pool, Catalog: cache, Intake: door,
		Approval: approval.New(pool, cache, approval.Config{Wake: waker.Wake}),
	}, rest.Config{Vault: vault, Wake: waker.Wake, Log: tel.Log, Metrics: tel.Metrics, Tracer: tel.Tracer(), Scrape: tel.Handler(), TrustedProxies: cfg.proxies})
	if err != nil {
		return err
	}
	front, err := mcpserver.New(mcpserver.Core{DB: pool, Catalog: cache, Intake: door, Watcher: server.Broker(), May: server.Admit},
		mcpserver.Config{Version: version(), Wait: cfg.mcpWait, Auth: server.Auth(), Caller: request.SetCaller, Origin: request.MCPOrigin, Log: tel.Log})
	if err != nil {
		return err
	}
	server.Mount("/mcp", front)
	return serve(ctx, cfg.listen, server, front, tel.Log)
}

// serve listens until ctx ends, then ends the streams and the waits, and lets
// the other requests come to their end.
func serve(ctx context.Context, listen string, server *rest.Server, front *mcpserver.Front, log *slog.Logger) error {
	defer server.Close()
	defer front.Close()
	at, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	// Bodies and answers have deadlines of their own, by what they are.
	web := &http.Server{
		Handler: server, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(at) }() // serve waits for it
	log.InfoContext(ctx, "listening", slog.String("address", at.Addr().String()))
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	log.InfoContext(ctx, "stopping")
	front.Close()
	server.Close()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainFor)
	defer cancel()
	err = web.Shutdown(last)
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// version is the build's.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "unknown"
}
