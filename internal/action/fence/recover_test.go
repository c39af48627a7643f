package fence_test

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/fence"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/outbox/outboxtest"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

// held returns a database that is held as a copy, with actions of each kind that a
// recovery distinguishes.
func held(t *testing.T) (outboxtest.Fixture, *fixture) {
	t.Helper()
	db := dbtest.DB(t)
	fx, f := outboxtest.NewIn(t, db), newFixture(t, db, fence.Config{})
	fx.Queue(envelope.EffectOnce, 3)
	fx.Exec("UPDATE actions SET not_before = now() + interval '1 day' WHERE action_id = (SELECT action_id FROM outbox LIMIT 1)")
	fx.Queue(envelope.EffectKeyed, 2)
	fx.Propose(fx.Bucket, envelope.EffectOnce, envelope.ApprovalRequired, 1)
	fx.Exec("INSERT INTO approvals (tenant_id, action_id, needed, given) SELECT tenant_id, action_id, 2, 1 FROM actions WHERE approval_state = 'required'")
	f.is(fence.StateOpen)
	fx.Exec("UPDATE fence SET system_id = '1'")
	f.is(fence.StateHeld)
	return fx, f
}

// apply applies a recovery as a login of the database.
func apply(t *testing.T, db *pgxpool.Pool, r fence.Recovery) (p fence.Plan, done bool, err error) {
	t.Helper()
	r.By = "Ana"
	err = postgres.InTx(t.Context(), db, postgres.Admin(), func(tx pgx.Tx) (err error) {
		p, done, err = r.Apply(t.Context(), tx)
		return err
	})
	return p, done, err
}

func TestRecoverEndsWhatMayHaveBeenSent(t *testing.T) {
	t.Parallel()
	fx, f := held(t)
	var dry fence.Plan
	fx.As(postgres.Admin(), func(tx pgx.Tx) (err error) {
		dry, err = fence.Recovery{}.Prepare(t.Context(), tx)
		return err
	})

	p, done, err := apply(t, f.db, fence.Recovery{AskFor: time.Hour})

	if err != nil || !done {
		t.Fatalf("Apply = %t, %v", done, err)
	}
	if dry.Unknown != 2 || dry.Later != 1 || dry.Repeatable != 2 || dry.Approvals != 1 || dry.State != string(fence.StateHeld) || dry.Database == p.Database {
		t.Errorf("the dry run finds %+v", dry)
	}
	for query, want := range map[string]int64{
		"SELECT count(1) FROM dead_letters WHERE reason = 'unknown' AND code = 'recovered'":                                    2,
		"SELECT count(1) FROM tool_executions WHERE status = 'unknown'":                                                        2,
		"SELECT count(1) FROM outbox":                                                                                          3,
		"SELECT count(1) FROM approvals WHERE given = 0 AND round = 2":                                                         1,
		"SELECT count(1) FROM pauses WHERE scope = 'everything' AND lifted_at IS NULL":                                         1,
		"SELECT count(1) FROM fence WHERE state = 'open' AND ask_until > now() AND recovered_from IS NOT NULL":                 1,
		"SELECT count(1) FROM events WHERE kind = 'configured' AND items @> '[{\"code\": \"held\"}]'":                          1,
		"SELECT count(1) FROM events WHERE kind = 'configured' AND items @> '[{\"code\": \"open\", \"note\": \"recovered\"}]'": 1,
	} {
		if got := outboxtest.One[int64](fx, query); got != want {
			t.Errorf("%s = %d, want %d", query, got, want)
		}
	}
	f.is(fence.StateOpen)
	if now := outboxtest.One[time.Time](fx, "SELECT now()"); !f.guard.Asks(now) || f.guard.Asks(now.Add(-time.Minute)) || f.guard.Asks(now.Add(2*time.Hour)) {
		t.Error("new actions need no person, or others do")
	}
	if _, _, err := apply(t, f.db, fence.Recovery{}); !errors.Is(err, fault.Conflict) {
		t.Errorf("a second recovery: %v, want a conflict", err)
	}
}

// TestASurvivorForgetsWhatARecoveredDatabaseLost has a worker live through a loss and its
// recovery.
func TestASurvivorForgetsWhatARecoveredDatabaseLost(t *testing.T) {
	t.Parallel()
	db := dbtest.DB(t)
	fx, f := outboxtest.NewIn(t, db), newFixture(t, db, fence.Config{})
	f.is(fence.StateOpen)
	f.commit()
	fx.Queue(envelope.EffectOnce, 2)
	f.restart()
	f.exec("UPDATE worker_commits SET seq = 0")
	f.is(fence.StateHeld)

	p, done, err := apply(t, f.db, fence.Recovery{})

	if err != nil || !done || p.Unknown != 0 || p.Sendable != 2 {
		t.Errorf("Apply = %+v, %t, %v; want 2 that go on, because every worker has reported", p, done, err)
	}
	f.is(fence.StateOpen)
	f.commit()
	f.is(fence.StateOpen)
}

// TestOutcomesThatComeLateAreReported has calls run while their claims are lost. Their
// outcomes arrive without a lease to settle, or just before one exists.
func TestOutcomesThatComeLateAreReported(t *testing.T) {
	t.Parallel()
	db := dbtest.DB(t)
	fx, f := outboxtest.NewIn(t, db), newFixture(t, db, fence.Config{})
	fx.Queue(envelope.EffectOnce, 4)
	items := fx.Claim(4)
	f.is(fence.StateOpen)
	f.commit()
	calls := make([]*outbox.Item, len(items))
	for i := range items {
		items[i].ExternalID = "n-" + strconv.Itoa(i)
		calls[i] = &items[i]
	}
	sent, returned, lost, lostReturned := items[0], items[1], items[2], items[3]
	f.guard.Started(calls, time.Now())
	f.exec("UPDATE outbox SET fence = 0, lease_until = NULL")
	f.exec("DELETE FROM actions WHERE action_id = ANY ($1::uuid[])", []string{lost.Action.String(), lostReturned.Action.String()})
	f.restart()
	f.exec("UPDATE worker_commits SET seq = 0")
	f.is(fence.StateHeld)
	if p := prepare(fx); p.Silent != 1 || p.Lost != 2 {
		t.Errorf("while calls run: %+v, want one silent worker and 2 lost calls", p)
	}

	f.guard.Ended([]outbox.Settlement{outboxtest.Sent(sent), outboxtest.Again(returned, 0), outboxtest.Sent(lost), outboxtest.Again(lostReturned, 0)})
	f.exec("UPDATE worker_commits SET seq = 1") // an outcome was settled
	f.is(fence.StateHeld)

	if p := prepare(fx); p.Silent != 0 || p.Lost != 1 || p.Recorded != 2 {
		t.Errorf("after their ends: %+v, want no silent worker, 1 lost call and 2 recorded", p)
	}
	if got := fx.View(sent.Action).Envelope.Result.Status; got != envelope.StatusSent {
		t.Errorf("the action that was sent is %s", got)
	}
	if n := outboxtest.One[int64](fx, "SELECT count(1) FROM outbox WHERE status = 'pending' AND lease_until IS NULL AND action_id = $1", returned.Action.String()); n != 1 {
		t.Error("the action whose call had no effect is not due")
	}
	fx.As(postgres.Worker(), func(tx pgx.Tx) error {
		found, err := fence.FindLost(t.Context(), tx, items)
		if _, ok := found[lost.Action]; !ok || len(found) != 1 {
			t.Errorf("FindLost() = %v, want the call that was sent", found)
		}
		return err
	})
}

// TestACallIsReportedWhileItsProposalIsTaken has an action of which a call is reported
// appear in the database during the report.
func TestACallIsReportedWhileItsProposalIsTaken(t *testing.T) {
	t.Parallel()
	db := dbtest.DB(t)
	fx, f := outboxtest.NewIn(t, db), newFixture(t, db, fence.Config{})
	f.is(fence.StateOpen)
	f.commit()
	taking, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer taking.Rollback(context.WithoutCancel(t.Context()))
	taker := fx
	taker.DB = &dbtest.Session{Tx: taking}
	id := taker.Queue(envelope.EffectOnce, 1)[0]
	taker.Exec("LOCK TABLE lost_calls IN EXCLUSIVE MODE") // the report waits here
	call := outbox.Item{Lease: outbox.Lease{Tenant: fx.Tenant, Action: id, Fence: 1}, ExternalID: "n-1", Effect: envelope.EffectOnce}
	f.guard.Started([]*outbox.Item{&call}, time.Now())
	f.guard.Ended([]outbox.Settlement{outboxtest.Sent(call)})
	f.restart()
	f.exec("UPDATE worker_commits SET seq = 0")

	checked := make(chan error, 1)
	go func() {
		_, err := f.guard.Check(t.Context())
		checked <- err
	}()
	for waits := false; !waits; {
		waits = outboxtest.One[bool](fx, "SELECT EXISTS (SELECT FROM pg_locks l WHERE l.relation = 'lost_calls'::regclass AND NOT l.granted)")
	}
	if err := errors.Join(taking.Commit(t.Context()), <-checked); err != nil {
		t.Fatal(err)
	}

	if fx.Scheduled(id) {
		t.Error("the action is sent once more")
	}
}

// prepare returns the effects of a recovery.
func prepare(fx outboxtest.Fixture) (p fence.Plan) {
	fx.As(postgres.Admin(), func(tx pgx.Tx) (err error) {
		p, err = fence.Recovery{}.Prepare(context.Background(), tx)
		return err
	})
	return p
}

func TestASilentWorkerLeavesActionsUnknown(t *testing.T) {
	t.Parallel()
	db := dbtest.DB(t)
	fx, f := outboxtest.NewIn(t, db), newFixture(t, db, fence.Config{})
	f.is(fence.StateOpen)
	newFixture(t, db, fence.Config{}).is(fence.StateOpen) // it is not heard of again
	f.commit()
	fx.Queue(envelope.EffectOnce, 2)
	f.restart()
	f.exec("UPDATE worker_commits SET seq = 0")
	f.is(fence.StateHeld)

	p, _, err := apply(t, f.db, fence.Recovery{})

	if err != nil || p.Unknown != 2 || p.Silent != 1 {
		t.Errorf("Apply = %+v, %v; want 2 unknown", p, err)
	}
}

// TestWorkersThatCannotHaveSentAreNotWaitedFor has a worker that lost commits and reports,
// and others of which the database knows more or less.
func TestWorkersThatCannotHaveSentAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	const sameServer = "files were set back under the running server"
	for name, test := range map[string]struct {
		// other is the worker whose calls are not reported.
		other           func(f *fixture)
		workers, silent int64
	}{
		"it crashed days before": {func(f *fixture) {
			newFixture(f.t, f.db, fence.Config{}).is(fence.StateOpen)
			f.exec("UPDATE workers SET seen_at = now() - interval '5 days' WHERE worker <> $1", f.loop.Next().Worker.String())
		}, 1, 0},
		"it was recorded three leases before": {func(f *fixture) {
			newFixture(f.t, f.db, fence.Config{}).is(fence.StateOpen)
			f.exec("UPDATE workers SET seen_at = now() - 3 * lease WHERE worker <> $1", f.loop.Next().Worker.String())
		}, 2, 1},
		"it ran at the point": {func(f *fixture) { newFixture(f.t, f.db, fence.Config{}).is(fence.StateOpen) }, 2, 1},
		"all crashed days before": {func(f *fixture) {
			newFixture(f.t, f.db, fence.Config{}).is(fence.StateOpen)
			f.exec("UPDATE workers SET seen_at = now() - interval '5 days'")
		}, 2, 1},
		"it ended": {func(f *fixture) {
			other := newFixture(f.t, f.db, fence.Config{})
			run(f.t, other.guard, func() { other.is(fence.StateOpen) })
		}, 1, 0},
		sameServer: {func(f *fixture) {
			newFixture(f.t, f.db, fence.Config{}).is(fence.StateOpen)
			f.exec("UPDATE workers SET seen_at = now() - interval '5 days' WHERE worker <> $1", f.loop.Next().Worker.String())
		}, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := dbtest.DB(t)
			fx, f := outboxtest.NewIn(t, db), newFixture(t, db, fence.Config{})
			f.is(fence.StateOpen)
			f.commit()
			fx.Queue(envelope.EffectOnce, 2)
			test.other(f)
			if name != sameServer {
				f.restart()
			}
			f.exec("UPDATE worker_commits SET seq = 0")
			f.is(fence.StateHeld)

			p := prepare(fx)

			want := int64(0)
			if test.silent > 0 {
				want = 2
			}
			if p.Workers != test.workers || p.Silent != test.silent || p.Unknown != want || p.Sendable != 2-want {
				t.Errorf("Prepare = %+v, want %d workers, of which %d are silent", p.Recovery, test.workers, test.silent)
			}
		})
	}
}

// TestAMemoryOutsideShowsAWorkerThatStartedAfterThePoint has the database lose all that it
// knew of a worker. Only the state file shows that it worked, and the process that reads
// it cannot report its calls.
func TestAMemoryOutsideShowsAWorkerThatStartedAfterThePoint(t *testing.T) {
	t.Parallel()
	db, file := dbtest.DB(t), filepath.Join(t.TempDir(), "state")
	fx, f := outboxtest.NewIn(t, db), newFixture(t, db, fence.Config{})
	f.is(fence.StateOpen)
	f.commit()
	fx.Queue(envelope.EffectOnce, 2)
	late := newFixture(t, db, fence.Config{File: file})
	late.is(fence.StateOpen)
	late.commit()
	late.is(fence.StateOpen) // the file is written
	f.exec("DELETE FROM workers WHERE worker = $1", late.loop.Next().Worker.String())
	f.exec("DELETE FROM worker_commits WHERE worker = $1", late.loop.Next().Worker.String())
	f.exec("UPDATE worker_commits SET seq = 0")
	f.restart()
	f.is(fence.StateHeld)
	if p := prepare(fx); p.Unknown != 0 || p.Sendable != 2 {
		t.Errorf("without the file: %+v, want two that go on", p.Recovery)
	}

	newFixture(t, db, fence.Config{File: file}).is(fence.StateHeld)

	if p := prepare(fx); p.Reason != fence.ReasonSetBack || p.Unknown != 2 || p.Sendable != 0 {
		t.Errorf("with the file: %+v, want two unknown", p.Recovery)
	}
}

// TestAWorkerThatEndsJustAfterALossReports has a worker end before it compared.
func TestAWorkerThatEndsJustAfterALossReports(t *testing.T) {
	t.Parallel()
	db := dbtest.DB(t)
	fx, f := outboxtest.NewIn(t, db), newFixture(t, db, fence.Config{})
	f.is(fence.StateOpen)
	f.commit()
	f.restart()
	f.exec("UPDATE worker_commits SET seq = 0")
	run(t, f.guard, func() {})

	if p := prepare(fx); p.State != string(fence.StateHeld) || p.Reason != fence.ReasonLost {
		t.Errorf("Prepare = %+v, want the database held", p.Recovery)
	}
}

// TestACrashedWorkerDoesNotStopAMove has one that ran at the time of the hold, and one that
// crashed long before.
func TestACrashedWorkerDoesNotStopAMove(t *testing.T) {
	t.Parallel()
	db := dbtest.DB(t)
	f, crashed := newFixture(t, db, fence.Config{}), newFixture(t, db, fence.Config{})
	f.is(fence.StateOpen)
	crashed.is(fence.StateOpen)
	f.exec("UPDATE workers SET seen_at = now() - interval '1 minute' WHERE worker = $1", crashed.loop.Next().Worker.String())
	if err := postgres.InTx(t.Context(), db, postgres.Admin(), func(tx pgx.Tx) error { return fence.HoldForMove(t.Context(), tx, "Ana") }); err != nil {
		t.Fatal(err)
	}
	run(t, f.guard, func() {})
	if _, _, err := apply(t, db, fence.Recovery{Moved: true}); !errors.Is(err, fault.Conflict) {
		t.Errorf("two leases after it was recorded: %v, want a conflict", err)
	}
	f.exec("UPDATE workers SET seen_at = now() - interval '5 days' WHERE worker = $1", crashed.loop.Next().Worker.String())

	_, done, err := apply(t, db, fence.Recovery{Moved: true})

	if err != nil || !done {
		t.Errorf("Apply = %t, %v", done, err)
	}
}

func TestTwoPeopleRecoverWhereReviewsAskForTwo(t *testing.T) {
	t.Parallel()
	fx, f := held(t)
	fx.Exec("INSERT INTO reviews (tenant_id, key, risk, approvals_needed, updated_by) VALUES ($1, '*', 'high', 2, 'test')", fx.Tenant.String())

	_, done, err := apply(t, f.db, fence.Recovery{})
	if err != nil || done {
		t.Errorf("the first person: %t, %v", done, err)
	}
	if _, _, err := apply(t, f.db, fence.Recovery{}); !errors.Is(err, fault.Denied) {
		t.Errorf("the same person again: %v, want it denied", err)
	}
	f.is(fence.StateHeld)
	fx.Exec("UPDATE fence SET recovery_person = 'somebody else'")
	if _, done, err := apply(t, f.db, fence.Recovery{}); err != nil || !done {
		t.Errorf("another person: %t, %v", done, err)
	}
	f.is(fence.StateOpen)
}

// TestAMoveLosesNothing holds a database, moves it, and opens it.
func TestAMoveLosesNothing(t *testing.T) {
	t.Parallel()
	db := dbtest.DB(t)
	fx, f := outboxtest.NewIn(t, db), newFixture(t, db, fence.Config{})
	fx.Queue(envelope.EffectOnce, 2)
	f.is(fence.StateOpen)
	f.commit()
	fx.As(postgres.Admin(), func(tx pgx.Tx) error { return fence.HoldForMove(t.Context(), tx, "Ana") })
	if n := len(fx.ClaimFrom(outbox.ClaimRequest{Bucket: fx.Bucket, Quota: 5})); n != 0 {
		t.Errorf("%d actions are claimed while the database moves", n)
	}
	if _, _, err := apply(t, db, fence.Recovery{Moved: true}); !errors.Is(err, fault.Conflict) {
		t.Errorf("with a worker that was not stopped: %v, want a conflict", err)
	}
	run(t, f.guard, func() {})
	fx.Exec("UPDATE fence SET system_id = '1', database_oid = 1, timeline = 7")

	p, done, err := apply(t, db, fence.Recovery{Moved: true, AskFor: time.Hour})

	if err != nil || !done {
		t.Fatalf("Apply = %t, %v", done, err)
	}
	if diff := cmp.Diff([]int64{0, 2, 0}, []int64{p.Unknown, p.Sendable, p.Approvals}); diff != "" {
		t.Errorf("unknown, going on, approvals (-want +got):\n%s", diff)
	}
	after := newFixture(t, db, fence.Config{})
	after.is(fence.StateOpen)
	if after.guard.Asks(outboxtest.One[time.Time](fx, "SELECT now()")) {
		t.Error("new actions need a person after a move")
	}
	if n := outboxtest.One[int64](fx, "SELECT count(1) FROM pauses"); n != 0 {
		t.Errorf("%d pauses after a move", n)
	}
}

func TestACopyIsNotMoved(t *testing.T) {
	t.Parallel()
	_, f := held(t)

	_, _, err := apply(t, f.db, fence.Recovery{Moved: true})

	if !errors.Is(err, fault.Conflict) {
		t.Errorf("Apply = %v, want a conflict", err)
	}
}
