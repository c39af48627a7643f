package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/bench/process"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/embedded"
	"github.com/countersign-dev/countersign/internal/worker"
)

// spending is the cost of actions that does not depend on the machine: bytes of WAL, and
// the statements and round trips of a batch.
type spending struct{ wal, statements, trips float64 }

// TestAnActionKeepsItsBudget bounds what actions cost, from below as well: a change that
// saves lowers the budget.
func TestAnActionKeepsItsBudget(t *testing.T) {
	t.Parallel()
	const batch, warm, batches = 500, 6, 20
	srv, err := embedded.Start(t.Context(), embedded.Config{Fast: true, Settings: map[string]string{
		"autovacuum": "off", "checkpoint_timeout": "1h", "max_wal_size": "4GB", "max_connections": "50",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Stop(context.WithoutCancel(t.Context())) }) // it ends with the test in any case
	if err := newTenant(t.Context(), srv.URL(), "", false); err != nil {
		t.Fatal(err)
	}
	counted := countMessages(t, srv.URL())
	h, err := newEnvironmentOf(t.Context(), counted.url, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer h.close(t.Context())
	direct, err := postgres.Open(t.Context(), postgres.Config{URL: srv.URL(), MaxConns: 1, Name: "budget"})
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Close()
	submit := func(from, n int) func() error {
		return func() error { return h.submit(t.Context(), from, n, batch) }
	}
	work := func() error {
		return whileRunning(t.Context(), worker.NewPipeline(h.pool, h.cache, h.live, budgetConfig(h, batch)).Run,
			func() error { return untilNone(t.Context(), direct, outboxLeft) })
	}
	rows := written(t, direct)
	// The first actions have statements prepared, and caches filled.
	if err := errors.Join(submit(0, warm*batch)(), work()); err != nil {
		t.Fatal(err)
	}

	for _, part := range []struct {
		name   string
		do     func() error
		budget spending
	}{
		{"submit", submit(warm*batch, batches*batch), spending{wal: 1215, statements: 9, trips: 4}},
		{"work", work, spending{wal: 580, statements: 18, trips: 10}},
	} {
		before, err := counted.spent(t.Context(), direct)
		if err == nil {
			err = part.do()
		}
		if err != nil {
			t.Fatal(err)
		}
		after, err := counted.spent(t.Context(), direct)
		if err != nil {
			t.Fatal(err)
		}
		within(t, part.name+", bytes of WAL an action", (after.wal-before.wal)/(batches*batch), part.budget.wal, exact)
		within(t, part.name+", statements a batch", (after.statements-before.statements)/batches, part.budget.statements, loose)
		within(t, part.name+", round trips a batch", (after.trips-before.trips)/batches, part.budget.trips, loose)
	}

	h.pool.Reset() // only backends that end report all their writes
	err = process.Poll(t.Context(), 5*time.Millisecond, func() (ended bool, err error) {
		err = direct.QueryRow(t.Context(), "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'client backend'").Scan(&ended)
		return ended, err
	})
	if err != nil {
		t.Fatal(err)
	}
	within(t, "row versions an action", (written(t, direct)-rows)/((warm+batches)*batch), 4.02, exact)
}

// The least parts of a budget that are spent. A busy machine works off in smaller batches,
// with more statements and round trips: their bound has room for that.
const (
	exact = 0.85
	loose = 0.5
)

// within fails if a figure exceeds its budget, or is less than a part of it.
func within(t *testing.T, name string, got, budget, least float64) {
	t.Helper()
	switch {
	case got > budget:
		t.Errorf("%s: %.3f, more than the budget of %.3f", name, got, budget)
	case got < least*budget:
		t.Errorf("%s: %.3f; lower the budget of %.3f", name, got, budget)
	default:
		t.Logf("%s: %.3f of %.3f", name, got, budget)
	}
}

// written returns the number of row versions that ended backends wrote.
func written(t *testing.T, db *pgxpool.Pool) (n float64) {
	t.Helper()
	err := db.QueryRow(t.Context(), "SELECT coalesce(sum(n_tup_ins + n_tup_upd), 0)::float8 FROM pg_stat_user_tables").Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// budgetConfig has a worker claim and settle whole batches, however fast the machine is.
// There are slots for all actions: while all are taken for 100 ms, as on a busy machine,
// a worker also claims actions that it returns.
func budgetConfig(h *environment, batch int) worker.PipelineConfig {
	return worker.PipelineConfig{
		ID: "budget", Concurrency: 20 * batch, Batch: batch, Settlers: 1, Window: time.Minute, BacklogPoll: time.Minute, Lease: time.Hour,
		Metrics: h.tel.Metrics, Log: h.tel.Log,
	}
}

// messages counts the statements that clients of a server send, and their round trips.
type messages struct {
	url               string
	statements, trips atomic.Int64
}

// countMessages returns a counter with its own URL of a server.
func countMessages(t *testing.T, server string) *messages {
	t.Helper()
	to, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	from := *to
	from.Host = listener.Addr().String()
	m := &messages{url: from.String()}
	go func() { // ends with the listener
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go m.forward(client, to.Host) // ends with the client
		}
	}()
	return m
}

// forward connects a client with the server until either closes.
func (m *messages) forward(client net.Conn, host string) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", host)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	go func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	}()
	sent := pgproto3.NewBackend(io.TeeReader(client, server), nil)
	if _, err := sent.ReceiveStartupMessage(); err != nil {
		return
	}
	for {
		message, err := sent.Receive()
		if err != nil {
			return
		}
		switch message.(type) {
		case *pgproto3.Execute:
			m.statements.Add(1)
		case *pgproto3.Query:
			m.statements.Add(1)
			m.trips.Add(1)
		case *pgproto3.Sync:
			m.trips.Add(1)
		}
	}
}

// spent returns the spending so far.
func (m *messages) spent(ctx context.Context, db *pgxpool.Pool) (s spending, err error) {
	s.statements, s.trips = float64(m.statements.Load()), float64(m.trips.Load())
	return s, db.QueryRow(ctx, "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8").Scan(&s.wal)
}

func TestTheRunCPUFailsAboveMost(t *testing.T) {
	t.Parallel()
	for ratio, fails := range map[float64]bool{1.04: false, 1.06: true} {
		s := &suite{options: options{most: 1.05}, rep: &report{path: t.TempDir() + "/results"}}
		same := costs{cost{GoCPU: 10, PostgresCPU: 20}, cost{GoCPU: 10, PostgresCPU: 20}}
		ours := same
		ours.Work.PostgresCPU = 30*ratio - 10
		pairs := make([][2]costs, minPairs)
		for i := range pairs {
			pairs[i] = [2]costs{ours, same}
		}

		if err := s.reportPairs("the last release", pairs); (err != nil) != fails {
			t.Errorf("an action of %.2f times the processor time: %v, want failure %t", ratio, err, fails)
		}
	}
}
