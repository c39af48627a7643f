package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

func TestTwoWorkersExecuteEachEnvelopeOnce(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	var ids []envelope.ActionID
	for _, tool := range []string{toolRead, toolKeyed, toolOnce} {
		ids = append(ids, y.submit(tool, 300)...)
	}

	y.run(y.pipeline(y.db, y.src, config("w1")))
	y.run(y.pipeline(y.db, y.src, config("w2")))
	y.empty()

	if got := len(y.src.Calls()); got != len(ids) {
		t.Errorf("%d calls were made for %d envelopes", got, len(ids))
	}
	for _, id := range ids {
		if got := y.effects(id); got != 1 {
			t.Errorf("%s took effect %d times", id, got)
		}
	}
	if got := one[int](y, "SELECT count(1)::int FROM tool_executions WHERE status = 'sent' AND attempt = 1"); got != len(ids) {
		t.Errorf("%d attempts are stored, want %d", got, len(ids))
	}
}

// TestOutcomesOfCalls has each kind of answer, for each class that it
// makes a difference for.
func TestOutcomesOfCalls(t *testing.T) {
	t.Parallel()
	always := func(step sourcetest.Step) func(context.Context, source.Call) sourcetest.Step {
		return func(context.Context, source.Call) sourcetest.Step { return step }
	}
	firstThenDone := func(step sourcetest.Step) func(context.Context, source.Call) sourcetest.Step {
		return func(_ context.Context, call source.Call) sourcetest.Step {
			if call.Attempt == 1 {
				return step
			}
			return sourcetest.Done(`{"n":2}`)
		}
	}
	panics := func(_ context.Context, call source.Call) sourcetest.Step {
		if call.Attempt == 1 {
			panic("adapter")
		}
		return sourcetest.Done("")
	}
	unstorable := sourcetest.Done(`{"fine":true}`)
	unstorable.ProviderID = "p\x00q"
	deferred := sourcetest.Unreachable()
	deferred.Deferred = true
	held := new(atomic.Int32)

	for name, test := range map[string]struct {
		tool    string
		on      func(context.Context, source.Call) sourcetest.Step
		history []string
		effects int
		letter  outbox.Reason
	}{
		"retried and then done":                    {toolOnce, firstThenDone(sourcetest.Unreachable()), []string{"1 pending unreachable", "2 sent"}, 1, ""},
		"retried under the same key when lost":     {toolKeyed, firstThenDone(sourcetest.Lost()), []string{"1 pending lost", "2 sent"}, 1, ""},
		"unknown when lost and not to be repeated": {toolOnce, always(sourcetest.Lost()), []string{"1 unknown lost"}, 1, outbox.Unknown},
		"a dead letter when refused":               {toolOnce, always(sourcetest.Failed()), []string{"1 failed tool_error"}, 0, outbox.Refused},
		"done when it was there already":           {toolOnce, always(sourcetest.Status(409)), []string{"1 conflict conflict"}, 0, ""},
		"a dead letter when its attempts are used up": {toolKeyed, always(sourcetest.Unreachable()), []string{
			"1 pending unreachable", "2 pending unreachable", "3 pending unreachable", "4 pending unreachable", "5 failed unreachable",
		}, 0, outbox.Exhausted},
		"unknown when the adapter panics":       {toolOnce, panics, []string{"1 unknown lost"}, 0, outbox.Unknown},
		"retried when the adapter panics":       {toolRead, panics, []string{"1 pending lost", "2 sent"}, 1, ""},
		"done when its answer cannot be stored": {toolOnce, always(unstorable), []string{"1 sent"}, 1, ""},
		"put off without an attempt": {toolOnce, func(context.Context, source.Call) sourcetest.Step {
			if held.Add(1) < 4 {
				return deferred
			}
			return sourcetest.Done("")
		}, []string{"1 sent"}, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newFixture(t)
			id := y.submit(test.tool, 1)[0]
			y.src.On(test.tool, test.on)

			y.work()

			if diff := cmp.Diff(test.history, y.history(id)); diff != "" {
				t.Errorf("attempts (-want +got):\n%s", diff)
			}
			if got := y.effects(id); got != test.effects {
				t.Errorf("it took effect %d times, want %d", got, test.effects)
			}
			if got := one[string](y, "SELECT coalesce(max(reason), '') FROM dead_letters"); got != string(test.letter) {
				t.Errorf("dead letter %q, want %q", got, test.letter)
			}
		})
	}
}

func TestUnstorableAnswerDoesNotAffectItsBatch(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	ids := y.submit(toolOnce, 40)
	bad := ids[17]
	y.src.On(toolOnce, func(_ context.Context, call source.Call) sourcetest.Step {
		step := sourcetest.Done(`{"ok":true}`)
		if call.Key == y.key(bad) {
			step.ProviderID = "\x00"
		}
		return step
	})

	y.work()

	for _, id := range ids {
		e := y.view(id).Envelope
		want := `{"ok":true}`
		if id == bad {
			want = `{"_unstorable":true}`
		}
		if e.Result.Status != envelope.StatusSent || string(e.Result.Output) != want || len(y.history(id)) != 1 {
			t.Errorf("%s is %s with %s, want sent with %s", id, e.Result.Status, e.Result.Output, want)
		}
	}
}

// TestChangesBeforeTheCall changes something between the decision that
// an envelope may run and its call.
func TestChangesBeforeTheCall(t *testing.T) {
	t.Parallel()
	mode := func(m envelope.Mode) func(y *fixture) {
		return func(y *fixture) {
			y.configure(func(ctx context.Context, tx pgx.Tx) error {
				return settings.PutMode(ctx, tx, y.tenant, "", "*", m, "test")
			})
		}
	}
	list := func(tools ...source.Tool) func(y *fixture) {
		return func(y *fixture) {
			y.configure(func(ctx context.Context, tx pgx.Tx) error {
				return catalog.PutListing(ctx, tx, y.tenant, "fake", tools)
			})
		}
	}
	for name, test := range map[string]struct {
		move  func(y *fixture)
		phase envelope.Phase
		code  string
		calls int
	}{
		"policy denies":     {mode(envelope.ModeDeny), envelope.PhaseSkipped, "policy_denied", 0},
		"policy asks":       {mode(envelope.ModeRequireApproval), envelope.PhasePending, "", 0},
		"policy still lets": {mode(envelope.ModeAllow), envelope.PhaseCompleted, "", 1},
		"the tool drifted":  {list(tools("changed")...), envelope.PhasePending, "", 0},
		"the tool is gone":  {list(), envelope.PhaseSkipped, "tool_gone", 0},
		"the source is gone": {func(y *fixture) {
			y.configure(func(ctx context.Context, tx pgx.Tx) error { return catalog.DeleteSource(ctx, tx, y.tenant, "fake") })
		}, envelope.PhaseSkipped, "tool_gone", 0},
		"its deadline passed": {func(y *fixture) { y.exec("UPDATE actions SET must_run_before = now() - interval '1 second'") },
			envelope.PhaseSkipped, "deadline", 0},
		"too many workers died of it": {func(y *fixture) {
			y.exec("UPDATE outbox SET lost = $1, lease_until = now() - interval '1 second'", outbox.MaxLeasesLost)
		},
			envelope.PhaseFailed, "leases_lost", 0},
		"a worker died right after its start": {func(y *fixture) {
			y.exec("UPDATE outbox SET status = 'sending', fence = 1, lease_until = now() - interval '1 second'")
		}, envelope.PhaseUnknown, "worker_lost", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newFixture(t)
			id := y.submit(toolOnce, 1)[0]
			test.move(y)

			y.work()

			v := y.view(id)
			code := ""
			if e := v.Envelope.Result.Error; e != nil {
				code = e.Code
			}
			if v.Phase != test.phase || code != test.code || len(y.src.Calls()) != test.calls {
				t.Errorf("it is %s (%q) after %d calls, want %s (%q) after %d", v.Phase, code, len(y.src.Calls()), test.phase, test.code, test.calls)
			}
		})
	}
}

func TestAnActionThatReturnedToApprovalRunsOnceWhenGranted(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	id := y.submit(toolOnce, 1)[0]
	y.configure(func(ctx context.Context, tx pgx.Tx) error {
		return settings.PutMode(ctx, tx, y.tenant, "", "*", envelope.ModeRequireApproval, "test")
	})
	y.run(y.pipeline(y.db, y.src, config("w1")))
	y.empty()

	approvals := approval.New(y.db, settings.NewCache(), approval.Config{})
	if _, err := approvals.Approve(t.Context(), y.decider("ada"), id, approval.Approval{}); err != nil {
		t.Fatal(err)
	}
	y.empty()

	if got := y.effects(id); got != 1 {
		t.Errorf("it took effect %d times, want once", got)
	}
	if v := y.view(id); v.Phase != envelope.PhaseCompleted || !strings.HasPrefix(string(v.DecidedBy), "ada (token ") {
		t.Errorf("it is %s, decided by %q", v.Phase, v.DecidedBy)
	}
}

func TestAcceptedDriftIsNotDrift(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	id := y.submit(toolOnce, 1)[0]
	y.configure(func(ctx context.Context, tx pgx.Tx) error {
		if err := catalog.PutListing(ctx, tx, y.tenant, "fake", tools("changed")); err != nil {
			return err
		}
		for _, tool := range tools("changed") {
			digest, err := catalog.Digest(tool)
			if err != nil {
				return err
			}
			if err := catalog.AcceptTool(ctx, tx, y.tenant, policy.Key{Source: "fake", Action: tool.Name}, digest); err != nil {
				return err
			}
		}
		return nil
	})

	y.work()

	if got := y.view(id).Phase; got != envelope.PhaseCompleted {
		t.Errorf("it is %s, want completed", got)
	}
}

func TestAStopLetsRunningCallsEnd(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	g := newBarrier()
	y.src.On(toolOnce, g.hold)
	ids := y.submit(toolOnce, 5)
	cfg := config("w1")
	cfg.Concurrency = 2
	stop := y.run(y.pipeline(y.db, y.src, cfg))
	running := map[string]bool{g.wait(t).Key: true, g.wait(t).Key: true}

	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }() // waited for below
	close(g.open)
	<-stopped

	if got := len(y.src.Calls()); got != 2 {
		t.Errorf("%d calls were made, want the 2 that ran when it was stopped", got)
	}
	for _, id := range ids {
		want := envelope.StatusPending
		if running[y.key(id)] {
			want = envelope.StatusSent
		}
		if got := y.view(id).Envelope.Result.Status; got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
	y.nothingLeased()
}

func (y *fixture) nothingLeased() {
	y.t.Helper()
	if got := one[int](y, "SELECT count(1)::int FROM outbox WHERE lease_until IS NOT NULL"); got != 0 {
		y.t.Errorf("%d envelopes are still leased after the stop", got)
	}
}

func TestTheEndOfTheGraceCancelsCallsAndSettlesThem(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	g := newBarrier() // never opened
	y.src.On(toolOnce, g.hold)
	y.src.On(toolKeyed, g.hold)
	once, keyed := y.submit(toolOnce, 1)[0], y.submit(toolKeyed, 1)[0]
	cfg := config("w1")
	cfg.Grace = time.Millisecond
	stop := y.run(y.pipeline(y.db, y.src, cfg))
	g.wait(t)
	g.wait(t)

	stop()

	if diff := cmp.Diff([]string{"1 unknown cancelled"}, y.history(once)); diff != "" {
		t.Errorf("attempts of class once (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"1 pending cancelled"}, y.history(keyed)); diff != "" {
		t.Errorf("attempts of class keyed (-want +got):\n%s", diff)
	}
	y.nothingLeased()
}

// A stop may hit any moment of a claim. In each case nothing is left
// leased, lost or doubled.
func TestStopsAtAnyMomentLeaveNothingLeased(t *testing.T) {
	t.Parallel()
	const rounds = 20
	y := newFixture(t)
	ids := append(y.submit(toolOnce, 150), y.submit(toolKeyed, 150)...)
	calls := make(chan struct{}, 1000)
	on := func(context.Context, source.Call) sourcetest.Step {
		calls <- struct{}{}
		return sourcetest.Done("")
	}
	y.src.On(toolOnce, on)
	y.src.On(toolKeyed, on)
	cfg := config("w1")
	cfg.Concurrency = 8

	for range rounds {
		stop := y.run(y.pipeline(y.db, y.src, cfg))
		<-calls
		stop()
		y.nothingLeased()
	}
	stop := y.run(y.pipeline(y.db, y.src, config("w1")))
	y.empty()
	stop()

	for _, id := range ids {
		if got := y.effects(id); got != 1 {
			t.Errorf("%s took effect %d times", id, got)
		}
		if got := y.history(id); len(got) != 1 {
			t.Errorf("%s has the attempts %q, want one", id, got)
		}
	}
}

// cut ends every connection of a pool of that name.
func (y *fixture) cut(name string) {
	if _, err := y.db.Exec(y.t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1 AND datname = current_database()", name); err != nil {
		y.t.Errorf("cut connections: %v", err)
	}
}

func TestAnOutageBetweenCallAndSettleLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	db, err := postgres.Open(t.Context(), postgres.Config{URL: y.url, Name: "cut me"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	ids := append(y.submit(toolOnce, 60), y.submit(toolKeyed, 60)...)
	var n atomic.Int32
	on := func(context.Context, source.Call) sourcetest.Step {
		if n.Add(1)%15 == 0 {
			y.cut("cut me")
		}
		return sourcetest.Done(`{"ok":true}`)
	}
	y.src.On(toolOnce, on)
	y.src.On(toolKeyed, on)
	cfg := config("w1")
	cfg.Concurrency, cfg.Lease = 20, 2*time.Second // rows of a claim whose commit was cut are claimed again after the lease

	stop := y.run(y.pipeline(db, y.src, cfg))
	y.empty()
	stop()

	for _, id := range ids {
		e := y.view(id).Envelope
		// A start whose commit was cut may be marked but not sent; the outcome is
		// unknown.
		if e.Result.Status != envelope.StatusSent && e.Result.Status != envelope.StatusUnknown {
			t.Errorf("%s is %s", id, e.Result.Status)
		}
		want := 1
		if e.Result.Status == envelope.StatusUnknown && y.effects(id) == 0 {
			want = 0
		}
		if got := y.effects(id); got != want {
			t.Errorf("%s is %s and took effect %d times", id, e.Result.Status, got)
		}
		if got := y.history(id); len(got) != 1 {
			t.Errorf("%s has the attempts %q, want one", id, got)
		}
	}
}

func TestAWorkerWhoseLeaseWasTakenOverSettlesNothing(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	id := y.submit(toolKeyed, 1)[0]
	g := newBarrier()
	slow := sourcetest.NewSource(tools("as listed")...)
	slow.On(toolKeyed, func(ctx context.Context, call source.Call) sourcetest.Step {
		step := g.hold(ctx, call)
		step.Result = json.RawMessage(`{"by":"slow"}`)
		return step
	})
	stop, wait := y.start(y.pipeline(y.db, slow, config("slow")))
	g.wait(t)
	// Only the quick one may take it over: the slow one claims nothing more
	// by the time the lease is over.
	stop()
	y.exec("UPDATE outbox SET lease_until = now() - interval '1 second'")

	y.run(y.pipeline(y.db, y.src, config("quick")))
	y.empty()
	close(g.open)
	wait()

	if diff := cmp.Diff([]string{"1 sent"}, y.history(id)); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	if got := one[string](y, "SELECT worker FROM tool_executions"); got != "quick" {
		t.Errorf("it was settled by %q, want the worker that held the lease", got)
	}
}

func TestLeasesOfLongCallsAreRenewed(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	id := y.submit(toolOnce, 1)[0]
	g := newBarrier()
	y.src.On(toolOnce, g.hold)
	cfg := config("w1")
	cfg.Lease = 900 * time.Millisecond
	y.run(y.pipeline(y.db, y.src, cfg))
	g.wait(t)
	first := one[time.Time](y, "SELECT lease_until FROM outbox")
	y.run(y.pipeline(y.db, y.src, config("w2")))

	// By then the first lease is over.
	y.until("SELECT lease_until > $1::timestamptz + interval '1 second' FROM outbox", first)
	close(g.open)
	y.empty()

	if diff := cmp.Diff([]string{"1 sent"}, y.history(id)); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	if got := y.effects(id); got != 1 {
		t.Errorf("it took effect %d times, want once", got)
	}
}

func TestWorkersTakeBucketsInTurn(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	y.submit(toolRead, 400)
	y.exec("INSERT INTO buckets (tenant_id, name) VALUES ($1, 'small')", y.tenant.String())
	small := y.submit(toolKeyed, 5)
	for _, id := range small {
		y.exec("UPDATE outbox SET bucket_id = (SELECT bucket_id FROM buckets WHERE name = 'small') WHERE action_id = $1", id.String())
	}
	cfg := config("w1")
	cfg.Concurrency = 10

	y.run(y.pipeline(y.db, y.src, cfg))
	y.empty()

	last := 0
	for i, call := range y.src.Calls() {
		if call.Tool == toolKeyed {
			last = i
		}
	}
	if last > 40 {
		t.Errorf("the last of 5 envelopes of a small bucket was call %d of 405, want it among the first", last)
	}
}

func TestRepeatedPollsGiveEveryBucketItsTurn(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	const buckets, each = 8, 20
	for i := range buckets {
		y.exec("INSERT INTO buckets (tenant_id, name) VALUES ($1, $2)", y.tenant.String(), fmt.Sprint(i))
		for _, id := range y.submit(toolRead, each) {
			y.exec("UPDATE outbox SET bucket_id = (SELECT bucket_id FROM buckets WHERE name = $2) WHERE action_id = $1", id.String(), fmt.Sprint(i))
		}
	}
	y.exec("CREATE TABLE countersign_data.turns (bucket_id bigint NOT NULL, nth bigint GENERATED ALWAYS AS IDENTITY)")
	y.exec("CREATE FUNCTION countersign_data.note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN INSERT INTO turns (bucket_id) VALUES (OLD.bucket_id); RETURN OLD; END'")
	y.exec("CREATE TRIGGER turns AFTER DELETE ON outbox FOR EACH ROW EXECUTE FUNCTION note()")
	cfg := config("w1")
	cfg.Concurrency = 2
	cfg.BacklogPoll = time.Nanosecond // before every claim

	y.run(y.pipeline(y.db, y.src, cfg))
	y.empty()

	fewest := one[int](y, "SELECT min(n)::int FROM (SELECT count(1) AS n FROM turns WHERE nth <= $1 GROUP BY bucket_id) t", buckets*each/2)
	seen := one[int](y, "SELECT count(DISTINCT bucket_id)::int FROM turns WHERE nth <= $1", buckets*each/2)
	if seen != buckets || fewest < each/4 {
		t.Errorf("when half was done %d of %d buckets had had a turn, and one only %d of %d", seen, buckets, fewest, each)
	}
}

// TestANewlyDueBucketHasItsTurnAmongManyThatWait has more buckets with work than a look
// reads at once, of which one has a backlog and another becomes due.
func TestANewlyDueBucketHasItsTurnAmongManyThatWait(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	const buckets, backlog = 300, 300
	for i, id := range append(y.submit(toolRead, buckets-1), y.submit(toolKeyed, 1)...) {
		y.exec(`WITH made AS (INSERT INTO buckets (tenant_id, name) VALUES ($1, $2) RETURNING bucket_id)
			UPDATE outbox SET next_attempt_at = now() + interval '1 day', bucket_id = made.bucket_id FROM made WHERE action_id = $3`, y.tenant.String(), fmt.Sprint("later", i), id.String())
	}
	y.submit(toolOnce, backlog)
	g := newBarrier()
	y.src.On(toolOnce, g.hold)
	cfg := config("w1")
	cfg.Concurrency, cfg.BacklogPoll = 1, time.Nanosecond // a look before every claim

	y.run(y.pipeline(y.db, y.src, cfg))
	g.wait(t)
	y.exec("UPDATE outbox SET next_attempt_at = now() FROM actions a WHERE a.action_id = outbox.action_id AND a.tool_name = $1", toolKeyed)
	close(g.open)
	y.until("SELECT count(1) = $1 FROM outbox", buckets-1)

	calls := y.src.Calls()
	if n := slices.IndexFunc(calls, func(c source.Call) bool { return c.Tool == toolKeyed }); n < 0 || n >= backlog {
		t.Errorf("the action of the bucket that became due was call %d, want it before the backlog of %d ends", n, backlog)
	}
}

// claims counts the statements that claim.
type claims struct {
	made chan struct{}
}

func (c claims) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if strings.Contains(data.SQL, "OutboxClaim") {
		select {
		case c.made <- struct{}{}:
		default:
		}
	}
	return ctx
}

func (claims) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func TestLockedRowIsNotRequestedForever(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	y.submit(toolOnce, 1)
	cfg, err := pgxpool.ParseConfig(y.url)
	if err != nil {
		t.Fatal(err)
	}
	c := claims{made: make(chan struct{}, 100)}
	cfg.ConnConfig.Tracer = c
	db, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	lock, err := y.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Exec(t.Context(), "SELECT 1 FROM outbox FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	wc := config("w1")
	wc.BacklogPoll, wc.Poll = 40*time.Millisecond, time.Second

	began := time.Now()
	y.run(y.pipeline(db, y.src, wc))
	for range 6 {
		<-c.made
	}
	took := time.Since(began)
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	y.empty()

	if took < 5*wc.BacklogPoll {
		t.Errorf("6 claims of a locked row were made in %v, want one every %v", took, wc.BacklogPoll)
	}
}
