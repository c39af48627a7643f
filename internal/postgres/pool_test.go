package postgres_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

// A transaction of a shared pool takes a connection as its tenant's, waits no
// longer than its context, and gives it back however it ends.
func TestConnectionsAreSharedByTenant(t *testing.T) {
	t.Parallel()
	pool, err := postgres.Open(t.Context(), postgres.Config{URL: dbtest.URL(t), MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	db := postgres.Share(pool)
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
