package telemetry_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/countersign-dev/countersign/internal/telemetry"
)

func TestSetupWithoutEndpoint(t *testing.T) {
	t.Parallel()

	tel, err := telemetry.Setup(t.Context(), telemetry.Config{Service: "countersign-test"})
	if err != nil {
		t.Fatalf("Setup = %v", err)
	}

	ctx, span := tel.Tracer().Start(t.Context(), "claim")

	if span.IsRecording() {
		t.Error("span records without an endpoint")
	}
	if got := telemetry.Inject(ctx); got != "" {
		t.Errorf("Inject = %q, want nothing to carry", got)
	}
	tel.Log.ErrorContext(ctx, "goes nowhere")
	for range 2 {
		if err := tel.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown = %v", err)
		}
	}
}

func TestSetupRejectsInvalidEndpoint(t *testing.T) {
	t.Parallel()

	for _, endpoint := range []string{"collector", "collector:4318", "ftp://collector", "http://", "http://a b"} {
		_, err := telemetry.Setup(t.Context(), telemetry.Config{Endpoint: endpoint})

		if err == nil || strings.Contains(err.Error(), endpoint) {
			t.Errorf("Setup(%q) = %v, want an error that does not repeat it", endpoint, err)
		}
	}
}

func TestSetupExportsToTheEndpoint(t *testing.T) {
	t.Parallel()

	var mu sync.Mutex
	got := map[string]bool{}
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, err := io.ReadAll(r.Body)
		got[r.URL.Path] = err == nil && bytes.Contains(body, []byte("countersign-test"))
	}))
	defer collector.Close()
	var log bytes.Buffer

	tel, err := telemetry.Setup(t.Context(), telemetry.Config{
		Service: "countersign-test", Level: slog.LevelDebug, Log: &log, Endpoint: collector.URL + "/base",
	})
	if err != nil {
		t.Fatalf("Setup = %v", err)
	}
	ctx, span := tel.Tracer().Start(t.Context(), "claim")
	carried := telemetry.Inject(ctx)
	span.End()
	tel.Metrics.FenceLost.Add(ctx, 1)
	tel.Log.DebugContext(ctx, "claimed")
	if err := tel.Shutdown(t.Context()); err != nil {
		t.Fatalf("Shutdown = %v", err)
	}

	for _, path := range []string{"/base/v1/traces", "/base/v1/metrics"} {
		if !got[path] {
			t.Errorf("collector was not sent %s; got %v", path, got)
		}
	}
	if !strings.Contains(carried, span.SpanContext().TraceID().String()) {
		t.Errorf("Inject = %q, want the trace %s", carried, span.SpanContext().TraceID())
	}
	if !strings.Contains(log.String(), "claimed") {
		t.Errorf("log = %q, want the line", log.String())
	}
}

func TestShutdownEndsWithItsContext(t *testing.T) {
	t.Parallel()

	release := make(chan struct{})
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer collector.Close()
	defer close(release)
	tel, err := telemetry.Setup(t.Context(), telemetry.Config{Endpoint: collector.URL})
	if err != nil {
		t.Fatalf("Setup = %v", err)
	}
	_, span := tel.Tracer().Start(t.Context(), "claim")
	span.End()

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()

	if err := tel.Shutdown(ctx); err == nil {
		t.Error("Shutdown = nil beside a collector that hangs, want its deadline")
	}
}

func TestExtract(t *testing.T) {
	t.Parallel()

	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for text, want := range map[string]string{
		parent:              "4bf92f3577b34da6a3ce929d0e0e4736",
		"":                  "00000000000000000000000000000000",
		"garbage":           "00000000000000000000000000000000",
		parent[:40]:         "00000000000000000000000000000000",
		"ff" + parent[2:]:   "00000000000000000000000000000000",
		parent + "\r\nX: y": "00000000000000000000000000000000",
	} {
		got := trace.SpanContextFromContext(telemetry.Extract(t.Context(), text))

		if got.TraceID().String() != want {
			t.Errorf("Extract(%q) has trace %s, want %s", text, got.TraceID(), want)
		}
		if id, valid := telemetry.TraceID(text), got.TraceID().IsValid(); valid && id != want || !valid && id != "" {
			t.Errorf("TraceID(%q) = %q, want %q", text, id, want)
		}
	}
}

func FuzzExtract(f *testing.F) {
	f.Add("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	f.Add("")
	f.Fuzz(func(t *testing.T, parent string) {
		got := trace.SpanContextFromContext(telemetry.Extract(t.Context(), parent))

		if got.IsValid() && !got.IsRemote() {
			t.Errorf("Extract(%q) is not a remote parent", parent)
		}
	})
}
