package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/internal/telemetry"
	"github.com/countersign-dev/countersign/internal/worker"
)

// runBeside runs the fleet while probes are answered on an address, if there
// is one. Probes are answered until the fleet has drained.
func runBeside(ctx context.Context, address string, handler http.Handler, log *slog.Logger, fleet func(context.Context) error) error {
	if address == "" {
		return fleet(ctx)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("COUNTERSIGN_METRICS_LISTEN: %w", err)
	}
	web := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan struct{})
	go func() { // runBeside waits for it below
		defer close(served)
		if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("probes are not answered any more", slog.Any("error", err))
		}
	}()
	log.InfoContext(ctx, "probes answered", slog.String("address", listener.Addr().String()))
	err = fleet(ctx)
	err = errors.Join(err, web.Close())
	<-served
	return err
}

// probes answers /metrics, /healthz and /readyz.
func probes(pool *pgxpool.Pool, watched *telemetry.Telemetry) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", watched.Handler())
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, `{"status":"ok"}`) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		if _, err := worker.Backlog(ctx, pool); err != nil {
			http.Error(w, `{"status":"the database does not answer, or is not migrated"}`, http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, `{"status":"ok"}`)
	})
	return mux
}
