package fence_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/fence"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/outbox/outboxtest"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

// fixture is a database with one process.
type fixture struct {
	t     *testing.T
	db    *pgxpool.Pool
	guard *fence.Guard
	loop  *fence.Loop
}

func newFixture(t *testing.T, db *pgxpool.Pool, cfg fence.Config) *fixture {
	t.Helper()
	cfg.Name = "w"
	f := &fixture{t: t, db: db, guard: fence.New(db, cfg)}
	if err := f.guard.Load(); err != nil {
		t.Fatal(err)
	}
	f.loop = f.guard.Loop()
	return f
}

// is checks once, and fails the test unless the state is the wanted one.
func (f *fixture) is(want fence.State) {
	f.t.Helper()
	got, err := f.guard.Check(f.t.Context())
	if err != nil || got != want {
		f.t.Fatalf("Check = %s, %v; the fence: %s", got, err, f.why())
	}
	if claims := f.loop.Next().Epoch > 0; claims != (want == fence.StateOpen) {
		f.t.Fatalf("it claims: %t, at %s", claims, want)
	}
}

func (f *fixture) why() string {
	f.t.Helper()
	s, err := postgres.InTxReturning(f.t.Context(), f.db, postgres.Worker(), func(tx pgx.Tx) (fence.Status, error) { return fence.Read(f.t.Context(), tx) })
	if err != nil {
		f.t.Fatal(err)
	}
	return string(s.State) + " " + s.Reason + ": " + s.Why()
}

func (f *fixture) exec(sql string, args ...any) {
	f.t.Helper()
	if _, err := f.db.Exec(f.t.Context(), sql, args...); err != nil {
		f.t.Fatalf("%s: %v", sql, err)
	}
}

// commit commits as a claim does.
func (f *fixture) commit() {
	f.t.Helper()
	mark := f.loop.Next()
	f.exec(`INSERT INTO worker_commits (worker, loop, seq) VALUES ($1, $2, $3)
		ON CONFLICT ON CONSTRAINT worker_commits_pkey DO UPDATE SET seq = excluded.seq`, mark.Worker, mark.Loop, mark.Seq)
	f.loop.Confirm(mark)
}

// restart has the server look as if it had been started since.
func (f *fixture) restart() {
	f.t.Helper()
	f.exec("UPDATE fence SET started = started - interval '1 hour'")
}

// claims reports whether the statements that claim accept the epoch of a mark.
func (f *fixture) claims(mark outbox.Mark) (accepted bool) {
	f.t.Helper()
	err := f.db.QueryRow(f.t.Context(), "SELECT coalesce((SELECT e.epoch FROM fence_epoch e) = $1, false)", mark.Epoch).Scan(&accepted)
	if err != nil {
		f.t.Fatal(err)
	}
	return accepted
}

func TestTheFirstWorkerAdoptsADatabase(t *testing.T) {
	t.Parallel()
	f := newFixture(t, dbtest.DB(t), fence.Config{})
	if f.claims(f.loop.Next()) {
		t.Error("a process that has not compared may claim")
	}

	f.is(fence.StateOpen)

	if mark := f.loop.Next(); mark.Epoch != 1 || !f.claims(mark) {
		t.Errorf("the epoch is %d, and claims are accepted: %t", mark.Epoch, f.claims(mark))
	}
	if f.claims(outbox.Mark{}) {
		t.Error("a mark without an epoch may claim")
	}
}

// setBackToNew has the database look as it did before its first worker.
func (f *fixture) setBackToNew() {
	f.t.Helper()
	f.exec("DELETE FROM worker_commits")
	f.exec("DELETE FROM workers")
	f.exec(`UPDATE fence SET state = 'new', epoch = 0, database_id = earlier_id, earlier_id = NULL, system_id = '', database_oid = 0, timeline = 0,
		started = NULL`)
}

func TestADatabaseSetBackToBeforeItsFirstWorkerIsHeld(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state")
	f := newFixture(t, dbtest.DB(t), fence.Config{File: file})
	f.is(fence.StateOpen)
	f.commit()
	f.is(fence.StateOpen) // writes the file
	f.setBackToNew()

	restarted := newFixture(t, f.db, fence.Config{File: file})
	for _, worker := range []*fixture{f, restarted, newFixture(t, f.db, fence.Config{})} {
		worker.is(fence.StateHeld)
		if worker.claims(worker.loop.Next()) {
			t.Error("a worker may claim, and so repeat the calls that were made")
		}
	}
	if why := f.why(); !strings.HasPrefix(why, "held set_back: commits are missing: the database is ") { // the state file's process has ended
		t.Error(why)
	}

	if _, done, err := apply(t, f.db, fence.Recovery{}); err != nil || !done {
		t.Fatalf("Apply = %t, %v", done, err)
	}

	for _, worker := range []*fixture{f, restarted} {
		worker.is(fence.StateOpen)
		worker.commit()
		worker.is(fence.StateOpen)
	}
}

func TestAnotherNewDatabaseIsRefusedAndNotHeld(t *testing.T) {
	t.Parallel()
	f := newFixture(t, dbtest.DB(t), fence.Config{})
	f.is(fence.StateOpen)
	f.commit()
	f.setBackToNew()
	f.exec("UPDATE fence SET database_id = gen_random_uuid()")

	f.is(fence.StateHeld)
	if f.claims(f.loop.Next()) {
		t.Error("the worker of another database may claim")
	}
	newFixture(t, f.db, fence.Config{}).is(fence.StateOpen)
}

// TestADatabaseSetBackToBeforeItsRecoveryIsHeld has a worker make a call after a recovery, and
// the fence set back to when it was held.
func TestADatabaseSetBackToBeforeItsRecoveryIsHeld(t *testing.T) {
	t.Parallel()
	db := dbtest.DB(t)
	fx, f := outboxtest.NewIn(t, db), newFixture(t, db, fence.Config{})
	fx.Queue(envelope.EffectOnce, 1)
	call := fx.Claim(1)[0]
	f.is(fence.StateOpen)
	f.commit()
	f.exec("UPDATE outbox SET lease_until = now() - interval '1 second'")
	f.exec("UPDATE worker_commits SET seq = seq - 1")
	f.is(fence.StateHeld)
	before := outboxtest.One[string](fx, "SELECT to_jsonb(f)::text FROM fence f")
	if _, done, err := apply(t, db, fence.Recovery{}); err != nil || !done {
		t.Fatalf("Apply = %t, %v", done, err)
	}
	f.is(fence.StateOpen)
	f.commit()
	f.guard.Started([]*outbox.Item{&call}, time.Now())

	f.exec("DELETE FROM fence")
	f.exec("INSERT INTO fence SELECT (jsonb_populate_record(NULL::fence, $1::jsonb)).*", before)

	f.is(fence.StateHeld)
	if n := outboxtest.One[int64](fx, "SELECT count(1) FROM lost_calls"); n != 1 {
		t.Errorf("the worker reported %d calls of after the recovery, want 1", n)
	}
}

func TestARestartInPlaceOpensByItself(t *testing.T) {
	t.Parallel()
	f := newFixture(t, dbtest.DB(t), fence.Config{})
	f.is(fence.StateOpen)
	f.commit()
	before := f.loop.Next()
	f.restart()
	if f.claims(before) {
		t.Error("claims are accepted before the comparison")
	}

	f.is(fence.StateOpen)

	if after := f.loop.Next(); after.Epoch != before.Epoch+1 || !f.claims(after) || f.claims(before) {
		t.Errorf("the epoch went from %d to %d", before.Epoch, after.Epoch)
	}
}

func TestALostCommitHoldsTheDatabase(t *testing.T) {
	t.Parallel()
	f := newFixture(t, dbtest.DB(t), fence.Config{})
	f.is(fence.StateOpen)
	f.commit()
	f.commit()
	f.restart()
	f.exec("UPDATE worker_commits SET seq = seq - 1")

	f.is(fence.StateHeld)

	if why := f.why(); !strings.HasPrefix(why, "held lost: commits are missing") {
		t.Error(why)
	}
	newFixture(t, f.db, fence.Config{}).is(fence.StateHeld)
	f.exec("UPDATE worker_commits SET seq = seq + 1")
	f.is(fence.StateHeld) // until a person recovers it
}

func TestAnotherClusterOrDatabaseIsACopy(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"another cluster":               "UPDATE fence SET system_id = '1'",
		"another database of a cluster": "UPDATE fence SET database_oid = 1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, dbtest.DB(t), fence.Config{})
			f.is(fence.StateOpen)
			f.exec(change)

			newFixture(t, f.db, fence.Config{}).is(fence.StateHeld)

			if why := f.why(); !strings.HasPrefix(why, "held copy: this database is a copy") {
				t.Error(why)
			}
		})
	}
}

// TestAForkedTimelineNeedsAWorkerOfBefore is a restored point in time, which looks like a
// failover from inside.
func TestAForkedTimelineNeedsAWorkerOfBefore(t *testing.T) {
	t.Parallel()
	f := newFixture(t, dbtest.DB(t), fence.Config{})
	f.is(fence.StateOpen)
	f.commit()
	f.exec("UPDATE fence SET timeline = timeline + 1")
	f.restart()
	f.is(fence.StateOpen) // a worker that lost nothing
	f.exec("UPDATE fence SET timeline = timeline + 1; UPDATE workers SET ended = true")
	f.restart()

	newFixture(t, f.db, fence.Config{}).is(fence.StateHeld)

	if why := f.why(); !strings.HasPrefix(why, "held timeline") {
		t.Error(why)
	}
}

func TestAWorkerThatIsSilentIsWaitedFor(t *testing.T) {
	t.Parallel()
	f := newFixture(t, dbtest.DB(t), fence.Config{Lease: time.Hour})
	f.is(fence.StateOpen)
	silent := newFixture(t, f.db, fence.Config{Lease: time.Hour})
	silent.is(fence.StateOpen)
	silent.commit()
	f.restart()

	f.is(fence.StateChecking)
	f.exec("UPDATE fence SET changed_at = changed_at - interval '1 minute'")
	f.is(fence.StateChecking)
	silent.is(fence.StateOpen)
	f.is(fence.StateOpen)

	f.restart()
	f.is(fence.StateChecking)
	f.exec("UPDATE fence SET changed_at = changed_at - interval '1 minute'; UPDATE workers SET seen_at = now() - interval '2 hours' WHERE epoch < (SELECT epoch FROM fence)")
	f.is(fence.StateOpen)
}

// TestTheStateFileIsAMemoryOutside has all workers end, and the database set back.
func TestTheStateFileIsAMemoryOutside(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state")
	f := newFixture(t, dbtest.DB(t), fence.Config{File: file})
	run(t, f.guard, func() {
		f.is(fence.StateOpen)
		f.commit()
		f.commit()
	})

	next := newFixture(t, f.db, fence.Config{File: file})
	next.is(fence.StateOpen)
	f.exec("UPDATE worker_commits SET seq = seq - 1")

	newFixture(t, f.db, fence.Config{File: file}).is(fence.StateHeld)

	if err := newFixture(t, f.db, fence.Config{File: file}).guard.Load(); err != nil {
		t.Error(err)
	}
	moved := newFixture(t, dbtest.DB(t), fence.Config{File: file})
	moved.is(fence.StateHeld) // it refuses the database of others
	if why := moved.why(); !strings.HasPrefix(why, "new") {
		t.Errorf("a file of another database holds this one: %s", why)
	}
}

// run has a guard run while fn does, and end after it.
func run(t *testing.T, g *fence.Guard, fn func()) {
	t.Helper()
	fn()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g.Run(ctx, func() {})
}

func TestADeploymentNamesItsDatabase(t *testing.T) {
	t.Parallel()
	f := newFixture(t, dbtest.DB(t), fence.Config{Database: uuid.New()})

	f.is(fence.StateHeld)

	other := newFixture(t, f.db, fence.Config{})
	other.is(fence.StateOpen)
	other.restart()
	other.is(fence.StateOpen) // it does not wait for one that refuses
	var refuses string
	if err := f.db.QueryRow(t.Context(), "SELECT refuses FROM workers WHERE refuses <> ''").Scan(&refuses); err != nil || !strings.Contains(refuses, "COUNTERSIGN_DATABASE_ID") {
		t.Errorf("it refuses for %q, %v", refuses, err)
	}
}

// workers returns the names, the loads and the states of the listed processes.
func (f *fixture) workers() []string {
	f.t.Helper()
	all, err := postgres.InTxReturning(f.t.Context(), f.db, postgres.API(envelope.TenantID(uuid.New())), func(tx pgx.Tx) ([]wire.Worker, error) {
		return fence.Workers(f.t.Context(), tx)
	})
	if err != nil {
		f.t.Fatal(err)
	}
	names := []string{}
	for _, w := range all {
		names = append(names, fmt.Sprintf("%s %s %d/%d %t", w.Host, w.Version, w.InFlight, w.Concurrency, w.Draining))
	}
	slices.Sort(names)
	return names
}

func TestWorkersAreListedWhileTheyRun(t *testing.T) {
	t.Parallel()
	db := dbtest.DB(t)
	f := newFixture(t, db, fence.Config{Host: "a", Version: "v1", Concurrency: 7})
	other := newFixture(t, db, fence.Config{Host: "b", Version: "v2", Concurrency: 5})
	load := 3
	f.guard.Watch(func() int { return load })
	lists := func(what string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, f.workers()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	f.is(fence.StateOpen)
	other.is(fence.StateOpen)
	lists("both run", "a v1 3/7 false", "b v2 0/5 false")

	f.exec("UPDATE workers SET seen_at = now() - 1.1 * lease WHERE host = 'b'")
	lists("one was killed, and its lease is over", "a v1 3/7 false")
	f.exec("UPDATE workers SET seen_at = now() + interval '1 hour' WHERE host = 'b'")
	lists("one was killed before the clock was set back", "a v1 3/7 false")

	load = 1
	f.is(fence.StateOpen)
	lists("a load is not recorded at each check", "a v1 3/7 false")
	f.guard.Drain()
	f.is(fence.StateOpen)
	lists("the end is recorded at once", "a v1 1/7 true")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f.guard.Run(ctx, func() {})
	if got := f.workers(); len(got) > 0 {
		t.Errorf("after the end: %v", got)
	}
}
