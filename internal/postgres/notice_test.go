package postgres_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

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
				postgres.Announce(tx, postgres.Notice{Tenant: tenant})
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
			postgres.Announce(tx, postgres.Notice{Tenant: tenant})
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

// TestEndedActionsAreNamed holds what a payload says after commits of which all, or
// not all, changed actions have ended.
func TestEndedActionsAreNamed(t *testing.T) {
	t.Parallel()
	tenant := uuid.NewString()
	tail := func(n byte) postgres.Tail { return postgres.Tail{n, 0, 0xff, ','} }
	ended := func(tails ...postgres.Tail) postgres.Notice {
		return postgres.Notice{Tenant: tenant, Changed: true, Ended: tails}
	}
	var many []postgres.Tail
	for n := range postgres.MaxEnded {
		many = append(many, tail(byte(n)))
	}
	for name, test := range map[string]struct {
		announced []postgres.Notice
		want      postgres.Notice
	}{
		"a proposal":                     {[]postgres.Notice{{Tenant: tenant}}, postgres.Notice{Tenant: tenant}},
		"an end":                         {[]postgres.Notice{ended(tail(1))}, ended(tail(1))},
		"two ends and a proposal":        {[]postgres.Notice{ended(tail(1)), {Tenant: tenant}, ended(tail(2))}, ended(tail(1), tail(2))},
		"a proposal and an end":          {[]postgres.Notice{{Tenant: tenant}, ended(tail(1))}, ended(tail(1))},
		"an end and another change":      {[]postgres.Notice{ended(tail(1)), {Tenant: tenant, Changed: true}}, postgres.Notice{Tenant: tenant, Changed: true}},
		"another change and an end":      {[]postgres.Notice{{Tenant: tenant, Changed: true}, ended(tail(1))}, postgres.Notice{Tenant: tenant, Changed: true}},
		"as many ends as a notice names": {[]postgres.Notice{ended(many...)}, ended(many...)},
		"more ends than a notice names":  {[]postgres.Notice{ended(many...), ended(tail(1))}, postgres.Notice{Tenant: tenant, Changed: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, payloads := heard(t)
			err := postgres.InTx(t.Context(), db, postgres.Worker(), func(tx pgx.Tx) error {
				for _, n := range test.announced {
					postgres.Announce(tx, n)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}

			got := postgres.Notices(next(t, payloads))

			if diff := cmp.Diff([]postgres.Notice{test.want}, got); diff != "" {
				t.Errorf("notices (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAWakeUpTakesNoticesAlong holds that a notification on another channel sends the
// notices that its pool has not sent yet.
func TestAWakeUpTakesNoticesAlong(t *testing.T) {
	t.Parallel()
	db, payloads := heard(t)
	tenant := uuid.NewString()
	err := postgres.InTx(t.Context(), db, postgres.Worker(), func(tx pgx.Tx) error {
		t.Cleanup(postgres.HoldNotices(tx))
		postgres.Announce(tx, postgres.Notice{Tenant: tenant})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	if err := postgres.Notify(t.Context(), db.(*pgxpool.Pool), "work", ""); err != nil {
		t.Fatal(err)
	}

	if got := next(t, payloads); got != tenant {
		t.Errorf("notified of %q, want %s", got, tenant)
	}
}
