package broker

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// topic is the events of one tenant. The broker's mutex guards it, except for
// swept and read, which only the poller uses.
type topic struct {
	tenant envelope.TenantID
	// users counts the subscribers and waits. The poller stops when there has been
	// none since left, for linger.
	users int
	left  time.Time
	stop  context.CancelFunc
	// ready is closed once at, the last event that was sent, is known.
	ready       chan struct{}
	at          audit.Position
	subscribers map[*Subscriber]struct{}
	// waits are the channels that receive a value when something has happened to
	// an action.
	waits map[envelope.ActionID]map[chan struct{}]struct{}
	// woken receives a value when the tenant may have new events, or a wait is new.
	woken chan struct{}
	// changed reports whether actions may have ended, without a notice that names
	// them, since the last read of the statuses.
	changed bool
	// swept and read are when the statuses and the events were read last.
	swept, read time.Time
	// sweepTook is the duration of the last read of the statuses.
	sweepTook time.Duration
}

func (t *topic) wake() {
	select {
	case t.woken <- struct{}{}:
	default: // a value was not received yet
	}
}

// change makes the poller read the statuses of the awaited actions. The caller holds
// the mutex.
func (t *topic) change() {
	t.changed = true
	t.wake()
}

// notifyEnded notifies the waits for ended actions, and for others with the same
// tails. The caller holds the mutex.
func (t *topic) notifyEnded(ended []postgres.Tail) {
	if len(ended) == 0 {
		return
	}
	for action := range t.waits {
		if slices.Contains(ended, postgres.TailOf(action)) {
			t.notify(action)
		}
	}
}

// unused removes a topic without users, and reports whether it did. An agent that
// makes one call after another finds the topic of the last call.
func (b *Broker) unused(t *topic) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.users > 0 || time.Since(t.left) < linger {
		return false
	}
	delete(b.topics, t.tenant)
	return true
}

// poll reads events until ctx ends.
func (b *Broker) poll(ctx context.Context, t *topic) {
	defer t.stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	retry := b.every // the pause after a wake that found no event
	for {
		woken := false
		select {
		case <-ctx.Done():
			return
		case <-t.woken:
			woken, retry = true, retryEvery
		case <-timer.C:
			if b.unused(t) {
				return
			}
		}
		began := time.Now()
		found, read, err := b.advance(ctx, t)
		if err != nil && ctx.Err() == nil {
			b.log.WarnContext(ctx, "events not read", slog.String("tenant_id", t.tenant.String()), slog.Any("error", err))
			retry = max(b.every, time.Second)
		}
		switch {
		case found:
			retry = b.every
		case !read:
			retry = min(b.every, unwatchedEvery)
		}
		timer.Reset(min(retry, max(b.every, time.Second)))
		retry = min(2*retry, b.every)
		if woken && !pause(ctx, wakeShare*time.Since(began)) {
			return
		}
	}
}

// pause waits, and reports false if ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// advance sends the events committed since the last call to the subscribers. It
// reports whether there were any, and whether it read. It first notifies the waits for
// actions that have ended, if that is due, which does not depend on events.
func (b *Broker) advance(ctx context.Context, t *topic) (found, read bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	if !isClosed(t.ready) {
		return true, true, b.begin(ctx, t)
	}
	now := time.Now()
	if err := b.sweep(ctx, t, now); err != nil {
		return false, true, err
	}
	if now.Sub(t.read) < unwatchedEvery && !b.needsEvents(t) {
		return false, false, nil
	}
	t.read = now
	for {
		events, err := readEvents(ctx, b.db, t.tenant, t.at)
		if err != nil {
			return found, true, err
		}
		if len(events) > 0 {
			found = true
			if err := b.publish(ctx, t, Batch{Events: events}); err != nil {
				return found, true, err
			}
		}
		if len(events) < readAtOnce {
			return found, true, nil
		}
	}
}

// needsEvents reports whether the topic needs events: it has subscribers, or
// waits whose statuses are not read on a notification.
func (b *Broker) needsEvents(t *topic) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(t.subscribers) > 0 || len(t.waits) > sweptOnWake
}

// begin finds the last event before the topic's first user.
func (b *Broker) begin(ctx context.Context, t *topic) error {
	at, err := postgres.InTxReturning(ctx, b.db, postgres.API(t.tenant), func(tx pgx.Tx) (audit.Position, error) {
		return audit.Latest(ctx, tx, t.tenant)
	})
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	t.at = at
	close(t.ready)
	return nil
}

// publish sends a batch to all subscribers. A subscriber that is added while
// subjects are read gets the batch too, since at is before it until then.
func (b *Broker) publish(ctx context.Context, t *topic, events Batch) error {
	for !b.handOut(t, events) {
		var err error
		if events.Subjects, err = subjectsOf(ctx, b.db, t.tenant, events.Events); err != nil {
			return err
		}
	}
	return nil
}

// handOut sends a batch to the subscribers. It returns false, and does
// nothing, if there are subscribers and the batch has no subjects: waits need
// none.
func (b *Broker) handOut(t *topic, events Batch) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(t.subscribers) > 0 && events.Subjects == nil {
		return false
	}
	for sub := range t.subscribers {
		select {
		case sub.batches <- events:
		default:
			t.end(sub)
		}
	}
	for _, e := range events.Events {
		if e.Kind == audit.Proposed {
			continue // before anybody could wait for the action
		}
		for _, it := range e.Items {
			t.notify(it.Action)
		}
	}
	t.at = events.Events[len(events.Events)-1].Position
	return true
}

// end ends a subscription from this side. The caller holds the mutex.
func (t *topic) end(sub *Subscriber) {
	if !sub.ended {
		sub.ended = true
		delete(t.subscribers, sub)
		close(sub.batches)
	}
}

func (t *topic) notify(action envelope.ActionID) {
	for wait := range t.waits[action] {
		select {
		case wait <- struct{}{}:
		default: // a value was not received yet
		}
	}
}

// sweepDue reports whether the statuses of the awaited actions must be read. The
// caller holds the mutex.
func (t *topic) sweepDue(now time.Time) bool {
	return len(t.waits) > 0 && (t.changed && len(t.waits) <= sweptOnWake || now.Sub(t.swept) >= max(sweepEvery, sweepShare*t.sweepTook))
}

// sweep notifies the waits for actions that have ended, if that is due.
func (b *Broker) sweep(ctx context.Context, t *topic, now time.Time) error {
	b.mu.Lock()
	due := t.sweepDue(now)
	t.changed = t.changed && !due
	awaited := slices.Collect(maps.Keys(t.waits))
	b.mu.Unlock()
	if !due {
		return nil
	}
	t.swept = now
	ended, err := endedOf(ctx, b.db, t.tenant, awaited)
	t.sweepTook = time.Since(now)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, action := range ended {
		t.notify(action)
	}
	return nil
}
