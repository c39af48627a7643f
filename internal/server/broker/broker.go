// Package broker reads a tenant's events, once for all waits in the process,
// and sends them to streams of events and to waits for single actions. It does
// not decide who may see an event (access).
package broker

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/server/access"
)

const (
	// readAtOnce is the most events that one query reads.
	readAtOnce = 100
	// backlog is the number of batches that a subscriber may be behind before its
	// subscription ends.
	backlog = 64
	// sweepEvery is the interval at which the statuses of awaited actions are read without a
	// notification, in addition to the events: an event can be read only after the oldest transaction
	// of the whole database has ended.
	sweepEvery = time.Second
	// sweptOnWake bounds the awaited actions whose statuses are read on a
	// notification; beyond it waits depend on events. sweepShare bounds the other
	// reads of the statuses: the time to the next is at least this many times as
	// long as the read.
	sweptOnWake = 64
	sweepShare  = 200
	// listening is the poll interval of a broker that is notified: a notification
	// may be lost.
	listening = time.Second
	// missedAfter is when the status of an awaited action is read whose end may have
	// been notified before the wait began.
	missedAfter = 50 * time.Millisecond
	// wakeShare bounds the reads after notifications: the pause after one is at
	// least this many times as long as the read.
	wakeShare = 1
	// unwatchedEvery is the least time between two reads of events of which there
	// are no subscribers: waits for the end of an action need none.
	unwatchedEvery = 100 * time.Millisecond
	// retryEvery is the first pause before events are read again that are
	// committed but hidden by an older open transaction. The pauses double.
	retryEvery = 2 * time.Millisecond
	// linger is the time for which the events of a tenant are read after their
	// last user.
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
	// Subjects are the sessions and tools of the events' actions, without deleted
	// actions; nil if there are no events.
	Subjects map[envelope.ActionID]access.Subject
}

// Full reports whether more events may follow those of a batch.
func (b Batch) Full() bool { return len(b.Events) == readAtOnce }

// New returns a broker that reads events when it is notified, or at an interval if
// listen is nil.
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

// wake makes the topics of tenants read events soon. If nobody subscribes to the
// events, only accepted changes of awaited actions matter; waits for actions that a
// notice names as ended are notified at once. It does not block.
func (b *Broker) wake(payload string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if payload == "" {
		for _, t := range b.topics {
			t.change()
		}
		return
	}
	for _, n := range postgres.Notices(payload) {
		var id envelope.TenantID
		if err := id.UnmarshalText([]byte(n.Tenant)); err != nil {
			continue
		}
		switch t := b.topics[id]; {
		case t == nil:
		case n.Changed && n.Ended == nil:
			t.change()
		default:
			t.notifyEnded(n.Ended)
			if len(t.subscribers) > 0 {
				t.wake()
			}
		}
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

// Close ends all subscriptions and waits, and returns when every poller has
// ended.
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

// Watch returns a channel that receives a value after changes of an action;
// several changes may be one value. Changes before Watch returns may be missed; an
// end among them is notified a moment later.
// The caller must call stop. The error is ErrClosed, or that of ctx.
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
	missed := time.AfterFunc(missedAfter, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		t.change()
	})
	return wait, func() {
		missed.Stop()
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
