package broker_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox/outboxtest"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/server/broker"
)

// never is longer than a test: events that arrive were notified.
const never = time.Hour

func newTenant(t *testing.T, db *pgxpool.Pool) envelope.TenantID {
	t.Helper()
	tenant := envelope.TenantID(uuid.Must(uuid.NewV7()))
	if _, err := db.Exec(t.Context(), "INSERT INTO tenants (tenant_id, name) VALUES ($1, $2)", tenant.String(), tenant.String()); err != nil {
		t.Fatal(err)
	}
	return tenant
}

func newBroker(t *testing.T, db *pgxpool.Pool) *broker.Broker {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	b := broker.New(db, postgres.ListenEvents(db, log), never, log)
	t.Cleanup(b.Close)
	return b
}

// record writes an event about an action in a transaction of another process.
func record(t *testing.T, url string, tenant envelope.TenantID, action envelope.ActionID) {
	t.Helper()
	db, err := postgres.Open(t.Context(), postgres.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	err = postgres.InTx(t.Context(), db, postgres.Worker(), func(tx pgx.Tx) error {
		return audit.Write(t.Context(), tx, audit.Event{Tenant: tenant, Kind: audit.Decided, Actor: "w", Items: []audit.Item{{Action: action}}})
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestEveryReplicaIsNotified(t *testing.T) {
	t.Parallel()
	db := dbtest.DB(t)
	tenant := newTenant(t, db)
	replicas := []*broker.Broker{newBroker(t, db), newBroker(t, db)}
	var subscribers []*broker.Subscriber
	for _, b := range replicas {
		sub, err := b.Subscribe(t.Context(), tenant)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Unsubscribe(sub)
		subscribers = append(subscribers, sub)
	}
	action := envelope.ActionID(uuid.Must(uuid.NewV7()))

	record(t, db.Config().ConnString(), tenant, action)

	for i, sub := range subscribers {
		select {
		case batch := <-sub.Batches():
			if got := batch.Events[0].Items[0].Action; got != action {
				t.Errorf("replica %d: event of %s, want %s", i, got, action)
			}
		case <-time.After(time.Minute):
			t.Errorf("replica %d was not notified", i)
		}
	}
}

// watch waits for an action on a replica.
func watch(t *testing.T, b *broker.Broker, tenant envelope.TenantID, action envelope.ActionID) <-chan struct{} {
	t.Helper()
	changed, stop, err := b.Watch(t.Context(), tenant, action)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return changed
}

// TestAWaiterOnEitherReplicaIsWokenByEitherWorker has two actions end, each by a
// commit of another process, while each is waited for on two replicas.
func TestAWaiterOnEitherReplicaIsWokenByEitherWorker(t *testing.T) {
	t.Parallel()
	fx := outboxtest.NewShared(t)
	db := fx.DB.(*pgxpool.Pool)
	replicas := []*broker.Broker{newBroker(t, db), newBroker(t, db)}
	actions := fx.Queue(envelope.EffectKeyed, 2)
	for _, it := range fx.Claim(2) {
		for _, b := range replicas {
			changed := watch(t, b, fx.Tenant, it.Action)
			defer func() {
				select {
				case <-changed:
				case <-time.After(time.Minute):
					t.Error("a waiter was not woken")
				}
			}()
		}
		fx.Settle(outboxtest.Sent(it))
	}

	for _, action := range actions {
		record(t, db.Config().ConnString(), fx.Tenant, action)
	}
}

// TestOneOfManyWaitersIsWoken has more awaited actions than are read on a
// notification; the event of one of them wakes it.
func TestOneOfManyWaitersIsWoken(t *testing.T) {
	t.Parallel()
	fx := outboxtest.NewShared(t)
	db := fx.DB.(*pgxpool.Pool)
	b := newBroker(t, db)
	var last <-chan struct{}
	actions := fx.Queue(envelope.EffectKeyed, 100)
	for _, action := range actions {
		last = watch(t, b, fx.Tenant, action)
	}

	record(t, db.Config().ConnString(), fx.Tenant, actions[99])

	select {
	case <-last:
	case <-time.After(time.Minute):
		t.Error("the waiter was not woken")
	}
}

// TestALostNotificationDelaysByOnePoll has a replica that is never notified.
func TestALostNotificationDelaysByOnePoll(t *testing.T) {
	t.Parallel()
	fx := outboxtest.NewShared(t)
	db := fx.DB.(*pgxpool.Pool)
	unheard := func(ctx context.Context, _ func(string)) { <-ctx.Done() }
	b := broker.New(db, unheard, time.Second, slog.New(slog.DiscardHandler))
	t.Cleanup(b.Close)
	sub, err := b.Subscribe(t.Context(), fx.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Unsubscribe(sub)
	action := fx.Queue(envelope.EffectKeyed, 1)[0]
	changed := watch(t, b, fx.Tenant, action)

	record(t, db.Config().ConnString(), fx.Tenant, action)

	for range 2 {
		select {
		case <-changed:
			changed = nil
		case <-sub.Batches():
		case <-time.After(time.Minute):
			t.Fatal("what happened is lost without its notification")
		}
	}
}

// TestEventsBehindAnOpenTransactionArriveWhenItEnds has an older transaction keep
// an event from being read at the time of its notification.
func TestEventsBehindAnOpenTransactionArriveWhenItEnds(t *testing.T) {
	t.Parallel()
	db := dbtest.DB(t)
	tenant := newTenant(t, db)
	b := newBroker(t, db)
	sub, err := b.Subscribe(t.Context(), tenant)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Unsubscribe(sub)
	older, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := older.Exec(t.Context(), "SELECT pg_current_xact_id()"); err != nil {
		t.Fatal(err)
	}

	record(t, db.Config().ConnString(), tenant, envelope.ActionID(uuid.Must(uuid.NewV7())))
	if err := older.Rollback(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}

	select {
	case <-sub.Batches():
	case <-time.After(time.Minute):
		t.Error("the event did not arrive after the older transaction had ended")
	}
}
