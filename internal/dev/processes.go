package dev

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/connection/login"
	"github.com/countersign-dev/countersign/internal/insight/overview"
	"github.com/countersign-dev/countersign/internal/listen"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/server/mcpserver"
	"github.com/countersign-dev/countersign/internal/server/rest"
	"github.com/countersign-dev/countersign/internal/tenant/notebook"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/worker"
	"github.com/countersign-dev/countersign/web"
)

const (
	// grace is the time that running calls and requests have at the end.
	grace = 5 * time.Second
	// concurrency bounds the open calls.
	concurrency = 20
)

// startWorker runs a worker until the environment closes.
func (e *Environment) startWorker(ctx context.Context) (string, error) {
	log := e.cfg.Log
	e.cache = settings.NewCache()
	// A holder of the tokens of the tenant demo also runs the environment. Tenants
	// added for others start no programs.
	logins := login.New(e.pool, e.vault, safehttp.Loopback(), log)
	e.live = connection.NewPool(connection.Config{
		Tokens: logins.Of, Cipher: e.vault, Networks: safehttp.Loopback(), Stdio: func(of envelope.TenantID) bool { return of == e.demo.id },
		Maildir: func(of envelope.TenantID, path string) bool {
			return of == e.demo.id || path == filepath.Join(e.mailDir(), of.String())
		},
		Notes: notebook.NewBook(e.pool).Of, SkippedLine: e.watched.Metrics.SkippedLine, Log: log,
	})
	e.onStop(e.live.Close)
	fleet, err := worker.New(ctx, e.pool, e.cache, e.live, worker.Config{RenewLogins: logins.RenewDue, Links: web.Base(e.url), Pipeline: worker.PipelineConfig{
		ID: fmt.Sprintf("dev-%d", os.Getpid()), Concurrency: concurrency, Grace: grace,
		Log: log, Metrics: e.watched.Metrics, Tracer: e.watched.Tracer(),
	}})
	if err != nil {
		return "", err
	}
	unobserve, err := overview.Observe(e.watched.Meter(), overview.Reader(e.pool))
	if err != nil {
		return "", err
	}
	e.onClose(func(context.Context) error { return unobserve() })
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() { // the environment's Close waits for it
		defer close(ended)
		if err := fleet.Run(running); err != nil {
			e.failed <- fmt.Errorf("the worker ended: %w", err)
		}
	}()
	e.onStop(func() {
		stop()
		<-ended
	})
	e.wake = fleet.Wake
	return fmt.Sprintf("up to %d calls at once", concurrency), nil
}

// page has the operator's page for all environments of the process: it compresses files.
var page = sync.OnceValues(web.New)

// startAPI serves on the listener until the environment closes.
func (e *Environment) startAPI(context.Context) (string, error) {
	log := e.cfg.Log
	db := postgres.Share(e.pool, 0)
	proposals := intake.New(db, e.cache, intake.Config{Wake: e.wake})
	operators, err := page()
	if err != nil {
		return "", err
	}
	server, err := rest.New(rest.Core{
		DB: db, Catalog: e.cache, Intake: proposals,
		Approval: approval.New(db, e.cache, approval.Config{Wake: e.wake}),
	}, rest.Config{
		Vault: e.vault, MailKey: e.mails.Key, PublicURL: e.url, OAuth: true, ProgramNetworks: safehttp.Loopback(), SourceNetworks: safehttp.Loopback(), IssuerNetworks: slices.Concat(safehttp.Loopback(), safehttp.Private()), Wake: e.wake, Events: postgres.ListenEvents(e.pool, log), Log: log, Metrics: e.watched.Metrics, Tracer: e.watched.Tracer(), Page: operators,
	})
	if err != nil {
		return "", err
	}
	front := mcpserver.New(server.Backend(), mcpserver.Config{Version: e.cfg.Version})
	server.Mount("/mcp", front)
	serving, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { // the environment's Close waits for it
		defer close(ended)
		err := listen.Serve(serving, e.listener, listen.Config{Handler: server, Refused: e.watched.Metrics.RefusedConnection, Drain: grace, Log: log, End: func() {
			front.Close()
			server.Close()
		}})
		if serving.Err() == nil {
			e.failed <- fmt.Errorf("the API ended: %w", err)
		}
	}()
	e.onStop(func() {
		stop()
		<-ended
	})
	return e.url, nil
}
