package audit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

// log holds a tenant's events in a database of their own.
type log struct {
	t      *testing.T
	db     *pgxpool.Pool
	tenant envelope.TenantID
}

func newLog(t *testing.T) log {
	t.Helper()
	return log{t, dbtest.DB(t), envelope.TenantID(uuid.Must(uuid.NewV7()))}
}

// begin opens a transaction and writes an event in it.
func (l log) begin(name string) pgx.Tx {
	l.t.Helper()
	tx, err := l.db.Begin(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		if err := tx.Rollback(context.WithoutCancel(l.t.Context())); err != nil && !errors.Is(err, pgx.ErrTxClosed) {
			l.t.Error(err)
		}
	})
	l.writeIn(tx, name)
	return tx
}

func (l log) writeIn(tx pgx.Tx, name string) {
	l.t.Helper()
	if err := audit.Write(l.t.Context(), tx, audit.Event{Tenant: l.tenant, Kind: audit.Configured, Actor: envelope.Actor(name), Items: []audit.Item{{Subject: name}}}); err != nil {
		l.t.Fatal(err)
	}
}

func (l log) commit(tx pgx.Tx) {
	l.t.Helper()
	if err := tx.Commit(l.t.Context()); err != nil {
		l.t.Fatal(err)
	}
}

func (l log) write(name string) { l.t.Helper(); l.commit(l.begin(name)) }

// read returns the names of the next events and the position after them.
func (l log) read(after audit.Position, most int) ([]string, audit.Position) {
	l.t.Helper()
	var names []string
	if err := postgres.InTx(l.t.Context(), l.db, postgres.API(l.tenant), func(tx pgx.Tx) error {
		stored, err := audit.Read(l.t.Context(), tx, l.tenant, after, most)
		for _, s := range stored {
			names, after = append(names, string(s.Actor)), s.Position
		}
		return err
	}); err != nil {
		l.t.Fatal(err)
	}
	return names, after
}

func (l log) latest() (p audit.Position) {
	l.t.Helper()
	if err := postgres.InTx(l.t.Context(), l.db, postgres.API(l.tenant), func(tx pgx.Tx) (err error) {
		p, err = audit.Latest(l.t.Context(), tx, l.tenant)
		return err
	}); err != nil {
		l.t.Fatal(err)
	}
	return p
}

// settled waits until no transaction of the server is older than this tenant's
// events. Tests of other packages share the server; their transactions end by
// themselves.
func (l log) settled() {
	l.t.Helper()
	for done := false; !done; {
		if err := l.db.QueryRow(l.t.Context(),
			"SELECT coalesce(max(txid) < pg_snapshot_xmin(pg_current_snapshot()), true) FROM events").Scan(&done); err != nil {
			l.t.Fatal(err)
		}
	}
}

func TestLateCommitIsNotSkipped(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.write("first")
	l.settled()
	_, at := l.read(audit.Position{}, 10)
	slow := l.begin("slow")
	l.write("quick")

	early, atEarly := l.read(at, 10)
	latest := l.latest()
	l.commit(slow)
	l.settled()
	late, _ := l.read(atEarly, 10)
	sinceLatest, _ := l.read(latest, 10)

	if len(early) != 0 {
		t.Errorf("Read beside an open transaction = %q, want nothing yet", early)
	}
	if diff := cmp.Diff([]string{"slow", "quick"}, late); diff != "" {
		t.Errorf("Read after it (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"slow", "quick"}, sinceLatest); diff != "" {
		t.Errorf("Read since Latest (-want +got):\n%s", diff)
	}
}

func TestRolledBackEventIsNotRead(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	tx := l.begin("undone")
	l.write("done")

	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.settled()

	if got, _ := l.read(audit.Position{}, 10); !cmp.Equal([]string{"done"}, got) {
		t.Errorf("Read = %q, want what was committed", got)
	}
}

// TestReadersGetEveryEventOnce begins and ends transactions in random order
// while a reader reads: it gets every committed event once.
func TestReadersGetEveryEventOnce(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	run := 0

	rapid.Check(t, func(rt *rapid.T) {
		run++
		at := l.latest()
		var open []pgx.Tx
		var names [][]string
		committed := make(map[string]bool)
		seen := make(map[string]int)
		read := func() {
			var got []string
			got, at = l.read(at, rapid.IntRange(1, 4).Draw(rt, "most"))
			for _, name := range got {
				seen[name]++
			}
		}
		for step := range rapid.IntRange(1, 20).Draw(rt, "steps") {
			name := fmt.Sprint(run, " ", step)
			which := 0
			if len(open) > 0 {
				which = rapid.IntRange(0, len(open)-1).Draw(rt, "which")
			}
			switch rapid.SampledFrom([]string{"begin", "write", "commit", "rollback", "read"}).Draw(rt, "step") {
			case "begin":
				if len(open) < 5 {
					open, names = append(open, l.begin(name)), append(names, []string{name})
				}
			case "write":
				if len(open) > 0 {
					l.writeIn(open[which], name)
					names[which] = append(names[which], name)
				}
			case "commit", "rollback":
				if len(open) == 0 {
					continue
				}
				if rapid.Bool().Draw(rt, "commit") {
					l.commit(open[which])
					for _, n := range names[which] {
						committed[n] = true
					}
				} else if err := open[which].Rollback(t.Context()); err != nil {
					rt.Fatal(err)
				}
				open, names = append(open[:which:which], open[which+1:]...), append(names[:which:which], names[which+1:]...)
			case "read":
				read()
			}
		}
		for _, tx := range open {
			if err := tx.Rollback(t.Context()); err != nil {
				rt.Fatal(err)
			}
		}
		l.settled()
		for before := -1; before != len(seen); {
			before = len(seen)
			read()
		}

		for name := range committed {
			if seen[name] != 1 {
				rt.Fatalf("the event %s was seen %d times", name, seen[name])
			}
		}
		if len(seen) != len(committed) {
			rt.Fatalf("%d events were seen, %d committed", len(seen), len(committed))
		}
	})
}

func TestReadReturnsWrittenEvents(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	other := envelope.TenantID(uuid.New())
	want := []audit.Event{
		{Tenant: l.tenant, Kind: audit.Settled, Actor: "worker/w1", Items: []audit.Item{
			{Action: envelope.NewActionID(), Status: envelope.StatusSent, Attempt: 2, Code: "c"},
			{Action: envelope.NewActionID(), Approval: envelope.ApprovalGranted},
		}},
		{Tenant: l.tenant, Kind: audit.Configured, Actor: "ada", Items: []audit.Item{{Subject: "source s"}}},
	}
	if err := postgres.InTx(t.Context(), l.db, postgres.Worker(), func(tx pgx.Tx) error {
		return audit.Write(t.Context(), tx, want[0], audit.Event{Tenant: other, Kind: audit.Undone, Items: want[0].Items}, audit.Event{Tenant: l.tenant}, want[1])
	}); err != nil {
		t.Fatal(err)
	}
	l.settled()

	var got []audit.Event
	if err := postgres.InTx(t.Context(), l.db, postgres.API(l.tenant), func(tx pgx.Tx) error {
		stored, err := audit.Read(t.Context(), tx, l.tenant, audit.Position{}, 10)
		for _, s := range stored {
			got = append(got, s.Event)
			if s.At.IsZero() {
				t.Error("an event has no time")
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestLatestWithoutEvents(t *testing.T) {
	t.Parallel()
	l := newLog(t)

	if got := l.latest(); got != (audit.Position{}) {
		t.Errorf("Latest = %v, want the beginning", got)
	}
	l.write("first")
	l.settled()
	if got, _ := l.read(l.latest(), 10); len(got) != 0 {
		t.Errorf("Read after Latest = %q, want nothing", got)
	}
}

func TestEventsOfOtherTenantsAreInvisible(t *testing.T) {
	t.Parallel()
	tx := dbtest.Tx(t)
	mine, theirs := envelope.TenantID(uuid.New()), envelope.TenantID(uuid.New())

	err := postgres.InTx(t.Context(), tx, postgres.API(mine), func(tx pgx.Tx) error {
		return audit.Write(t.Context(), tx, audit.Event{Tenant: theirs, Kind: audit.Settled, Items: []audit.Item{{Code: "c"}}})
	})

	if err == nil {
		t.Error("Write for another tenant = nil, want an error")
	}
}

// TestPartitionsAreCreatedAhead runs while another transaction writes.
func TestPartitionsAreCreatedAhead(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	writer, err := l.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = writer.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := writer.Exec(t.Context(), "LOCK TABLE tool_executions IN ROW EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	count := func() (n int) {
		if err := l.db.QueryRow(t.Context(), "SELECT count(1) FROM pg_inherits WHERE inhparent = 'tool_executions'::regclass").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}

	for range 2 {
		if err := postgres.InTx(t.Context(), l.db, postgres.Worker(), func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), "SET LOCAL lock_timeout = '20s'"); err != nil {
				return err
			}
			return audit.EnsurePartitions(t.Context(), tx, 4)
		}); err != nil {
			t.Fatal(err)
		}
	}

	if got := count(); got != 5 {
		t.Errorf("tool_executions has %d partitions, want this month and four more", got)
	}
}

func TestParsePosition(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		want := audit.Position{Tx: rapid.Uint64().Draw(t, "tx"), Event: rapid.Int64Min(0).Draw(t, "event")}

		got, err := audit.ParsePosition(want.String())

		if err != nil || got != want {
			t.Fatalf("ParsePlace(%s) = %v, %v", want, got, err)
		}
	})
}

func FuzzParsePosition(f *testing.F) {
	for _, seed := range []string{"", "-", "1-2", "0-9223372036854775807", "-1-2", "1--2", "1-2-3", "a-b", "18446744073709551616-1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := audit.ParsePosition(text)
		if err != nil {
			if p != (audit.Position{}) {
				t.Errorf("ParsePlace(%q) = %v with an error", text, p)
			}
			return
		}
		again, err := audit.ParsePosition(p.String())
		if diff := cmp.Diff(p, again, cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Errorf("ParsePlace(%q) does not read back (-want +got), %v:\n%s", text, err, diff)
		}
	})
}
