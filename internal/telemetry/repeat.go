package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// WithoutRepeats returns a handler that logs each message at most once an
// interval, by the clock of the records. A record that is logged after others of
// the same message were left out has their number as the attribute repeated. It
// is for components that report one outage again and again.
func WithoutRepeats(handler slog.Handler, interval time.Duration) slog.Handler {
	return repeatHandler{handler, &repeats{interval: interval, messages: map[string]repeat{}}}
}

type repeatHandler struct {
	slog.Handler
	seen *repeats
}

// repeats is shared by all handlers that come from one WithoutRepeats.
type repeats struct {
	interval time.Duration
	mu       sync.Mutex
	messages map[string]repeat
}

type repeat struct {
	logged time.Time
	count  int
}

// maxMessages bounds how many messages are remembered.
const maxMessages = 1000

// add returns whether a message is to be logged, and how many of it were left
// out before.
func (r *repeats) add(message string, at time.Time) (log bool, leftOut int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, known := r.messages[message]
	if known && at.Sub(last.logged) < r.interval {
		last.count++
		r.messages[message] = last
		return false, 0
	}
	if len(r.messages) >= maxMessages {
		clear(r.messages)
	}
	r.messages[message] = repeat{logged: at}
	return true, last.count
}

// Handle logs the record unless its message was logged within the interval.
func (h repeatHandler) Handle(ctx context.Context, record slog.Record) error {
	log, leftOut := h.seen.add(record.Message, record.Time)
	if !log {
		return nil
	}
	if leftOut > 0 {
		record = record.Clone()
		record.AddAttrs(slog.Int("repeated", leftOut))
	}
	return h.Handler.Handle(ctx, record)
}

// WithAttrs returns a handler that shares what has been logged.
func (h repeatHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return repeatHandler{h.Handler.WithAttrs(attrs), h.seen}
}

// WithGroup returns a handler that shares what has been logged.
func (h repeatHandler) WithGroup(name string) slog.Handler {
	return repeatHandler{h.Handler.WithGroup(name), h.seen}
}
