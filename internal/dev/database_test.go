package dev_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/dev"
)

func TestAnEndedDatabaseFailsTheEnvironment(t *testing.T) {
	t.Parallel()
	h, err := dev.Open(t.Context(), dev.Config{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() }) // its parts may fail without a database
	conn, err := pgx.Connect(t.Context(), h.PrivateDatabaseURL())
	if err != nil {
		t.Fatal(err)
	}
	var postmaster int
	if err := conn.QueryRow(t.Context(), "SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)::integer").Scan(&postmaster); err != nil {
		t.Fatal(err)
	}

	if err := syscall.Kill(postmaster, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}

	select {
	case err := <-h.Failed():
		if err == nil || !strings.Contains(err.Error(), "PostgreSQL exited unexpectedly; its log is ") {
			t.Errorf("Failed() = %v, want the end of PostgreSQL and its log", err)
		}
	case <-t.Context().Done():
	}
}
