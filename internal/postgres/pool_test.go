package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

// A wait for a connection is short, whether tenants or other users have all of
// them.
func TestAnExhaustedPoolIsBusy(t *testing.T) {
	t.Parallel()
	pool, err := postgres.Open(t.Context(), postgres.Config{URL: dbtest.URL(t), MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := pool.Ping(t.Context()); err != nil { // make the connection before anything waits for it
		t.Fatal(err)
	}
	db := postgres.Share(pool, 300*time.Millisecond)
	as := postgres.API(envelope.TenantID(uuid.New()))

	for name, held := range map[string]postgres.Begins{"tenants": db, "others": pool} {
		err := postgres.InTx(t.Context(), held, as, func(pgx.Tx) error {
			err := postgres.InTx(t.Context(), db, as, func(pgx.Tx) error { return nil })
			if busy, ok := errors.AsType[*fault.Error](err); !ok || busy.Kind != fault.Busy || busy.After <= 0 {
				t.Errorf("InTx while %s hold the connection = %v, want fault.Busy with a wait", name, err)
			}
			return nil
		})
		if err != nil {
			t.Errorf("InTx = %v", err)
		}
	}
	if err := postgres.InTx(t.Context(), db, as, func(pgx.Tx) error { return nil }); err != nil {
		t.Errorf("InTx on a free connection = %v", err)
	}
}

// A transaction of a shared pool takes a connection as its tenant's, waits no
// longer than its context, and gives it back however it ends.
func TestConnectionsAreSharedByTenant(t *testing.T) {
	t.Parallel()
	pool, err := postgres.Open(t.Context(), postgres.Config{URL: dbtest.URL(t), MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	db := postgres.Share(pool, 0)
	one, two := postgres.API(envelope.TenantID(uuid.New())), postgres.API(envelope.TenantID(uuid.New()))
	boom := errors.New("boom")
	nothing := func(pgx.Tx) error { return nil }

	err = postgres.InTx(t.Context(), db, one, func(pgx.Tx) error {
		over, cancel := context.WithCancel(t.Context())
		waits := make(chan error)
		go func() { waits <- postgres.InTx(over, db, two, nothing) }() // received from below
		cancel()
		if err := <-waits; !errors.Is(err, context.Canceled) {
			t.Errorf("InTx without a connection = %v, want the error of its context", err)
		}
		return boom
	})

	if !errors.Is(err, boom) {
		t.Errorf("InTx() = %v, want boom", err)
	}
	if err := postgres.InTx(t.Context(), db, two, nothing); err != nil {
		t.Errorf("InTx after the connection was given back = %v", err)
	}
}
