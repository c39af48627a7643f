// Package broker reads a tenant's events, once for everybody in the process who
// waits for them, and hands them to streams of events and to waits for single
// actions. It does not decide who may see an event (access).
package broker

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/server/access"
)

const (
	// readAtOnce is the most events that one query reads.
	readAtOnce = 100
	// backlog is how many batches a subscriber may be behind before the
	// subscription ends.
	backlog = 64
	// sweepEvery is how often the statuses of awaited actions are read without a
	// notification, next to the events: an event can be read only after the oldest transaction of the
	// whole database has ended.
	sweepEvery = time.Second
	// sweptOnWake is the most awaited actions whose statuses are read on a
	// notification; more are found by their events. sweepShare bounds the other
	// reads of the statuses: the time to the next is at least this many times as
	// long as the read.
	sweptOnWake = 64
	sweepShare  = 200
	// listening is how often a broker that is notified looks for events all the
	// same: a notification may be lost.
	listening = time.Second
	// wakeShare bounds the reads after notifications: the pause after one is at
	// least this many times as long as the read.
	wakeShare = 1
	// unwatchedEvery is the least time between two reads of events of which there
	// are no subscribers: waits for the end of an action need none.
	unwatchedEvery = 100 * time.Millisecond
	// retryEvery is when events are looked for again that are committed, and
	// readable only after an older transaction has ended. The pauses double.
	retryEvery = 2 * time.Millisecond
	// linger is how long the events of a tenant are read after their last user.
	linger = 5 * time.Second
	// queryTimeout bounds one round of queries.
	queryTimeout = 30 * time.Second
)

// ErrClosed is the error of a closed broker: it takes no more subscribers.
var ErrClosed = fault.New(fault.Busy, "the server is closing; try again")

// Broker reads the events of those tenants that have subscribers. It is safe
// for concurrent use, and must be closed.
type Broker struct {
	db     postgres.Begins
	every  time.Duration
	log    *slog.Logger
	closed chan struct{}

	mu      sync.Mutex
	topics  map[envelope.TenantID]*topic
	pollers sync.WaitGroup
}

// topic is the events of one tenant. The broker's mutex guards it, except for
// swept and read, which only the poller uses.
type topic struct {
	tenant envelope.TenantID
	// users counts the subscribers and waits. The poller stops when there has been
	// none since left, for linger.
	users int
	left  time.Time
	stop  context.CancelFunc
	// ready is closed once at, the last event that was handed out, is known.
	ready       chan struct{}
	at          audit.Position
	subscribers map[*Subscriber]struct{}
	// waits are the channels that receive a value when something has happened to
	// an action.
	waits map[envelope.ActionID]map[chan struct{}]struct{}
	// woken receives a value when the tenant may have new events, or a wait is new.
	woken chan struct{}
	// swept and read are when the statuses and the events were read last.
	swept, read time.Time
	// sweepTook is how long the last read of the statuses took.
	sweepTook time.Duration
}

// Listen calls notified after commits that recorded events, with the payload of
// postgres.EventsChannel, until a context ends. An empty text is for all tenants.
type Listen func(ctx context.Context, notified func(tenants string))

// Subscriber receives every event behind From.
type Subscriber struct {
	// From is the last event before the subscription.
	From audit.Position

	topic   *topic
	batches chan Batch
	ended   bool
}

// Batches is the channel of events, in order. It is closed when the subscriber
// was too slow, or the broker closes.
func (s *Subscriber) Batches() <-chan Batch { return s.batches }

// Batch is the events of one query.
type Batch struct {
	Events []audit.Stored
	// Subjects are the sessions and tools of the events' actions, as far as the
	// actions still exist; nil if there is no event.
	Subjects map[envelope.ActionID]access.Subject
}

// Full reports whether there may be more events behind those of a batch.
func (b Batch) Full() bool { return len(b.Events) == readAtOnce }

// New returns a broker that looks for events when it is notified, or at an interval
// if listen is nil.
func New(db postgres.Begins, listen Listen, every time.Duration, log *slog.Logger) *Broker {
	b := &Broker{db: db, every: every, log: log, closed: make(chan struct{}), topics: make(map[envelope.TenantID]*topic)}
	if listen != nil {
		b.every = max(every, listening)
		ctx, stop := context.WithCancel(context.Background())
		b.pollers.Go(func() {
			defer stop()
			<-b.closed
		})
		b.pollers.Go(func() { listen(ctx, b.wake) })
	}
	return b
}

// wake has the topics of tenants looked at soon. Where nobody subscribes to the
// events, a wait has to know only of accepted actions that changed. It does not block.
func (b *Broker) wake(tenants string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if tenants == "" {
		for _, t := range b.topics {
			t.wake()
		}
		return
	}
	for text := range strings.SplitSeq(tenants, ",") {
		var id envelope.TenantID
		text, changed := strings.CutPrefix(text, postgres.Change)
		if err := id.UnmarshalText([]byte(text)); err != nil {
			continue
		}
		if t := b.topics[id]; t != nil && (changed || len(t.subscribers) > 0) {
			t.wake()
		}
	}
}

func (t *topic) wake() {
	select {
	case t.woken <- struct{}{}:
	default: // a value is there that was not received yet
	}
}

// Closed is closed when the broker is.
func (b *Broker) Closed() <-chan struct{} { return b.closed }

// IsClosed reports whether the broker is closed.
func (b *Broker) IsClosed() bool { return isClosed(b.closed) }

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// Close ends all subscriptions and waits, and returns when no poller runs any
// more.
func (b *Broker) Close() {
	b.mu.Lock()
	if !b.IsClosed() {
		close(b.closed)
		for _, t := range b.topics {
			t.stop()
			for sub := range t.subscribers {
				t.end(sub)
			}
		}
	}
	b.mu.Unlock()
	b.pollers.Wait()
}

// Subscribe starts a subscription to a tenant's events. A caller that got a
// Subscriber must unsubscribe it. The error is ErrClosed, or that of ctx.
func (b *Broker) Subscribe(ctx context.Context, tenant envelope.TenantID) (*Subscriber, error) {
	t, err := b.join(ctx, tenant)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	sub := &Subscriber{topic: t, From: t.at, batches: make(chan Batch, backlog)}
	t.subscribers[sub] = struct{}{}
	if b.IsClosed() {
		t.end(sub)
	}
	return sub, nil
}

// Unsubscribe ends a subscription.
func (b *Broker) Unsubscribe(sub *Subscriber) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(sub.topic.subscribers, sub)
	b.leave(sub.topic)
}

// Watch returns a channel that receives a value after something has happened to
// an action; several things are perhaps one value. What happened before Watch
// returned may be missed. stop ends the wait and must be called. The error is
// ErrClosed, or that of ctx.
func (b *Broker) Watch(ctx context.Context, tenant envelope.TenantID, action envelope.ActionID) (changed <-chan struct{}, stop func(), err error) {
	t, err := b.join(ctx, tenant)
	if err != nil {
		return nil, nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	wait := make(chan struct{}, 1)
	if t.waits[action] == nil {
		t.waits[action] = make(map[chan struct{}]struct{})
	}
	t.waits[action][wait] = struct{}{}
	t.wake()
	return wait, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(t.waits[action], wait)
		if len(t.waits[action]) == 0 {
			delete(t.waits, action)
		}
		b.leave(t)
	}, nil
}

// Read returns the next events behind a place, with the subjects of their
// actions.
func (b *Broker) Read(ctx context.Context, tenant envelope.TenantID, after audit.Position) (Batch, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	events, err := readEvents(ctx, b.db, tenant, after)
	if err != nil || len(events) == 0 {
		return Batch{Events: events}, err
	}
	found, err := subjectsOf(ctx, b.db, tenant, events)
	return Batch{events, found}, err
}

// join counts a user in and returns the tenant's topic once its place is known.
func (b *Broker) join(ctx context.Context, tenant envelope.TenantID) (*topic, error) {
	b.mu.Lock()
	if b.IsClosed() {
		b.mu.Unlock()
		return nil, ErrClosed
	}
	t := b.topics[tenant]
	if t == nil {
		polling, stop := context.WithCancel(context.WithoutCancel(ctx))
		t = &topic{
			tenant: tenant, stop: stop, ready: make(chan struct{}),
			woken: make(chan struct{}, 1), subscribers: make(map[*Subscriber]struct{}), waits: make(map[envelope.ActionID]map[chan struct{}]struct{}),
		}
		b.topics[tenant] = t
		b.pollers.Go(func() { b.poll(polling, t) })
	}
	t.users++
	b.mu.Unlock()
	var err error
	select {
	case <-t.ready:
		return t, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-b.closed:
		err = ErrClosed
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leave(t)
	return nil, err
}

// leave counts a user out. The caller holds the mutex.
func (b *Broker) leave(t *topic) {
	if t.users--; t.users == 0 {
		t.left = time.Now()
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

// poll looks for events until ctx ends.
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
		found, read, err := b.advance(ctx, t, woken)
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

// advance hands out the events that were committed since the last call, and
// reports whether there were any, and whether it looked. If the topic was woken, it
// first notifies the waits for actions that have ended, which needs no event.
func (b *Broker) advance(ctx context.Context, t *topic, woken bool) (found, read bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	if !isClosed(t.ready) {
		return true, true, b.begin(ctx, t)
	}
	now := time.Now()
	if err := b.sweep(ctx, t, woken, now); err != nil {
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

// needsEvents reports whether somebody waits for the events of the topic: its
// subscribers, or waits whose statuses are not read on a notification.
func (b *Broker) needsEvents(t *topic) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(t.subscribers) > 0 || len(t.waits) > sweptOnWake
}

// begin finds the last event before the topic's first user.
func (b *Broker) begin(ctx context.Context, t *topic) error {
	var at audit.Position
	err := postgres.InTx(ctx, b.db, postgres.API(t.tenant), func(tx pgx.Tx) error {
		var err error
		at, err = audit.Latest(ctx, tx, t.tenant)
		return err
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

// publish hands a batch to all subscribers. A subscriber that comes while subjects
// are looked up gets the batch too, since at stays before it until then.
func (b *Broker) publish(ctx context.Context, t *topic, events Batch) error {
	for !b.handOut(t, events) {
		var err error
		if events.Subjects, err = subjectsOf(ctx, b.db, t.tenant, events.Events); err != nil {
			return err
		}
	}
	return nil
}

// handOut hands out a batch. It reports false, and does nothing, if there are
// subscribers and the batch has no subjects: waits need none.
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
		default: // a value is there that was not received yet
		}
	}
}

// sweepDue reports whether the statuses of the awaited actions are to be read. The
// caller holds the mutex.
func (t *topic) sweepDue(woken bool, now time.Time) bool {
	return len(t.waits) > 0 && (woken && len(t.waits) <= sweptOnWake || now.Sub(t.swept) >= max(sweepEvery, sweepShare*t.sweepTook))
}

// sweep notifies the waits for actions that have ended, if that is due.
func (b *Broker) sweep(ctx context.Context, t *topic, woken bool, now time.Time) error {
	b.mu.Lock()
	due := t.sweepDue(woken, now)
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
