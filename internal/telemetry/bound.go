package telemetry

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// maxBound is how many bindings of one instrument are remembered. What comes
// after is bound afresh each time: slower, and no leak.
const maxBound = 2000

// Counter is a counter with its attributes.
type Counter struct {
	of   metric.Int64Counter
	with []metric.AddOption
}

// Add counts n more.
func (c Counter) Add(ctx context.Context, n int64) { c.of.Add(ctx, n, c.with...) }

// Histogram is a histogram with its attributes.
type Histogram struct {
	of   metric.Float64Histogram
	with []metric.RecordOption
}

// Record notes a value in the instrument's unit.
func (h Histogram) Record(ctx context.Context, value float64) { h.of.Record(ctx, value, h.with...) }

// Took notes a duration in an instrument whose unit is seconds.
func (h Histogram) Took(ctx context.Context, d time.Duration) { h.Record(ctx, d.Seconds()) }

// cache remembers what was bound for a key. The zero value is empty.
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
