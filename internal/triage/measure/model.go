package measure

import (
	"cmp"
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// Models are the instruments for the language models of a process.
type Models struct {
	questions, refusals metric.Int64Counter
	duration            metric.Float64Histogram
	stop                func() error
}

// NewModels creates the instruments of a meter, which may be nil.
func NewModels(meter metric.Meter) (*Models, error) {
	meter = cmp.Or(meter, metric.Meter(noop.NewMeterProvider().Meter("")))
	m := &Models{stop: func() error { return nil }}
	var errs [3]error
	m.questions, errs[0] = meter.Int64Counter("countersign.triage.questions", metric.WithDescription("Questions to language models, by how they ended"))
	m.refusals, errs[1] = meter.Int64Counter("countersign.triage.model.refusals",
		metric.WithDescription("Attempts to have a question answered elsewhere, all of which were refused"))
	m.duration, errs[2] = meter.Float64Histogram("countersign.triage.question.duration", metric.WithUnit("s"),
		metric.WithDescription("Time from a question to its answer or failure"))
	return m, errors.Join(errs[:]...)
}

// Observe has a meter query at each collection which servers are available.
func (m *Models) Observe(meter metric.Meter, usable func() map[string]bool) error {
	if meter == nil {
		return nil
	}
	servers, err := meter.Int64ObservableGauge("countersign.triage.model.usable", metric.WithDescription("Whether a model server can be asked"))
	if err != nil {
		return err
	}
	registered, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for server, ok := range usable() {
			n := int64(0)
			if ok {
				n = 1
			}
			o.ObserveInt64(servers, n, metric.WithAttributes(attribute.String("server", server)))
		}
		return nil
	}, servers)
	if err == nil {
		m.stop = registered.Unregister
	}
	return err
}

// Close stops the gauges.
func (m *Models) Close() error { return m.stop() }

// Asked counts a question.
func (m *Models) Asked(server, outcome string, took time.Duration) {
	ctx := context.Background()
	m.questions.Add(ctx, 1, metric.WithAttributes(attribute.String("server", server), attribute.String("outcome", outcome)))
	m.duration.Record(ctx, took.Seconds(), metric.WithAttributes(attribute.String("server", server)))
}

// Refused counts attempts to answer elsewhere; 0 creates the series, so that
// the first attempt is an increase.
func (m *Models) Refused(server string, n int64) {
	m.refusals.Add(context.Background(), n, metric.WithAttributes(attribute.String("server", server)))
}
