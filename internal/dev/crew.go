package dev

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/insight/overview"
	"github.com/countersign-dev/countersign/internal/server/mcpserver"
	"github.com/countersign-dev/countersign/internal/server/rest"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/connect"
	"github.com/countersign-dev/countersign/internal/tenant/notebook"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/worker"
)

const (
	// grace is how long running calls, and requests, may take at the end.
	grace = 5 * time.Second
	// concurrency bounds the calls that are open at once.
	concurrency = 20
)

// crew is the fleet of one, and what wakes it.
type crew struct {
	fleet *worker.Worker
	waker *worker.Waker
}

// wake has this process look now, and the rest of a fleet, if the database has
// one, soon.
func (c *crew) wake() {
	c.fleet.Poll()
	c.waker.Wake()
}

// startWorker runs the fleet until the house closes.
func (h *House) startWorker(ctx context.Context) (string, error) {
	log := h.cfg.Log
	h.cache = settings.NewCache()
	h.live = connect.NewLive(h.vault, source.BreakerConfig{}, log)
	// Who sets up sources here is who runs the house.
	h.live.Stdio = true
	h.live.Notes = notebook.NewBook(h.pool).Of
	h.onClose(func(context.Context) error {
		h.live.Close()
		return nil
	})
	fleet, err := worker.New(ctx, h.pool, h.cache, h.live, worker.Config{Pipeline: worker.PipelineConfig{
		ID: fmt.Sprintf("dev-%d", os.Getpid()), Concurrency: concurrency, Grace: grace,
		Log: log, Metrics: h.watched.Metrics, Tracer: h.watched.Tracer(),
	}})
	if err != nil {
		return "", err
	}
	unobserve, err := h.watched.Metrics.ObserveStanding(overview.Reader(h.pool))
	if err != nil {
		return "", err
	}
	h.onClose(func(context.Context) error { return unobserve() })
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() { // owned by the house, whose Close waits for it
		defer close(ended)
		if err := fleet.Run(running); err != nil {
			h.failed <- fmt.Errorf("the worker ended: %w", err)
		}
	}()
	h.onClose(func(context.Context) error {
		stop()
		<-ended
		return nil
	})
	waker, err := worker.NewWaker(ctx, h.pool, log)
	if err != nil {
		return "", err
	}
	h.onClose(func(context.Context) error {
		waker.Close()
		return nil
	})
	h.worker = &crew{fleet: fleet, waker: waker}
	return fmt.Sprintf("up to %d calls at once", concurrency), nil
}

// startAPI serves on the listener until the house closes.
func (h *House) startAPI(context.Context) (string, error) {
	log := h.cfg.Log
	door := intake.New(h.pool, h.cache, intake.Config{Wake: h.worker.wake})
	server, err := rest.New(rest.Core{
		DB: h.pool, Catalog: h.cache, Intake: door,
		Approval: approval.New(h.pool, h.cache, approval.Config{Wake: h.worker.wake}),
	}, rest.Config{
		Vault: h.vault, Wake: h.worker.wake, Log: log, Metrics: h.watched.Metrics, Tracer: h.watched.Tracer(), Scrape: h.watched.Handler(),
	})
	if err != nil {
		return "", err
	}
	front, err := mcpserver.New(mcpserver.Core{DB: h.pool, Catalog: h.cache, Intake: door, Watcher: server.Broker(), Admit: server.Admit},
		mcpserver.Config{Version: h.cfg.Version, Auth: server.Auth(), Caller: request.SetCaller, Origin: request.MCPOrigin, Log: log})
	if err != nil {
		return "", err
	}
	server.Mount("/mcp", front)
	web := &http.Server{Handler: server, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	ended := make(chan struct{})
	go func() { // owned by the house, whose Close waits for it
		defer close(ended)
		if err := web.Serve(h.listener); !errors.Is(err, http.ErrServerClosed) {
			h.failed <- fmt.Errorf("the API ended: %w", err)
		}
	}()
	h.onClose(func(ctx context.Context) error {
		front.Close()
		server.Close()
		ctx, cancel := context.WithTimeout(ctx, grace)
		defer cancel()
		err := web.Shutdown(ctx)
		if err != nil {
			err = web.Close()
		}
		<-ended
		return err
	})
	return h.url, nil
}
