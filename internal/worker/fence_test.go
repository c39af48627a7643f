package worker_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/fence"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

// copyOf returns a pool of a copy of the fixture's database in the same cluster, which a
// restored dump is too, and drops the copy at the end.
func (y *fixture) copyOf() *pgxpool.Pool {
	y.t.Helper()
	admin := dbtest.Connect(y.t, dbtest.EmptyURL(y.t))
	exec := func(sql string, args ...any) {
		y.t.Helper()
		if _, err := admin.Exec(context.WithoutCancel(y.t.Context()), sql, args...); err != nil {
			y.t.Fatalf("%s: %v", sql, err)
		}
	}
	original := y.db.Config().ConnConfig.Database
	name := "copy_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	quoted := pgx.Identifier{original}.Sanitize()
	func() {
		// A pool may connect again at any time, and a database in use cannot be copied.
		exec("ALTER DATABASE " + quoted + " ALLOW_CONNECTIONS false")
		defer exec("ALTER DATABASE " + quoted + " ALLOW_CONNECTIONS true")
		exec("SELECT pg_terminate_backend(a.pid, 10000) FROM pg_stat_activity a WHERE a.datname = $1", original)
		exec("CREATE DATABASE " + name + " TEMPLATE " + quoted)
	}()
	db, err := postgres.Open(y.t.Context(), postgres.Config{URL: strings.ReplaceAll(y.url, original, name)})
	if err != nil {
		y.t.Fatal(err)
	}
	y.t.Cleanup(func() {
		db.Close()
		exec("DROP DATABASE " + name + " WITH (FORCE)")
	})
	y.db.Reset() // its connections are gone
	y.listenAgain()
	return db
}

// listenAgain connects again to hear of changes.
func (y *fixture) listenAgain() {
	y.t.Helper()
	conn := dbtest.Connect(y.t, y.url)
	if _, err := conn.Exec(y.t.Context(), "LISTEN changed"); err != nil {
		y.t.Fatal(err)
	}
	y.heard = conn
}

// claimAll claims and starts all that is due, and returns how much that is.
func (y *fixture) claimAll(db *pgxpool.Pool, mark outbox.Mark) (claimed int) {
	y.t.Helper()
	err := postgres.InTx(y.t.Context(), db, postgres.Worker(), func(tx pgx.Tx) error {
		due, err := outbox.DueBuckets(y.t.Context(), tx, 0, 10)
		if err != nil {
			return err
		}
		var requests []outbox.ClaimRequest
		for _, d := range due {
			requests = append(requests, outbox.ClaimRequest{Bucket: d.Bucket, From: d.From, Quota: 100})
		}
		items, err := outbox.Claim(y.t.Context(), tx, mark, requests, time.Minute)
		claimed = len(items)
		return err
	})
	if err != nil {
		y.t.Fatal(err)
	}
	return claimed
}

// TestACopySendsNothing restores a copy while actions wait, and starts a worker on it.
func TestACopySendsNothing(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	y.submit(toolOnce, 1)
	y.work() // so that the database is adopted
	ids := append(y.submit(toolOnce, 3), y.submit(toolKeyed, 3)...)
	db := y.copyOf()
	guard := fence.New(db, fence.Config{Name: "copy"})
	loop := guard.Loop()

	state, err := guard.Check(t.Context())

	if err != nil || state != fence.StateHeld {
		t.Errorf("a worker finds the copy %s, %v", state, err)
	}
	for name, mark := range map[string]outbox.Mark{"the worker": loop.Next(), "a worker of before": {Epoch: 1}, "no worker": {}} {
		if n := y.claimAll(db, mark); n != 0 {
			t.Errorf("%s claims %d actions of the copy", name, n)
		}
	}
	y.work()
	for _, id := range ids {
		if n := y.effects(id); n != 1 {
			t.Errorf("%s had its effect %d times", id, n)
		}
	}
}

// TestAHeldDatabaseSettles has the database held while a call runs: its outcome is
// recorded, and nothing more is claimed until the database is open again.
func TestAHeldDatabaseSettles(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	gate := newBarrier()
	y.src.On(toolOnce, gate.hold)
	first := y.submit(toolOnce, 1)[0]
	y.run(y.pipeline(y.db, y.src, config("w1")))
	gate.wait(t)

	y.exec("UPDATE fence SET state = 'held', reason = 'copy', detail = 'a test'")
	second := y.submit(toolOnce, 1)[0]
	close(gate.open)
	y.until("SELECT EXISTS (SELECT 1 FROM tool_executions WHERE action_id = $1 AND status = 'sent')", first.String())

	if n := y.claimAll(y.db, outbox.Mark{Epoch: 1}); n != 0 {
		t.Errorf("%d actions are claimed while the database is held", n)
	}
	if got := y.view(second).WaitsFor; got != outbox.WaitsHeld {
		t.Errorf("it waits for %q", got)
	}
	y.exec("UPDATE fence SET state = 'open', reason = '', detail = ''")
	y.empty()
	if n := y.effects(second); n != 1 {
		t.Errorf("it had its effect %d times", n)
	}
}

// TestCommitsAreCounted compares what a worker remembers with what is there, after
// claims, starts and settlements of each kind.
func TestCommitsAreCounted(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	for _, tool := range []string{toolRead, toolKeyed, toolOnce} {
		y.submit(tool, 20)
	}
	guard := fence.New(y.db, fence.Config{Name: "w1"})
	cfg := config("w1")
	cfg.Guard = guard
	stop := y.run(y.pipeline(y.db, y.src, cfg))
	y.empty()
	stop()

	if state, err := guard.Check(t.Context()); err != nil || state != fence.StateOpen {
		t.Errorf("the worker's commits are not there: %s, %v", state, err)
	}
	if n := one[int](y, "SELECT count(1)::int FROM worker_commits WHERE seq > 0"); n < 2 {
		t.Errorf("%d loops have counted commits", n)
	}
	y.exec("UPDATE worker_commits SET seq = seq - 1")
	if state, err := guard.Check(t.Context()); err != nil || state != fence.StateHeld {
		t.Errorf("a lost commit leaves the database %s, %v", state, err)
	}
}

// named is a call with an external id.
func named(tool, externalID string) *envelope.Proposal {
	return &envelope.Proposal{Type: envelope.TypeExec, ExternalID: externalID, Tool: envelope.Tool{Name: tool, Source: "fake"}, Args: json.RawMessage(`{}`)}
}

// TestASurvivorReportsWhatItSent loses the commits of three calls, as a failover to a
// standby that lagged does: the claim, the settlement, and a whole action.
func TestASurvivorReportsWhatItSent(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	guard := fence.New(y.db, fence.Config{Name: "w1"})
	cfg := config("w1")
	cfg.Guard = guard
	ids := y.propose(named(toolOnce, "a"), named(toolOnce, "b"), named(toolKeyed, "c"))
	claimed, settled, whole := ids[0], ids[1], ids[2]
	stop := y.run(y.pipeline(y.db, y.src, cfg))
	y.empty()
	stop()
	y.exec("UPDATE workers SET ended = false")
	y.exec("DELETE FROM tool_executions")
	y.exec(`INSERT INTO outbox (tenant_id, action_id, bucket_id, next_attempt_at, fence, attempt, max_attempts)
		SELECT tenant_id, action_id, bucket_id, now(), 0, 0, max_attempts FROM actions WHERE action_id = ANY ($1::uuid[])`, []string{claimed.String(), settled.String()})
	y.exec("UPDATE outbox SET fence = 1, status = 'sending', lease_until = now() + interval '1 minute' WHERE action_id = $1", settled.String())
	y.exec("DELETE FROM actions WHERE action_id = $1", whole.String())
	y.exec("UPDATE worker_commits SET seq = 0; UPDATE fence SET started = started - interval '1 hour'")

	if state, err := guard.Check(t.Context()); err != nil || state != fence.StateHeld {
		t.Fatalf("Check = %s, %v", state, err)
	}

	for _, id := range []envelope.ActionID{claimed, settled} {
		if got := y.view(id).Envelope.Result.Status; got != envelope.StatusSent {
			t.Errorf("%s is %s again, want sent", id, got)
		}
	}
	if n := one[int](y, "SELECT count(1)::int FROM lost_calls WHERE external_id = 'c' AND NOT known AND outcome = 'sent'"); n != 1 {
		t.Errorf("%d lost calls of c", n)
	}
	err := postgres.InTx(t.Context(), y.db, postgres.Admin(), func(tx pgx.Tx) error {
		_, _, err := fence.Recovery{By: "Ana"}.Apply(t.Context(), tx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	y.exec("UPDATE pauses SET lifted_at = now(), lifted_by = 'test', woken_at = now()")
	ids = y.propose(named(toolKeyed, "c"), named(toolKeyed, "d"))
	again, other := ids[0], ids[1]
	y.work()
	if v := y.view(again); v.Envelope.Result.Status != envelope.StatusSkipped || v.Envelope.Result.Error == nil || v.Envelope.Result.Error.Code != "sent_before" {
		t.Errorf("the repeated proposal is %+v", v.Envelope.Result)
	}
	if y.effects(again) != 0 || y.effects(other) != 1 || y.effects(claimed) != 1 || y.effects(settled) != 1 {
		t.Errorf("effects: repeated %d, other %d, claimed %d, settled %d", y.effects(again), y.effects(other), y.effects(claimed), y.effects(settled))
	}
}

// TestARecoveredDatabaseAsksAboutNewActions has actions proposed after a recovery: they
// may repeat ones that were sent before, under other idempotency keys.
func TestARecoveredDatabaseAsksAboutNewActions(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	y.submit(toolRead, 1)
	y.work()
	before := y.submit(toolOnce, 1)[0]
	y.exec("UPDATE fence SET ask_from = now(), ask_until = now() + interval '1 hour'")
	once, keyed, read := y.submit(toolOnce, 1)[0], y.submit(toolKeyed, 1)[0], y.submit(toolRead, 1)[0]

	y.work()

	for class, id := range map[envelope.Effect]envelope.ActionID{envelope.EffectOnce: once, envelope.EffectKeyed: keyed} {
		if v := y.view(id); v.Envelope.Approval != envelope.ApprovalRequired || !strings.Contains(v.DecisionNote, "recovered") || y.effects(id) != 0 {
			t.Errorf("a new action of class %s is %s (%s), with %d effects", class, v.Envelope.Approval, v.DecisionNote, y.effects(id))
		}
	}
	if y.effects(read) != 1 || y.effects(before) != 1 {
		t.Error("an action of class read, or one of before the recovery, needs a person too")
	}
}
