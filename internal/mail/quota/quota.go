// Package quota limits the requests of mail readers to a share of each
// provider's limits, for any protocol, and to none while the provider rejects
// requests because of a limit. It stores nothing.
package quota

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

const (
	// Share is the largest part of a limit that is used.
	Share = 0.6
	// patience is how long Take waits. For a longer wait it returns an error
	// with the time, so that the caller can do something else in the meantime.
	patience = 20 * time.Second
	// pause is how long a bucket is closed after an answer without a time, and
	// longest the maximum after any answer: no server stops an account for
	// good.
	pause   = time.Minute
	longest = 24 * time.Hour
	// lasting is the shortest period of limits whose state survives the
	// process.
	lasting = time.Hour
)

// Bucket holds the available quota of the readers of one mailbox. It is safe
// for concurrent use.
type Bucket struct {
	provider Provider
	limits   []*limiter

	mu       sync.Mutex
	until    time.Time
	reason   string
	restored bool
}

// limiter is a limit with its available quota.
type limiter struct {
	Limit
	available *rate.Limiter
}

// newLimiter splits the share of a limit into a burst and a refill over its
// period, so that no period, wherever it begins, exceeds the share.
func newLimiter(l Limit) *limiter {
	burstShare := 1.0 / 6
	if l.Per >= lasting {
		burstShare = 1.0 / 2 // of a day, so that a first sync does not use up the day
	}
	most := Share * float64(l.Most)
	burst := max(int(most*burstShare), 1)
	return &limiter{l, rate.NewLimiter(rate.Limit((most-float64(burst))/l.Per.Seconds()), burst)}
}

// New returns a separate bucket for a mailbox at a provider. A provider without
// limits can only close it.
func New(p Provider) *Bucket {
	b := &Bucket{provider: p}
	for _, l := range p.Limits {
		b.limits = append(b.limits, newLimiter(l))
	}
	return b
}

// Take takes the units of an operation, and waits briefly for them. If the wait
// is too long or the bucket is closed, it takes nothing and returns a
// *mailbox.BusyError with the time to retry.
func (b *Bucket) Take(ctx context.Context, op Operation) error {
	return b.take(ctx, Units, b.provider.cost(op))
}

// TakeBytes is Take for a download of n bytes.
func (b *Bucket) TakeBytes(ctx context.Context, n int64) error {
	if n <= 0 {
		return ctx.Err()
	}
	return b.take(ctx, Bytes, int(n))
}

func (b *Bucket) take(ctx context.Context, of Resource, n int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	now := time.Now()
	if err := b.closed(now); err != nil {
		return err
	}
	var delay time.Duration
	var taken []*rate.Reservation
	cancel := func() {
		for _, r := range taken {
			r.CancelAt(now)
		}
	}
	for _, l := range b.limits {
		if l.Of != of {
			continue
		}
		r := l.available.ReserveN(now, min(n, l.available.Burst()))
		taken = append(taken, r)
		if wait := r.DelayFrom(now); wait > patience {
			cancel()
			return b.hold(now.Add(wait), l.used(b.provider.Name))
		}
		delay = max(delay, r.DelayFrom(now))
	}
	if delay == 0 {
		return nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		cancel()
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// closed returns the error of a closed bucket.
func (b *Bucket) closed(now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.until.After(now) {
		return nil
	}
	return &mailbox.BusyError{Reason: b.reason, After: b.until.Sub(now)}
}

// hold closes the bucket until a time, unless it is closed for longer.
func (b *Bucket) hold(until time.Time, reason string) *mailbox.BusyError {
	b.mu.Lock()
	defer b.mu.Unlock()
	if until.After(b.until) {
		b.until, b.reason = until, reason
	}
	return &mailbox.BusyError{Reason: reason, After: time.Until(until)}
}

// Close closes the bucket after the provider reported a limit: for the
// requested time and up to a quarter longer, so that readers do not all resume
// together; for about a minute if after is 0, and for a day at most. The reason
// is text of the caller, never of the provider.
func (b *Bucket) Close(reason string, after time.Duration) *mailbox.BusyError {
	if after <= 0 {
		after = time.Duration((0.75 + rand.Float64()/2) * float64(pause))
	} else {
		after = time.Duration((1 + rand.Float64()/4) * float64(min(after, longest)))
	}
	return b.hold(time.Now().Add(after), reason)
}

// used describes a limit whose share is used up.
func (l *limiter) used(provider string) string {
	return fmt.Sprintf("%.0f %% of the %d %s that %s allows in %s are taken", Share*100, l.Most, l.Of, provider, l.Per)
}

// State is the state of a bucket, for people and for the next process.
type State struct {
	Provider string `json:"provider"`
	// Until is when a closed bucket opens, and Reason why it is closed.
	Until  *time.Time `json:"until,omitempty"`
	Reason string     `json:"reason,omitempty"`
	// Levels holds the limits with a period of an hour or longer.
	Levels []Level `json:"levels,omitempty"`
}

// Level is the rest of the share of a limit. It refills evenly.
type Level struct {
	Of  Resource `json:"of"`
	Per int64    `json:"per_seconds"`
	// Most is the share of the limit, and Left the part available now.
	Most int64     `json:"most"`
	Left int64     `json:"left"`
	At   time.Time `json:"at"`
}

// State returns the current state of a bucket; of a nil bucket it is empty.
func (b *Bucket) State() State {
	if b == nil {
		return State{}
	}
	now := time.Now().UTC()
	s := State{Provider: b.provider.Name}
	b.mu.Lock()
	if b.until.After(now) {
		s.Until, s.Reason = new(b.until.UTC()), b.reason
	}
	b.mu.Unlock()
	for _, l := range b.limits {
		if l.Per < lasting {
			continue
		}
		s.Levels = append(s.Levels, Level{
			Of: l.Of, Per: int64(l.Per / time.Second), Most: int64(Share * float64(l.Most)),
			Left: max(int64(l.available.TokensAt(now)), 0), At: now,
		})
	}
	return s
}

// Restore continues a stored state; only the first call has an effect. From
// another provider it only restores the closing.
func (b *Bucket) Restore(s State) {
	if b == nil {
		return
	}
	b.mu.Lock()
	again := b.restored
	b.restored = true
	b.mu.Unlock()
	if again {
		return
	}
	now := time.Now()
	if s.Until != nil && s.Until.After(now) {
		until := *s.Until
		if latest := now.Add(longest + longest/4); until.After(latest) {
			until = latest
		}
		b.hold(until, s.Reason)
	}
	for _, l := range b.limits {
		for _, level := range s.Levels {
			if s.Provider == b.provider.Name && l.Of == level.Of && l.Per == time.Duration(level.Per)*time.Second {
				l.restore(level, now)
			}
		}
	}
}

func (l *limiter) restore(level Level, now time.Time) {
	if level.At.After(now) {
		level.At = now
	}
	l.available.AllowN(level.At, min(max(l.available.Burst()-int(level.Left), 0), l.available.Burst()))
}
