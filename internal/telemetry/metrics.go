package telemetry

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Metrics are the instruments of a process; package overview has those of the
// fleet. The Prometheus name of an instrument has underscores for dots and ends
// in the unit: countersign_call_duration_seconds.
//
// Methods with arguments return an instrument bound to its attributes. They
// cache it, so that measuring does not allocate.
type Metrics struct {
	// ClaimBatch counts the actions of one claim.
	ClaimBatch Histogram
	// SettleBatch counts the actions of one settlement.
	SettleBatch Histogram
	// EndToEnd is the time from submission to settlement, in seconds.
	EndToEnd Histogram
	// FenceLost counts the actions that could not be settled because another
	// worker had claimed them in the meantime.
	FenceLost Counter

	outcomes metric.Int64Counter
	calls    metric.Float64Histogram
	breakers metric.Int64Counter
	skipped  metric.Int64Counter
	requests metric.Float64Histogram
	refused  metric.Int64Counter

	outcome cache[outcomeKey, Counter]
	call    cache[string, Histogram]
	breaker cache[breakerKey, Counter]
	request cache[requestKey, Histogram]
}

type outcomeKey struct{ tool, source, kind string }

type breakerKey struct{ source, state string }

type requestKey struct {
	method, route string
	status        int
}

// NewMetrics creates the instruments of a meter.
func NewMetrics(meter metric.Meter) (*Metrics, error) {
	m := &Metrics{}
	var errs []error
	seconds := metric.WithExplicitBucketBoundaries(
		.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 3600,
	)
	sizes := metric.WithExplicitBucketBoundaries(0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
	histogram := func(name, unit, about string, bounds metric.HistogramOption) metric.Float64Histogram {
		h, err := meter.Float64Histogram(name, metric.WithUnit(unit), metric.WithDescription(about), bounds)
		errs = append(errs, err)
		return h
	}
	counter := func(name, unit, about string) metric.Int64Counter {
		c, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(about))
		errs = append(errs, err)
		return c
	}

	m.ClaimBatch = Histogram{of: histogram("countersign.claim.batch", "{action}", "Actions of one claim.", sizes)}
	m.SettleBatch = Histogram{of: histogram("countersign.settle.batch", "{action}", "Actions of one settlement.", sizes)}
	m.EndToEnd = Histogram{of: histogram("countersign.action.duration", "s", "Time from submission to settlement.", seconds)}
	m.FenceLost = Counter{of: counter("countersign.claims.lost", "{action}", "Actions that another worker had claimed before they were settled.")}
	m.outcomes = counter("countersign.outcomes", "{action}", "Settled attempts by tool, source and kind of outcome.")
	m.calls = histogram("countersign.call.duration", "s", "Time that a call to a source took.", seconds)
	m.breakers = counter("countersign.breaker.changes", "{change}", "Changes of a source's circuit breaker, by the new state.")
	m.skipped = counter("countersign.source.skipped_lines", "{line}", "Lines of the output of sources' programs that were no messages.")
	m.requests = histogram("countersign.http.server.request.duration", "s", "Time that a request to the API took.", seconds)
	m.refused = counter("countersign.connections.refused", "{connection}", "Connections, or requests through proxies, that a bound on connections refused.")

	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("create instruments: %w", err)
	}
	m.addZeros()
	return m, nil
}

// addZeros initializes counters to 0, so that queries see their first increase.
// Tools and sources are not known yet: their counters are initialized by the
// first outcome of a tool, and the first call of a source.
func (m *Metrics) addZeros() {
	ctx := context.Background()
	m.FenceLost.Add(ctx, 0)
	m.skipped.Add(ctx, 0)
	for _, bound := range []string{"all", "address", "caller", "tenant"} {
		m.refused.Add(ctx, 0, attributes(attribute.String("bound", bound)))
	}
	for _, kind := range []string{"sent", "conflict", "failed", "skipped", "pending", "unknown"} {
		m.outcomes.Add(ctx, 0, attributes(attribute.String("kind", kind)))
	}
	for _, state := range breakerStates() {
		m.breakers.Add(ctx, 0, attributes(attribute.String("state", state)))
	}
}

func breakerStates() []string { return []string{"closed", "half-open", "open"} }

// Outcome counts attempts of a tool by the status of their outcome; pending
// means a retry.
func (m *Metrics) Outcome(tool, source, kind string) Counter {
	labels := func(kind string) metric.MeasurementOption {
		return attributes(attribute.String("tool", tool), attribute.String("source", source), attribute.String("kind", kind))
	}
	return m.outcome.get(outcomeKey{tool, source, kind}, func() Counter {
		for _, other := range []string{"failed", "unknown"} {
			m.outcomes.Add(context.Background(), 0, labels(other))
		}
		return Counter{of: m.outcomes, with: []metric.AddOption{labels(kind)}}
	})
}

// Call measures calls to a source, in seconds.
func (m *Metrics) Call(source string) Histogram {
	return m.call.get(source, func() Histogram {
		for _, state := range breakerStates() {
			m.breakers.Add(context.Background(), 0, attributes(attribute.String("source", source), attribute.String("state", state)))
		}
		return Histogram{of: m.calls, with: []metric.RecordOption{attributes(attribute.String("source", source))}}
	})
}

// Breaker counts the transitions of a source's circuit breaker to a state.
func (m *Metrics) Breaker(source, state string) Counter {
	return m.breaker.get(breakerKey{source, state}, func() Counter {
		return Counter{of: m.breakers, with: []metric.AddOption{attributes(
			attribute.String("source", source), attribute.String("state", state),
		)}}
	})
}

// SkippedLine counts output lines of a source's program that were not messages.
func (m *Metrics) SkippedLine(source string) {
	m.skipped.Add(context.Background(), 1, attributes(attribute.String("source", source)))
}

// RefusedConnection counts connections, and proxied requests, that exceeded a
// bound.
func (m *Metrics) RefusedConnection(bound string) {
	m.refused.Add(context.Background(), 1, attributes(attribute.String("bound", bound)))
}

// Request measures requests to the API, in seconds. The route is the matched
// pattern, not the path, which has unbounded values.
func (m *Metrics) Request(method, route string, status int) Histogram {
	return m.request.get(requestKey{method, route, status}, func() Histogram {
		return Histogram{of: m.requests, with: []metric.RecordOption{attributes(
			attribute.String("http_request_method", method), attribute.String("http_route", route),
			attribute.String("http_response_status_code", strconv.Itoa(status)),
		)}}
	})
}

func attributes(all ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(all...))
}

// maxBound is the maximum number of cached bindings per instrument. Others are
// bound for each use, which is slower but does not leak.
const maxBound = 2000

// Counter is a counter with its attributes.
type Counter struct {
	of   metric.Int64Counter
	with []metric.AddOption
}

// Add adds n.
func (c Counter) Add(ctx context.Context, n int64) { c.of.Add(ctx, n, c.with...) }

// Histogram is a histogram with its attributes.
type Histogram struct {
	of   metric.Float64Histogram
	with []metric.RecordOption
}

// Record records a value in the instrument's unit.
func (h Histogram) Record(ctx context.Context, value float64) { h.of.Record(ctx, value, h.with...) }

// Took records a duration in an instrument with the unit seconds.
func (h Histogram) Took(ctx context.Context, d time.Duration) { h.Record(ctx, d.Seconds()) }

// cache holds the bound instruments by key. The zero value is empty.
type cache[K comparable, V any] struct {
	mu    sync.RWMutex
	bound map[K]V
}

func (c *cache[K, V]) get(key K, bind func() V) V {
	c.mu.RLock()
	v, ok := c.bound[key]
	c.mu.RUnlock()
	if ok {
		return v
	}

	v = bind()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bound == nil {
		c.bound = make(map[K]V)
	}
	if len(c.bound) < maxBound {
		c.bound[key] = v
	}
	return v
}
