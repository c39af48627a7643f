package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/countersign-dev/countersign/internal/telemetry"
)

// scrape returns the metrics in the format of Prometheus.
func scrape(t *testing.T, tel *telemetry.Telemetry) string {
	t.Helper()
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("GET /metrics = %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func setup(t *testing.T) *telemetry.Telemetry {
	t.Helper()
	tel, err := telemetry.Setup(t.Context(), telemetry.Config{Service: "countersign-test", Instance: "a"})
	if err != nil {
		t.Fatalf("Setup = %v", err)
	}
	return tel
}

func TestPrometheusNames(t *testing.T) {
	t.Parallel()

	ctx, tel := t.Context(), setup(t)
	m := tel.Metrics
	m.ClaimBatch.Record(ctx, 200)
	m.SettleBatch.Record(ctx, 100)
	m.EndToEnd.Took(ctx, 20*time.Millisecond)
	m.FenceLost.Add(ctx, 2)
	for range 2 {
		m.Outcome("send", "slack", "done").Add(ctx, 5)
	}
	m.Call("slack").Took(ctx, time.Second)
	m.Breaker("slack", "open").Add(ctx, 1)
	m.Request("POST", "/v1/actions", 202).Took(ctx, 3*time.Millisecond)
	metrics := scrape(t, tel)

	for _, line := range []string{
		`countersign_claim_batch_sum 200`,
		`countersign_settle_batch_sum 100`,
		`countersign_action_duration_seconds_sum 0.02`,
		`countersign_claims_lost_total 2`,
		`countersign_outcomes_total{kind="done",source="slack",tool="send"} 10`,
		`countersign_call_duration_seconds_count{source="slack"} 1`,
		`countersign_breaker_changes_total{source="slack",state="open"} 1`,
		`countersign_http_server_request_duration_seconds_count{http_request_method="POST",http_response_status_code="202",http_route="/v1/actions"} 1`,
		`target_info{service_instance_id="a",service_name="countersign-test",service_version="` + telemetry.Version() + `"} 1`,
	} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("metrics lack %s", line)
		}
	}
	if !strings.Contains(metrics, "\ngo_goroutines ") {
		t.Error("metrics lack those of the Go runtime")
	}
	if t.Failed() {
		t.Log(metrics)
	}
}

// TestCountersExistBeforeTheirFirstEvent scrapes before any event, and after the
// first successful outcome of a tool.
func TestCountersExistBeforeTheirFirstEvent(t *testing.T) {
	t.Parallel()
	tel := setup(t)
	want := func(lines ...string) {
		t.Helper()
		metrics := scrape(t, tel)
		for _, line := range lines {
			if !strings.Contains(metrics, line+"\n") {
				t.Errorf("metrics lack %s", line)
			}
		}
	}

	want(`countersign_claims_lost_total 0`, `countersign_outcomes_total{kind="unknown"} 0`, `countersign_outcomes_total{kind="sent"} 0`,
		`countersign_breaker_changes_total{state="open"} 0`)
	tel.Metrics.Outcome("send", "slack", "sent").Add(t.Context(), 1)
	tel.Metrics.Call("slack").Took(t.Context(), time.Second)
	want(`countersign_outcomes_total{kind="sent",source="slack",tool="send"} 1`,
		`countersign_outcomes_total{kind="unknown",source="slack",tool="send"} 0`,
		`countersign_breaker_changes_total{source="slack",state="open"} 0`)
}

func TestMetricsReachAnyReader(t *testing.T) {
	t.Parallel()

	reader := sdkmetric.NewManualReader()
	m, err := telemetry.NewMetrics(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test"))
	if err != nil {
		t.Fatalf("NewMetrics = %v", err)
	}

	// More tools than are cached: each is still counted.
	const tools = 2500
	for i := range tools {
		m.Outcome(strconv.Itoa(i), "s", "done").Add(t.Context(), 1)
	}
	var got metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &got); err != nil {
		t.Fatalf("Collect = %v", err)
	}

	sum := int64(0)
	for _, scope := range got.ScopeMetrics {
		for _, metric := range scope.Metrics {
			if data, ok := metric.Data.(metricdata.Sum[int64]); ok && metric.Name == "countersign.outcomes" {
				for _, point := range data.DataPoints {
					sum += point.Value
				}
			}
		}
	}
	if sum != tools {
		t.Errorf("counted %d outcomes, want %d", sum, tools)
	}
}

func TestMeasuringAllocatesNothing(t *testing.T) {
	m, ctx := setup(t).Metrics, t.Context()
	m.Outcome("send", "slack", "done").Add(ctx, 1)
	m.Call("slack").Took(ctx, time.Second)

	got := testing.AllocsPerRun(100, func() {
		m.Outcome("send", "slack", "done").Add(ctx, 1)
		m.Call("slack").Took(ctx, time.Second)
	})

	if got != 0 {
		t.Errorf("measuring allocates %.1f times, want 0", got)
	}
}

func BenchmarkOutcome(b *testing.B) {
	tel, err := telemetry.Setup(b.Context(), telemetry.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		tel.Metrics.Outcome("send", "slack", "done").Add(b.Context(), 1)
	}
}

// TestErrorsOfOpenTelemetryAreLogged does not run in parallel: the error handler
// of OpenTelemetry is global.
func TestErrorsOfOpenTelemetryAreLogged(t *testing.T) {
	var log bytes.Buffer
	tel, err := telemetry.Setup(t.Context(), telemetry.Config{Service: "countersign-test", Log: &log})
	if err != nil {
		t.Fatal(err)
	}
	_, err = tel.Meter().Int64ObservableGauge("countersign.due", metric.WithInt64Callback(func(context.Context, metric.Int64Observer) error {
		return errors.New("the database is away")
	}))
	if err != nil {
		t.Fatal(err)
	}

	for range 3 {
		scrape(t, tel)
	}

	var line struct{ Level, Msg, Error string }
	if err := json.Unmarshal(log.Bytes(), &line); err != nil || line.Level != "ERROR" || line.Msg == "" || !strings.Contains(line.Error, "the database is away") {
		t.Errorf("log = %q (%v), want one line of JSON with the error", log.String(), err)
	}
}
