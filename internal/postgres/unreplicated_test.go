package postgres_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/embedded"
)

// TestACommitThatStopsWaitingForAStandbyIsNotConfirmed has a primary whose standby is
// away. PostgreSQL reports a cancelled wait as a success with a warning.
func TestACommitThatStopsWaitingForAStandbyIsNotConfirmed(t *testing.T) {
	t.Parallel()
	server, err := embedded.Start(t.Context(), embedded.Config{Fast: true, Settings: map[string]string{
		"wal_level": "replica", "max_wal_senders": "1",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	admin, err := pgx.Connect(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.WithoutCancel(t.Context()))
	for _, sql := range []string{"CREATE TABLE public.rows (n integer)", "ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()"} {
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for names := ""; names != "nobody"; {
		if err := admin.QueryRow(t.Context(), "SHOW synchronous_standby_names").Scan(&names); err != nil {
			t.Fatal(err)
		}
	}
	db, err := postgres.Open(t.Context(), postgres.Config{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	insert := func(setting string) error {
		return postgres.InTx(t.Context(), db, postgres.Admin(), func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), "SET LOCAL synchronous_commit = "+setting+"; INSERT INTO public.rows VALUES (1)", pgx.QueryExecModeSimpleProtocol)
			return err
		})
	}
	committed, rows := make(chan error, 1), 2
	go func() { committed <- insert("on") }() // waited for below
	for cancelled := false; !cancelled; {
		select {
		case err := <-committed: // the checkpointer has not read the configuration yet
			if err != nil {
				t.Fatal(err)
			}
			rows++
			go func() { committed <- insert("on") }()
		default:
		}
		err := admin.QueryRow(t.Context(), `SELECT coalesce(bool_or(pg_cancel_backend(a.pid)), false) FROM pg_stat_activity a
			WHERE a.wait_event = 'SyncRep' AND a.backend_type = 'client backend'`).Scan(&cancelled)
		if err != nil {
			t.Fatal(err)
		}
	}

	err = <-committed

	if !errors.Is(err, fault.Busy) {
		t.Errorf("the commit returns %v", err)
	}
	if err := insert("local"); err != nil {
		t.Errorf("the next commit of the connection returns %v", err)
	}
	var n int
	if err := admin.QueryRow(t.Context(), "SELECT count(1) FROM public.rows").Scan(&n); err != nil || n != rows {
		t.Errorf("%d rows are there, want %d, %v", n, rows, err)
	}
}
