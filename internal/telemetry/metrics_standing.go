package telemetry

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// standingFor is how long a reading serves: long enough that a scrape and a
// push at the same time share one, short enough that no scrape sees an old
// one.
const standingFor = 5 * time.Second

// Standing is how the whole fleet stands at one moment. Every process that
// reads it reads the same, so the gauges made of it are to be looked at with
// max, not with sum. Who fills it in bounds its lists: each element is a
// series of its own.
type Standing struct {
	// Due is how many envelopes could be claimed now or are held back by a
	// bucket, Scheduled how many wait for a later time, and InFlight how many
	// a worker has.
	Due, Scheduled, InFlight int64
	// Overdue counts the leases that ran out and that nobody has taken up.
	Overdue int64
	// OldestDue is how long the envelope has waited that could be claimed for
	// longest; 0 if none can.
	OldestDue time.Duration
	// Waiting counts envelopes by what they wait for.
	Waiting map[string]int64
	// Buckets are those with limits, and the fullest others.
	Buckets []BucketStanding
	// Breakers are of the sources that one ever opened for.
	Breakers []BreakerStanding
	// Pauses counts what is paused, by scope.
	Pauses map[string]int64
	// Letters counts dead letters by reason; OldestUnknown is the age of the
	// oldest that nobody knows the outcome of.
	Letters       map[string]int64
	OldestUnknown time.Duration
	// Unsealed is the age of the oldest event that no seal covers.
	Unsealed time.Duration
	// Notices counts rows that are older than their tenants want them kept,
	// by kind.
	Notices map[string]int64
	// Tables are the hot ones.
	Tables []TableStanding
}

// BucketStanding is how a bucket stands.
type BucketStanding struct {
	Tenant, Bucket string
	// Waiting is how many envelopes of it wait, and OldestDue since when the
	// first of those could be claimed but for the bucket.
	Waiting   int64
	OldestDue time.Duration
	// Limited says that the rest means something.
	Limited bool
	// Tokens is how many envelopes it would give now; negative without a rate
	// or a calendar.
	Tokens int64
	// InUse is how many calls are open of the Concurrency that it allows;
	// that is negative without a ceiling.
	InUse, Concurrency int64
	// OpensIn is when it gives one again; 0 when it does now.
	OpensIn time.Duration
}

// BreakerStanding is how a source's breaker stands for the fleet.
type BreakerStanding struct {
	Tenant, Source string
	// State is closed, half-open or open.
	State string
}

// TableStanding is how big a table is, with its indexes and partitions.
type TableStanding struct {
	Name       string
	Bytes      int64
	Live, Dead int64
}

// standing holds the gauges, and the last reading.
type standing struct {
	backlog, waiting, overdue, pauses, letters, notices   metric.Int64ObservableGauge
	bucketWaiting, bucketTokens, bucketInUse, bucketLimit metric.Int64ObservableGauge
	breaker, tableSize, tableRows                         metric.Int64ObservableGauge
	oldestDue, oldestUnknown, unsealed                    metric.Float64ObservableGauge
	bucketOldest, bucketOpens                             metric.Float64ObservableGauge

	read func(ctx context.Context) (Standing, error)
	mu   sync.Mutex
	last Standing
	at   time.Time
}

// ObserveStanding has read asked how the fleet stands when the metrics are
// collected, at most every five seconds, until stop is called. It is never
// asked by a process that nobody scrapes and that pushes nothing. A read that
// fails leaves the gauges out of that collection; read must obey its context.
func (m *Metrics) ObserveStanding(read func(ctx context.Context) (Standing, error)) (stop func() error, err error) {
	s := &standing{read: read}
	gauges, err := s.create(m.meter)
	if err != nil {
		return nil, fmt.Errorf("create instruments: %w", err)
	}
	registration, err := m.meter.RegisterCallback(s.observe, gauges...)
	if err != nil {
		return nil, fmt.Errorf("observe how the fleet stands: %w", err)
	}
	return registration.Unregister, nil
}

// create makes the gauges of a meter.
func (s *standing) create(meter metric.Meter) (gauges []metric.Observable, err error) {
	var errs []error
	count := func(name, unit, about string) metric.Int64ObservableGauge {
		g, err := meter.Int64ObservableGauge("countersign."+name, metric.WithUnit(unit), metric.WithDescription(about))
		gauges, errs = append(gauges, g), append(errs, err)
		return g
	}
	seconds := func(name, about string) metric.Float64ObservableGauge {
		g, err := meter.Float64ObservableGauge("countersign."+name, metric.WithUnit("s"), metric.WithDescription(about))
		gauges, errs = append(gauges, g), append(errs, err)
		return g
	}
	s.backlog = count("backlog", "{envelope}", "Envelopes in the outbox: due, scheduled or in flight.")
	s.oldestDue = seconds("backlog.oldest_due.age", "How long the envelope has waited that could be claimed for longest.")
	s.waiting = count("waiting", "{envelope}", "Envelopes that wait, by what for.")
	s.overdue = count("leases.overdue", "{envelope}", "Envelopes whose lease ran out and that nobody has taken up.")
	s.bucketWaiting = count("bucket.waiting", "{envelope}", "Envelopes that wait in a bucket. Buckets without limits are summed, but for the fullest.")
	s.bucketOldest = seconds("bucket.oldest_due.age", "How long the first envelope of a bucket has been due.")
	s.bucketTokens = count("bucket.tokens", "{envelope}", "Envelopes that a bucket would give now, by its rate and its calendar.")
	s.bucketInUse = count("bucket.in_use", "{call}", "Calls that are open of a bucket with a ceiling.")
	s.bucketLimit = count("bucket.concurrency", "{call}", "Calls that a bucket's ceiling allows at once.")
	s.bucketOpens = seconds("bucket.opens_in", "Time until a bucket gives an envelope again; 0 when it does now.")
	s.breaker = count("breaker.state", "{state}", "A source's circuit breaker: 0 closed, 1 half-open, 2 open.")
	s.pauses = count("pauses", "{pause}", "What is paused, by scope.")
	s.letters = count("dead_letters", "{envelope}", "Dead letters by reason; those of reason unknown need a person.")
	s.oldestUnknown = seconds("unknowns.oldest.age", "Age of the oldest dead letter of unknown outcome.")
	s.unsealed = seconds("seals.lag", "Age of the oldest event that no seal covers.")
	s.notices = count("notices", "{row}", "Rows older than their tenants want them kept, by kind.")
	s.tableSize = count("table.size", "By", "Size of a hot table with its indexes and partitions.")
	s.tableRows = count("table.rows", "{row}", "Rows of a hot table by the statistics: live or dead.")
	return gauges, errors.Join(errs...)
}

// latest returns a reading that is fresh enough. A reader that comes while
// another reads waits for it and shares what it read.
func (s *standing) latest(ctx context.Context) (Standing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.at.IsZero() && time.Since(s.at) < standingFor {
		return s.last, nil
	}
	read, err := s.read(ctx)
	if err != nil {
		return Standing{}, fmt.Errorf("read how the fleet stands: %w", err)
	}
	s.last, s.at = read, time.Now()
	return read, nil
}

func (s *standing) observe(ctx context.Context, o metric.Observer) error {
	now, err := s.latest(ctx)
	if err != nil {
		return err
	}
	by := func(gauge metric.Int64ObservableGauge, label string, counts map[string]int64) {
		for value, n := range counts {
			o.ObserveInt64(gauge, n, attributes(attribute.String(label, value)))
		}
	}
	by(s.backlog, "state", map[string]int64{"due": now.Due, "scheduled": now.Scheduled, "in_flight": now.InFlight})
	by(s.waiting, "reason", now.Waiting)
	by(s.pauses, "scope", now.Pauses)
	by(s.letters, "reason", now.Letters)
	by(s.notices, "kind", now.Notices)
	o.ObserveFloat64(s.oldestDue, now.OldestDue.Seconds())
	o.ObserveFloat64(s.oldestUnknown, now.OldestUnknown.Seconds())
	o.ObserveFloat64(s.unsealed, now.Unsealed.Seconds())
	o.ObserveInt64(s.overdue, now.Overdue)
	for _, b := range now.Buckets {
		s.observeBucket(o, b)
	}
	for _, b := range now.Breakers {
		o.ObserveInt64(s.breaker, breakerLevel(b.State), attributes(attribute.String("tenant", b.Tenant), attribute.String("source", b.Source)))
	}
	for _, t := range now.Tables {
		o.ObserveInt64(s.tableSize, t.Bytes, attributes(attribute.String("table", t.Name)))
		o.ObserveInt64(s.tableRows, t.Live, attributes(attribute.String("table", t.Name), attribute.String("state", "live")))
		o.ObserveInt64(s.tableRows, t.Dead, attributes(attribute.String("table", t.Name), attribute.String("state", "dead")))
	}
	return nil
}

func (s *standing) observeBucket(o metric.Observer, b BucketStanding) {
	which := attributes(attribute.String("tenant", b.Tenant), attribute.String("bucket", b.Bucket))
	o.ObserveInt64(s.bucketWaiting, b.Waiting, which)
	o.ObserveFloat64(s.bucketOldest, b.OldestDue.Seconds(), which)
	if !b.Limited {
		return
	}
	o.ObserveFloat64(s.bucketOpens, b.OpensIn.Seconds(), which)
	if b.Tokens >= 0 {
		o.ObserveInt64(s.bucketTokens, b.Tokens, which)
	}
	if b.Concurrency >= 0 {
		o.ObserveInt64(s.bucketInUse, b.InUse, which)
		o.ObserveInt64(s.bucketLimit, b.Concurrency, which)
	}
}

// breakerLevel orders the states by how much of a source is in use.
func breakerLevel(state string) int64 {
	switch state {
	case "open":
		return 2
	case "half-open":
		return 1
	}
	return 0
}
