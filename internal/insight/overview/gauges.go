package overview

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// freshFor is the lifetime of a reading: long enough that a scrape and a
// concurrent push share one, short enough that no scrape sees an old one.
const freshFor = 5 * time.Second

// gauge is an instrument and its values. Every process that observes the fleet
// has the same values, so queries must use their max, not their sum.
type gauge struct {
	name, unit, about string
	observe           func(f Fleet, set setter)
}

// setter records a value with labels: alternating names and values.
type setter func(value float64, labels ...string)

// gauges returns the gauges of the fleet. The Prometheus name of a gauge has
// underscores for dots and ends in the unit: countersign_checkpoint_lag_seconds.
func gauges() []gauge {
	return []gauge{
		{"backlog", "{action}", "Actions in the outbox: due, scheduled or in flight.", func(f Fleet, set setter) {
			set(float64(f.Due), "state", "due")
			set(float64(f.Scheduled), "state", "scheduled")
			set(float64(f.InFlight), "state", "in_flight")
		}},
		{"backlog.startable", "{action}", "Due actions that could run if a worker were free.", func(f Fleet, set setter) {
			set(float64(f.Startable))
		}},
		{"backlog.oldest_due.age", "s", "Age of the oldest due action that could run if a worker were free.", func(f Fleet, set setter) {
			set(f.OldestDue.Seconds())
		}},
		{"waiting", "{action}", "Actions that wait, by reason.", perKey("reason", func(f Fleet) map[string]int64 { return f.Waiting })},
		{"leases.overdue", "{action}", "Expired leases that no worker has claimed again.", func(f Fleet, set setter) {
			set(float64(f.Overdue))
		}},
		{"bucket.waiting", "{action}", "Actions that wait in a bucket. Buckets without limits are summed, except the fullest.",
			perBucket(func(b Bucket) float64 { return float64(b.Waiting) })},
		{"bucket.oldest_due.age", "s", "Time since the first waiting action of a bucket became due.",
			perBucket(func(b Bucket) float64 { return b.OldestDue.Seconds() })},
		{"bucket.permits", "{permit}", "Permits that a bucket has now, by its rate and its calendar.",
			perLimited(func(b Bucket) (float64, bool) { return float64(b.Permits), b.Permits >= 0 })},
		{"bucket.in_use", "{call}", "Open calls of a bucket with a concurrency limit.",
			perLimited(func(b Bucket) (float64, bool) { return float64(b.InUse), b.Concurrency >= 0 })},
		{"bucket.concurrency", "{call}", "Calls that a bucket allows at once.",
			perLimited(func(b Bucket) (float64, bool) { return float64(b.Concurrency), b.Concurrency >= 0 })},
		{"bucket.opens_in", "s", "Time until a bucket gives a permit again; 0 if it does now.",
			perLimited(func(b Bucket) (float64, bool) { return b.OpensIn.Seconds(), true })},
		{"breaker.state", "{state}", "A source's circuit breaker: 0 closed, 1 half-open, 2 open.", func(f Fleet, set setter) {
			for _, b := range f.Breakers {
				set(breakerLevel(b.State), "tenant", b.Tenant, "source", b.Source)
			}
		}},
		{"held", "{database}", "1 while the database is held, because it may be a copy or may have lost commits.", func(f Fleet, set setter) {
			set(map[bool]float64{true: 1}[f.Held])
		}},
		{"pauses", "{pause}", "Active pauses, by scope.", perKey("scope", func(f Fleet) map[string]int64 { return f.Pauses })},
		{"dead_letters", "{action}", "Dead letters by reason; those of reason unknown need a person.",
			perKey("reason", func(f Fleet) map[string]int64 { return f.DeadLetters })},
		{"unknowns.oldest.age", "s", "Age of the oldest dead letter of unknown outcome.", func(f Fleet, set setter) {
			set(f.OldestUnknown.Seconds())
		}},
		{"proposals.waiting", "{proposal}", "Proposals in SQL that no worker has taken, counted up to 10,000.", func(f Fleet, set setter) {
			set(float64(f.Proposals))
		}},
		{"proposals.oldest.age", "s", "Age of the oldest proposal in SQL that no worker has taken.", func(f Fleet, set setter) {
			set(f.OldestProposal.Seconds())
		}},
		{"checkpoint.lag", "s", "Age of the oldest event that no checkpoint covers.", func(f Fleet, set setter) {
			set(f.CheckpointLag.Seconds())
		}},
		{"retention.overdue", "{row}", "Rows older than their tenants' retention, by kind.",
			perKey("kind", func(f Fleet) map[string]int64 { return f.PastRetention })},
		{"table.size", "By", "Size of a busy table with its indexes and partitions.", func(f Fleet, set setter) {
			for _, t := range f.Tables {
				set(float64(t.Bytes), "table", t.Name)
			}
		}},
		{"table.rows", "{row}", "Rows of a busy table by the statistics: live or dead.", func(f Fleet, set setter) {
			for _, t := range f.Tables {
				set(float64(t.Live), "table", t.Name, "state", "live")
				set(float64(t.Dead), "table", t.Name, "state", "dead")
			}
		}},
	}
}

func perKey(label string, counts func(Fleet) map[string]int64) func(Fleet, setter) {
	return func(f Fleet, set setter) {
		for value, n := range counts(f) {
			set(float64(n), label, value)
		}
	}
}

func perBucket(value func(Bucket) float64) func(Fleet, setter) {
	return func(f Fleet, set setter) {
		for _, b := range f.Buckets {
			set(value(b), "tenant", b.Tenant, "bucket", b.Name)
		}
	}
}

// perLimited is perBucket for buckets with a certain limit; value reports
// whether a bucket has it.
func perLimited(value func(Bucket) (float64, bool)) func(Fleet, setter) {
	return func(f Fleet, set setter) {
		for _, b := range f.Buckets {
			if v, ok := value(b); ok && b.Limited {
				set(v, "tenant", b.Tenant, "bucket", b.Name)
			}
		}
	}
}

// breakerLevel returns the value of a state: the more of a source is in use, the
// lower.
func breakerLevel(state string) float64 {
	switch state {
	case "open":
		return 2
	case "half-open":
		return 1
	}
	return 0
}

// Observe calls read when the metrics are collected, at most every five seconds,
// until stop is called, and exports the result as gauges. A process without
// scrapes and pushes never calls read. If read fails, the gauges are missing in
// that collection. read must return when its context ends.
func Observe(meter metric.Meter, read func(ctx context.Context) (Fleet, error)) (stop func() error, err error) {
	all := gauges()
	instruments := make([]metric.Float64ObservableGauge, len(all))
	observables := make([]metric.Observable, len(all))
	var errs []error
	for i, g := range all {
		instruments[i], err = meter.Float64ObservableGauge("countersign."+g.name, metric.WithUnit(g.unit), metric.WithDescription(g.about))
		observables[i], errs = instruments[i], append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("create instruments: %w", err)
	}
	latest := &cache{read: read}
	registration, err := meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		f, err := latest.get(ctx)
		if err != nil {
			return err
		}
		for i, g := range all {
			g.observe(f, func(value float64, labels ...string) {
				set := make([]attribute.KeyValue, 0, 2)
				for i := 0; i < len(labels); i += 2 {
					set = append(set, attribute.String(labels[i], labels[i+1]))
				}
				o.ObserveFloat64(instruments[i], value, metric.WithAttributes(set...))
			})
		}
		return nil
	}, observables...)
	if err != nil {
		return nil, fmt.Errorf("observe the fleet: %w", err)
	}
	return registration.Unregister, nil
}

// cache holds the last reading.
type cache struct {
	read func(ctx context.Context) (Fleet, error)
	mu   sync.Mutex
	last Fleet
	at   time.Time
}

// get returns a fresh reading. Concurrent callers share one.
func (c *cache) get(ctx context.Context) (Fleet, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.at.IsZero() && time.Since(c.at) < freshFor {
		return c.last, nil
	}
	f, err := c.read(ctx)
	if err != nil {
		return Fleet{}, fmt.Errorf("read the state of the fleet: %w", err)
	}
	c.last, c.at = f, time.Now()
	return f, nil
}
