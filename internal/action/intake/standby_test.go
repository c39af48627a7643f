package intake_test

import (
	"context"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/embedded"
)

// A known proposal is confirmed only if a standby has it too: its commit may have stopped
// waiting for one, and a failover would lose it.
func TestAKnownProposalWaitsForAStandby(t *testing.T) {
	t.Parallel()
	server, err := embedded.Start(t.Context(), embedded.Config{Fast: true, Settings: map[string]string{"synchronous_commit": "on"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	if _, err := postgres.Migrate(t.Context(), server.URL()); err != nil {
		t.Fatal(err)
	}
	db, err := postgres.Open(t.Context(), postgres.Config{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	d := fixtureIn(t, db)
	first := d.accept(note("one"))[0]
	if again := d.accept(note("one"))[0]; !again.Known || again.Action != first.Action {
		t.Fatalf("Accept() = %+v without standbys, want %s, known", again, first.Action)
	}
	admin, writer := connect(t, server.URL()), connect(t, server.URL())
	for _, sql := range []string{"ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()"} {
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	// waiting counts the commits that wait, and with cancel ends their waits.
	waiting := func(cancel bool) (n int) {
		t.Helper()
		const query = "SELECT count(CASE WHEN a.wait_event = 'SyncRep' THEN NOT $1 OR pg_cancel_backend(a.pid) END) FROM pg_stat_activity a"
		if err := admin.QueryRow(t.Context(), query, cancel).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() { // the setting has its effect when a commit waits
		for err := error(nil); err == nil; {
			_, err = writer.Exec(ctx, "SELECT pg_logical_emit_message(true, 'test', '')")
		}
	})
	for waiting(false) == 0 {
	}

	type result struct {
		answers []intake.Answer
		err     error
	}
	results := make(chan result, 1)
	wg.Go(func() {
		answers, err := d.in.Accept(ctx, d.by(), []*envelope.Proposal{note("one")})
		results <- result{answers, err}
	})
	for waiting(false) < 2 {
		select {
		case r := <-results:
			t.Fatalf("Accept() = %+v, %v without a standby, want that it waits", r.answers, r.err)
		default:
		}
	}
	waiting(true)
	if r := <-results; r.err == nil {
		t.Errorf("Accept() = %+v after a wait that was cancelled, want an error", r.answers)
	}
}

// connect opens a connection that ends with the test.
func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) }) // it may be closed
	return conn
}
