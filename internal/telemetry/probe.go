package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/listen"
)

// readyWithin bounds how long a readiness probe may take.
const readyWithin = 2 * time.Second

// maxProbes bounds the open connections for probes and metrics.
const maxProbes = 200

// RunWithProbes calls run while it serves /metrics, /healthz and /readyz on an
// address; an empty address serves nothing. Probes are answered until run
// returns. /readyz includes the text of a fault that ready returns.
func (t *Telemetry) RunWithProbes(ctx context.Context, address string, ready, run func(context.Context) error) error {
	if address == "" {
		return run(ctx)
	}
	listener, err := listen.Open(ctx, address, "COUNTERSIGN_METRICS_LISTEN")
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan struct{})
	go func() { // RunWithProbes waits for it below
		defer close(served)
		err := listen.Serve(serving, listener, listen.Config{
			Handler: t.probes(ready), Limits: listen.Limits{Connections: maxProbes, AddressConnections: maxProbes / 2},
			Drain: time.Second, Log: t.Log,
		})
		if err != nil && serving.Err() == nil {
			t.Log.Error("probes no longer answered", slog.Any("error", err))
		}
	}()
	t.Log.InfoContext(ctx, "probes answered", slog.String("address", listener.Addr().String()))
	err = run(ctx)
	stop()
	<-served
	return err
}

func (t *Telemetry) probes(ready func(context.Context) error) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", t.Handler())
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeStatus(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyWithin)
		defer cancel()
		if err := ready(ctx); err != nil {
			status := "not ready"
			if shown, ok := errors.AsType[*fault.Error](err); ok {
				status = shown.Text
			}
			writeStatus(w, http.StatusServiceUnavailable, status)
			return
		}
		writeStatus(w, http.StatusOK, "ok")
	})
	return mux
}

func writeStatus(w http.ResponseWriter, code int, status string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	// A client may have left, and encoding a string cannot fail.
	_ = json.NewEncoder(w).Encode(map[string]string{"status": status})
}
