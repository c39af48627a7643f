package worker_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/countersign-dev/countersign/internal/source/sourcetest"
	"github.com/countersign-dev/countersign/internal/tenant/pause"
)

// TestOneTraceFollowsAnEnvelopeThroughItsRetry also has a gate defer it first:
// that makes no span, since nothing was attempted, and breaks nothing.
func TestOneTraceFollowsAnEnvelopeThroughItsRetry(t *testing.T) {
	t.Parallel()
	for name, deferred := range map[string]bool{"at once": false, "after a gate": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newFixture(t)
			spans := tracetest.NewInMemoryExporter()
			tracer := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)).Tracer("test")
			y.src.Next(toolKeyed, sourcetest.Lost(), sourcetest.Done(`{}`))
			source := pause.Target{Scope: pause.Source, Subject: "fake"}
			if deferred {
				y.pause(source, false)
			}
			ctx, submit := tracer.Start(t.Context(), "submit")
			y.submitIn(ctx, toolKeyed, 1)
			submit.End()
			cfg := config("w1")
			cfg.Tracer = tracer

			stop := y.run(y.pipeline(y.db, y.src, cfg))
			if deferred {
				y.until("SELECT EXISTS (SELECT 1 FROM outbox WHERE waits_for = 'paused' AND lease_until IS NULL)")
				y.resume(source)
				y.sweep()
			}
			y.empty()
			stop()

			names := make(map[trace.SpanID]string)
			for _, s := range spans.GetSpans() {
				names[s.SpanContext.SpanID()] = s.Name
			}
			var got []string
			for _, s := range spans.GetSpans() {
				if s.SpanContext.TraceID() != submit.SpanContext().TraceID() {
					t.Errorf("span %s is of another trace", s.Name)
				}
				got = append(got, names[s.Parent.SpanID()]+" > "+s.Name)
			}
			slices.Sort(got)
			want := []string{
				" > submit", "attempt > call tool", "attempt > call tool", "attempt > settle", "attempt > settle", "submit > attempt", "submit > attempt",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("spans (-want +got):\n%s", diff)
			}
		})
	}
}
