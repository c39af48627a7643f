package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// traceparent is the W3C header that carries a span's identity.
const traceparent = "traceparent"

// Inject returns the W3C traceparent of the span in ctx, for storage with a row
// and Extract. It is empty unless the span records.
func Inject(ctx context.Context) string {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[traceparent]
}

// Extract returns ctx with the span of a traceparent as remote parent, so that
// the next span belongs to its trace. An empty or malformed traceparent leaves
// ctx unchanged.
func Extract(ctx context.Context, parent string) context.Context {
	if parent == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{traceparent: parent})
}

// TraceID returns the trace id of a traceparent in hexadecimal, or "" if it is
// empty or malformed.
func TraceID(parent string) string {
	if id := trace.SpanContextFromContext(Extract(context.Background(), parent)).TraceID(); id.IsValid() {
		return id.String()
	}
	return ""
}

// Propagator returns the W3C propagator, for the headers of HTTP requests.
func Propagator() propagation.TextMapPropagator { return propagation.TraceContext{} }
