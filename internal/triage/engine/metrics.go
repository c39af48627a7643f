package engine

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// metrics are the instruments of an Engine. They hold no names and no text of
// mail.
type metrics struct {
	messages, proposals, cycles metric.Int64Counter
	duration                    metric.Float64Histogram
}

func newMetrics(meter metric.Meter) (*metrics, error) {
	if meter == nil {
		meter = noop.NewMeterProvider().Meter("")
	}
	var m metrics
	var errs [4]error
	m.messages, errs[0] = meter.Int64Counter("countersign.triage.messages", metric.WithDescription("Messages that were read, by what became of them"))
	m.proposals, errs[1] = meter.Int64Counter("countersign.triage.proposals", metric.WithDescription("Actions that triage proposed"))
	m.cycles, errs[2] = meter.Int64Counter("countersign.triage.cycles", metric.WithDescription("Readings of accounts, by how they ended"))
	m.duration, errs[3] = meter.Float64Histogram("countersign.triage.chunk.duration", metric.WithUnit("s"),
		metric.WithDescription("Time to read, decide and commit a set of messages"))
	return &m, errors.Join(errs[:]...)
}

func (m *metrics) chunk(ctx context.Context, c *chunk, took time.Duration) {
	for _, n := range []struct {
		outcome string
		count   int
	}{
		{"decided", len(c.decisions)}, {"sent", len(c.messages) - len(c.decisions)}, {"known", len(c.mails) - len(c.messages)}, {"too_large", c.skipped},
	} {
		if n.count > 0 {
			m.messages.Add(ctx, int64(n.count), metric.WithAttributes(attribute.String("outcome", n.outcome)))
		}
	}
	m.proposals.Add(ctx, int64(c.proposed))
	m.duration.Record(ctx, took.Seconds())
}

func (m *metrics) cycle(ctx context.Context, err error) {
	outcome := "ok"
	if err != nil {
		outcome = "error"
	}
	m.cycles.Add(ctx, 1, metric.WithAttributes(attribute.String("outcome", outcome)))
}
