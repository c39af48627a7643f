package rest_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/server/rest"
	"github.com/countersign-dev/countersign/internal/telemetry"
)

func TestRequestsAreSeenByRouteAndNeverByPayload(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewSpanRecorder()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	tel, err := telemetry.Setup(t.Context(), telemetry.Config{})
	if err != nil {
		t.Fatal(err)
	}
	f := newFixtureWith(t, dbtest.DB(t), rest.Config{Metrics: tel.Metrics, Tracer: tracers.Tracer("")}).tenant("seen")
	const trace = "0af7651916cd43dd8448eb211c80319c"
	carrier := propagation.MapCarrier{"traceparent": "00-" + trace + "-b7ad6b7169203331-01"}

	f.agent.send("POST", "/api/v1/actions", proposal("write", object{"to": marker}), "traceparent", carrier["traceparent"]).wants(t, http.StatusCreated)
	f.agent.send("GET", "/api/v1/"+marker, nil).wants(t, http.StatusNotFound)

	got := spans.Ended()
	if len(got) == 0 || got[0].Name() != "POST /api/v1/actions" || got[0].SpanContext().TraceID().String() != trace {
		t.Fatalf("spans = %v, want one of the route in the caller's trace", got)
	}
	metrics := httptest.NewRecorder()
	tel.Handler().ServeHTTP(metrics, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	scraped := metrics.Body.String()
	for _, route := range []string{"POST /api/v1/actions", "unmatched"} {
		if !strings.Contains(scraped, `http_route="`+route+`"`) {
			t.Errorf("no measurement of %s", route)
		}
	}
	logged := f.logs.String()
	if !strings.Contains(logged, `route="POST /api/v1/actions"`) || !strings.Contains(logged, f.agent.id.String()) {
		t.Errorf("no log line of the request:\n%s", logged)
	}
	for what, text := range map[string]string{"log": logged, "metrics": scraped} {
		if strings.Contains(text, marker) || strings.Contains(text, f.agent.token) {
			t.Errorf("the %s holds a payload, a path's value or a token", what)
		}
	}
}
