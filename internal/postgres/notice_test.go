package postgres_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

// heard listens for events until the test ends.
func heard(t *testing.T) (db postgres.Begins, payloads <-chan string) {
	t.Helper()
	pool := dbtest.DB(t)
	out := make(chan string, 100)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { // the clean-up waits for it
		defer close(ended)
		postgres.ListenEvents(pool, slog.New(slog.DiscardHandler))(ctx, func(tenants string) { out <- tenants })
	}()
	t.Cleanup(func() { cancel(); <-ended })
	if first := next(t, out); first != "" {
		t.Fatalf("the first notification is %q, want the one of the new connection", first)
	}
	return pool, out
}

func next(t *testing.T, payloads <-chan string) string {
	t.Helper()
	select {
	case p := <-payloads:
		return p
	case <-time.After(time.Minute):
		t.Fatal("no notification for a minute")
		return ""
	}
}

func TestCommitsAreAnnounced(t *testing.T) {
	t.Parallel()
	db, payloads := heard(t)
	one, two := uuid.NewString(), uuid.NewString()
	announce := func(end error, tenants ...string) {
		t.Helper()
		err := postgres.InTx(t.Context(), db, postgres.Worker(), func(tx pgx.Tx) error {
			for _, tenant := range tenants {
				postgres.Announce(tx, tenant, false)
			}
			return end
		})
		if !errors.Is(err, end) {
			t.Fatal(err)
		}
	}

	announce(errors.New("rolled back"), one)
	announce(nil) // on the same connection
	announce(nil, two, two)

	if got := next(t, payloads); got != two {
		t.Errorf("notified of %q, want only the committed tenant %s, once", got, two)
	}
}

func TestManyTenantsFitInNotifications(t *testing.T) {
	t.Parallel()
	db, payloads := heard(t)
	var want []string
	for range 1000 { // one payload has room for 216 ids
		want = append(want, uuid.NewString())
	}

	err := postgres.InTx(t.Context(), db, postgres.Worker(), func(tx pgx.Tx) error {
		for _, tenant := range want {
			postgres.Announce(tx, tenant, false)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	var got []string
	for len(got) < len(want) {
		got = append(got, strings.Split(next(t, payloads), ",")...)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("notified of %d tenants, want the %d announced ones", len(got), len(want))
	}
}
