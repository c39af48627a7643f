// Package measure owns the instruments of triage: metrics, the ends of spans,
// and the texts of errors. They contain no names and no text of mail.
package measure

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Metrics are the instruments of a process.
type Metrics struct {
	messages, proposals, cycles, texts metric.Int64Counter
	duration                           metric.Float64Histogram
}

// Counts holds the results of the messages of a chunk, and the number of
// proposed actions.
type Counts struct{ Decided, Sent, Known, TooLarge, SetAside, Proposed int }

// Pending estimates the messages with open questions: with withheld proposals,
// and decided without the answers.
type Pending struct{ Withheld, Degraded int64 }

// States counts the enabled accounts whose last reading succeeded or failed,
// and those that were due but not read.
type States struct {
	OK, Failing, Late int64
	Pending           Pending
}

// NewMetrics creates the instruments of a meter.
func NewMetrics(meter metric.Meter) (*Metrics, error) {
	var m Metrics
	var errs [5]error
	m.messages, errs[0] = meter.Int64Counter("countersign.triage.messages", metric.WithDescription("Messages that were read, by what became of them"))
	m.proposals, errs[1] = meter.Int64Counter("countersign.triage.proposals", metric.WithDescription("Actions that triage proposed"))
	m.cycles, errs[2] = meter.Int64Counter("countersign.triage.cycles", metric.WithDescription("Readings of accounts, by how they ended"))
	m.duration, errs[3] = meter.Float64Histogram("countersign.triage.chunk.duration", metric.WithUnit("s"),
		metric.WithDescription("Time to read, decide and commit a set of messages"))
	m.texts, errs[4] = meter.Int64Counter("countersign.triage.texts", metric.WithDescription("Summaries and drafts that a language model was asked for, by how that ended"))
	return &m, errors.Join(errs[:]...)
}

// Observe has a meter call states at each collection, until stop is called.
func Observe(meter metric.Meter, states func(context.Context) (States, error)) (stop func() error, err error) {
	accounts, err := meter.Int64ObservableGauge("countersign.triage.accounts", metric.WithDescription("Enabled mail accounts, by how they stand"))
	if err != nil {
		return nil, err
	}
	pending, err := meter.Int64ObservableGauge("countersign.triage.pending", metric.WithDescription("Messages about which models are to be asked"))
	if err != nil {
		return nil, err
	}
	registered, err := meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		s, err := states(ctx)
		if err != nil {
			return err
		}
		for name, n := range map[string]int64{"ok": s.OK, "failing": s.Failing, "late": s.Late} {
			o.ObserveInt64(accounts, n, metric.WithAttributes(attribute.String("state", name)))
		}
		for name, n := range map[string]int64{"withheld": s.Pending.Withheld, "degraded": s.Pending.Degraded} {
			o.ObserveInt64(pending, n, metric.WithAttributes(attribute.String("state", name)))
		}
		return nil
	}, accounts, pending)
	if err != nil {
		return nil, err
	}
	return registered.Unregister, nil
}

// Chunk counts the messages of a chunk and records its duration.
func (m *Metrics) Chunk(ctx context.Context, c Counts, took time.Duration) {
	for outcome, n := range map[string]int{"decided": c.Decided, "sent": c.Sent, "known": c.Known, "too_large": c.TooLarge, "set_aside": c.SetAside} {
		if n > 0 {
			m.messages.Add(ctx, int64(n), metric.WithAttributes(attribute.String("outcome", outcome)))
		}
	}
	m.proposals.Add(ctx, int64(c.Proposed))
	m.duration.Record(ctx, took.Seconds())
}

// Cycle counts a cycle of an account.
func (m *Metrics) Cycle(ctx context.Context, err error) {
	outcome := "ok"
	if err != nil {
		outcome = "error"
	}
	m.cycles.Add(ctx, 1, metric.WithAttributes(attribute.String("outcome", outcome)))
}

// Text counts an attempt to write a text of a kind.
func (m *Metrics) Text(ctx context.Context, kind, outcome string) {
	m.texts.Add(ctx, 1, metric.WithAttributes(attribute.String("kind", kind), attribute.String("outcome", outcome)))
}
