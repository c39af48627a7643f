package worker_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/internal/worker/background"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/preflight"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/pause"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// statements counts the statements with a name.
type statements struct {
	name string
	made chan struct{}
}

func (s statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if strings.Contains(data.SQL, s.name) {
		select {
		case s.made <- struct{}{}:
		default:
		}
	}
	return ctx
}

func (statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// watched returns a pool whose statements with a name are counted.
func (y *fixture) watched(name string) (*pgxpool.Pool, statements) {
	y.t.Helper()
	cfg, err := pgxpool.ParseConfig(y.url)
	if err != nil {
		y.t.Fatal(err)
	}
	s := statements{name: name, made: make(chan struct{}, 1000)}
	cfg.ConnConfig.Tracer = s
	db, err := pgxpool.NewWithConfig(y.t.Context(), cfg)
	if err != nil {
		y.t.Fatal(err)
	}
	y.t.Cleanup(db.Close)
	return db, s
}

// pause stops a target; an empty subject is for the tenant. Everything is
// stopped by an operator of the fleet.
func (y *fixture) pause(of pause.Target, kill bool) {
	y.t.Helper()
	y.asOperator(of, func(ctx context.Context, tx pgx.Tx) error {
		var err error
		if of.Scope == pause.Everything {
			_, err = pause.SetEverything(ctx, tx, kill, "because", "ada")
		} else {
			_, err = pause.Set(ctx, tx, y.tenant, pause.Order{Target: of, Kill: kill, Reason: "because", By: "ada"})
		}
		return err
	})
}

func (y *fixture) resume(of pause.Target) {
	y.t.Helper()
	y.asOperator(of, func(ctx context.Context, tx pgx.Tx) error {
		if of.Scope == pause.Everything {
			return pause.LiftEverything(ctx, tx, "enough", "ada")
		}
		return pause.Lift(ctx, tx, y.tenant, of, "enough", "ada")
	})
}

func (y *fixture) asOperator(of pause.Target, fn func(ctx context.Context, tx pgx.Tx) error) {
	y.t.Helper()
	scope := postgres.API(y.tenant)
	if of.Scope == pause.Everything {
		scope = postgres.Admin()
	}
	if err := postgres.InTx(y.t.Context(), y.db, scope, func(tx pgx.Tx) error { return fn(y.t.Context(), tx) }); err != nil {
		y.t.Fatal(err)
	}
}

// sweep runs the sweep that the fleet's leader runs every second.
func (y *fixture) sweep() {
	y.t.Helper()
	if err := background.Sweep(y.t.Context(), y.db, func() {}); err != nil {
		y.t.Fatal(err)
	}
}

// later lets two minutes pass for every pause and its actions.
func (y *fixture) later() {
	y.t.Helper()
	for _, change := range []string{
		"pauses SET killed_at = killed_at - interval '2 minutes', lifted_at = lifted_at - interval '2 minutes'",
		"wakes SET asked_at = asked_at - interval '2 minutes'",
		"actions SET created_at = created_at - interval '2 minutes'",
	} {
		y.exec("UPDATE " + change)
	}
}

// targets are all pause targets of one proposal.
func targets(employee envelope.EmployeeID) map[string]pause.Target {
	return map[string]pause.Target{
		"everything":   {Scope: pause.Everything},
		"the tenant":   {Scope: pause.Tenant},
		"the employee": {Scope: pause.Employee, Subject: employee.String()},
		"the source":   {Scope: pause.Source, Subject: "fake"},
		"the bucket":   {Scope: pause.Bucket, Subject: "slow"},
		"the tool":     {Scope: pause.Tool, Subject: "fake:" + toolOnce},
	}
}

// TestPausedActionsWaitForTheResume pauses before the first claim, starts
// the fleet again while it is paused, and resumes.
func TestPausedActionsWaitForTheResume(t *testing.T) {
	t.Parallel()
	employee := newEmployee()
	for name, of := range targets(employee) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newFixture(t)
			y.bucket(limits.Bucket{Name: "slow"})
			meant := y.propose(proposal(by(employee), in("slow")), proposal(by(employee), in("slow")))
			y.pause(of, false)
			db, looks := y.watched("OutboxDueBuckets")

			for range 2 { // a restart loses nothing
				stop := y.run(y.pipeline(db, y.src, config("w1")))
				for range 5 {
					<-looks.made
				}
				stop()
			}

			calls := len(y.src.Calls())
			y.exec("UPDATE outbox SET lease_until = NULL") // as of a claim that was cut by the stop
			waits := y.view(meant[0]).WaitsFor
			y.resume(of)
			y.sweep()
			y.work()

			if calls != 0 || waits != "paused" {
				t.Errorf("while it was paused %d calls were made, and it waited for %q", calls, waits)
			}
			for _, id := range meant {
				if diff := cmp.Diff([]string{"1 sent"}, y.history(id)); diff != "" {
					t.Errorf("attempts after the resume (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestAPauseStopsNothingElse(t *testing.T) {
	t.Parallel()
	employee := newEmployee()
	for name, of := range targets(employee) {
		if of.Scope == pause.Everything || of.Scope == pause.Tenant || of.Scope == pause.Source {
			continue // there is nothing else in the fixture
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newFixture(t)
			y.bucket(limits.Bucket{Name: "slow"})
			other := proposal(by(newEmployee()))
			other.Tool.Name = toolRead
			y.pause(of, false)
			id := y.propose(other)[0]

			y.work()

			if diff := cmp.Diff([]string{"1 sent"}, y.history(id)); diff != "" {
				t.Errorf("attempts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPauseAppliesToTheNextClaim(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	g := newBarrier()
	y.src.On(toolOnce, g.hold)
	cfg := config("w1")
	cfg.Concurrency = 1
	db, claims := y.watched("OutboxDueBuckets")
	y.submit(toolOnce, 20)
	y.run(y.pipeline(db, y.src, cfg))
	g.wait(t)

	y.pause(pause.Target{Scope: pause.Tenant}, false)
	close(g.open)
	y.until("SELECT EXISTS (SELECT FROM tool_executions)")
	for len(claims.made) > 0 {
		<-claims.made
	}
	for range 5 {
		<-claims.made
	}

	if got := len(y.src.Calls()); got != 1 {
		t.Errorf("%d calls were made, want the one that was under way", got)
	}
	if got := one[int](y, "SELECT count(1)::int FROM tool_executions WHERE status = 'sent'"); got != 1 {
		t.Errorf("%d were settled, want the one that was under way", got)
	}
}

// TestTwoPausesHoldUntilBothAreLifted has actions that one lifted pause wakes fall
// under the other.
func TestTwoPausesHoldUntilBothAreLifted(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	employee := newEmployee()
	person, tool := pause.Target{Scope: pause.Employee, Subject: employee.String()}, pause.Target{Scope: pause.Tool, Subject: "fake:" + toolOnce}
	y.pause(person, false)
	y.pause(tool, false)
	id := y.propose(proposal(by(employee)))[0]
	stop := y.run(y.pipeline(y.db, y.src, config("w1")))
	y.settled()

	y.resume(person)
	y.sweep()
	y.settled()
	waits := y.view(id).WaitsFor
	y.resume(tool)
	y.sweep()
	y.empty()
	stop()

	if diff := cmp.Diff([]string{"1 sent"}, y.history(id)); diff != "" || waits != "paused" {
		t.Errorf("it waited for %q after the first resume; attempts (-want +got):\n%s", waits, diff)
	}
}

// TestRemovedQuietHoursWakeActions covers actions waiting for a reason that an
// operator removes.
func TestRemovedQuietHoursWakeActions(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	y.quiet(limits.QuietTenant, "")
	id := y.propose(proposal())[0]
	y.run(y.pipeline(y.db, y.src, config("w1")))
	y.settled()

	y.configure(func(ctx context.Context, tx pgx.Tx) error {
		return limits.DeleteQuietHours(ctx, tx, y.tenant, limits.QuietTenant, "", "ada")
	})
	y.sweep()
	y.empty()

	if diff := cmp.Diff([]string{"1 sent"}, y.history(id)); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
}

// TestAKillEndsPendingActions has one envelope in every pending state, and one
// that is proposed afterwards.
func TestAKillEndsPendingActions(t *testing.T) {
	t.Parallel()
	employee := newEmployee()
	for name, of := range targets(employee) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newFixture(t)
			y.bucket(limits.Bucket{Name: "slow"})
			meant := func(tool string) *envelope.Proposal {
				p := proposal(by(employee), in("slow"))
				p.Tool.Name = tool
				return p
			}
			kinds := []string{"due", "later", "retried", "doubtful", "started", "lost", "asked", "unanswered read"}
			tools := map[string]string{"doubtful": toolKeyed, "lost": toolKeyed, "unanswered read": toolRead}
			var proposals []*envelope.Proposal
			for _, kind := range kinds {
				tool := toolOnce
				if tools[kind] != "" && of.Scope != pause.Tool {
					tool = tools[kind]
				}
				p := meant(tool)
				switch kind {
				case "later":
					p.Constraints.NotBefore = time.Now().Add(time.Hour)
				case "asked":
					p.Approval = envelope.ApprovalRequired
				}
				proposals = append(proposals, p)
			}
			ids := make(map[string]envelope.ActionID)
			for i, id := range y.propose(proposals...) {
				ids[kinds[i]] = id
			}
			other := y.propose(&envelope.Proposal{Type: envelope.TypeExec, Tool: envelope.Tool{Name: toolRead, Source: "fake"}, Args: []byte(`{}`)})[0]
			set := func(kind, change string) {
				y.exec("UPDATE outbox SET "+change+" WHERE action_id = $1", ids[kind].String())
			}
			set("retried", "attempt = 2, waits_for = 'retry', next_attempt_at = now() + interval '1 hour'")
			set("doubtful", "attempt = 1, unsure = true, next_attempt_at = now() + interval '1 hour'")
			set("started", "status = 'sending', fence = 1, lease_until = now() - interval '1 second'")
			set("lost", "fence = 1, lease_until = now() - interval '1 second'")
			set("unanswered read", "attempt = 1, unsure = true")

			y.pause(of, true)
			y.sweep()
			after := y.propose(meant(toolOnce))[0]
			y.later()
			y.sweep()

			want := map[string]envelope.Status{
				"due": envelope.StatusSkipped, "later": envelope.StatusSkipped, "retried": envelope.StatusSkipped, "doubtful": envelope.StatusUnknown,
				"started": envelope.StatusUnknown, "lost": envelope.StatusUnknown, "asked": envelope.StatusSkipped, "unanswered read": envelope.StatusSkipped,
			}
			if of.Scope == pause.Tool { // all are of class once, which has a mark for it
				want["doubtful"], want["lost"] = envelope.StatusSkipped, envelope.StatusSkipped
			}
			letters := 0
			for _, kind := range kinds {
				v := y.view(ids[kind])
				if v.Envelope.Result.Status != want[kind] || y.code(ids[kind]) != "killed" {
					t.Errorf("the one that was %s is %s (%q), want %s (killed)", kind, v.Envelope.Result.Status, y.code(ids[kind]), want[kind])
				}
				if want[kind] == envelope.StatusUnknown {
					letters++
				}
			}
			if got := one[int](y, "SELECT count(1)::int FROM dead_letters WHERE reason = 'unknown'"); got != letters {
				t.Errorf("%d dead letters, want %d", got, letters)
			}
			if got := y.view(after).Envelope.Result.Status; got != envelope.StatusPending {
				t.Errorf("one that was proposed after the kill is %s, want pending", got)
			}
			covers := of.Scope == pause.Everything || of.Scope == pause.Tenant || of.Scope == pause.Source
			if got := y.view(other).Envelope.Result.Status; (got == envelope.StatusSkipped) != covers {
				t.Errorf("one of another employee, bucket and tool is %s", got)
			}
			y.later()
			y.sweep()
			ended := len(kinds)
			if covers {
				ended++
			}
			if swept := one[bool](y, "SELECT swept_at IS NOT NULL AND cancelled = $1 FROM pauses", ended); !swept {
				t.Errorf("the pause does not say that all %d were ended", ended)
			}
			if got := one[int](y, "SELECT coalesce(sum(jsonb_array_length(items)), 0)::int FROM events WHERE kind = 'killed'"); got != ended {
				t.Errorf("the events tell of %d, want %d", got, ended)
			}
			y.resume(of)
			y.sweep()
			y.work()
			if diff := cmp.Diff([]string{"1 sent"}, y.history(after)); diff != "" {
				t.Errorf("attempts of the one that was proposed after the kill (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAKillLeavesRunningCallsToTheirWorker(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	g := newBarrier()
	y.src.On(toolOnce, g.hold)
	y.src.On(toolKeyed, func(ctx context.Context, call source.Call) sourcetest.Step {
		step := g.hold(ctx, call)
		step.Effect, step.Observation = false, source.Observation{}
		step.Code = source.CodeUnreachable
		return step
	})
	once, keyed := y.submit(toolOnce, 1)[0], y.submit(toolKeyed, 1)[0]
	cfg := config("w1")
	cfg.Retry = outbox.Retry{Base: time.Hour, Cap: time.Hour}
	y.run(y.pipeline(y.db, y.src, cfg))
	g.wait(t)
	g.wait(t)

	y.pause(pause.Target{Scope: pause.Tenant}, true)
	y.sweep()
	swept := one[bool](y, "SELECT swept_at IS NOT NULL FROM pauses")
	close(g.open)
	y.until("SELECT count(1) = 2 FROM tool_executions")
	y.later()
	y.sweep()

	if swept {
		t.Errorf("the kill counts as swept while two are under way")
	}
	if diff := cmp.Diff([]string{"1 sent"}, y.history(once)); diff != "" {
		t.Errorf("attempts of one that went well (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"1 pending unreachable", "1 skipped killed"}, y.history(keyed)); diff != "" {
		t.Errorf("attempts of one that was to be retried (-want +got):\n%s", diff)
	}
	if !one[bool](y, "SELECT swept_at IS NOT NULL FROM pauses") {
		t.Errorf("the kill does not count as swept")
	}
}

// TestAKillCountsActionsThatWorkersHold has a worker claim an action after the
// kill and before the sweep.
func TestAKillCountsActionsThatWorkersHold(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	id := y.submit(toolOnce, 1)[0]
	y.pause(pause.Target{Scope: pause.Tool, Subject: "fake:" + toolOnce}, true)

	stop := y.run(y.pipeline(y.db, y.src, config("w1")))
	y.until("SELECT coalesce(waits_for, '') = 'paused' AND lease_until IS NULL FROM outbox")
	stop()
	y.sweep()
	y.later()
	y.sweep()

	if diff := cmp.Diff([]string{"0 skipped killed"}, y.history(id)); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	if !one[bool](y, "SELECT cancelled = 1 AND swept_at IS NOT NULL FROM pauses") {
		t.Error("the kill does not count the action")
	}
}

// TestKillDuringAnApproval has a person grant an envelope in the very
// moment of the sweep.
func TestKillDuringAnApproval(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	id := y.propose(proposal(func(p *envelope.Proposal) { p.Approval = envelope.ApprovalRequired }))[0]
	approvals := approval.New(y.db, settings.NewCache(), approval.Config{})
	y.pause(pause.Target{Scope: pause.Tenant}, true)
	lock, err := y.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Exec(t.Context(), "SELECT 1 FROM actions WHERE action_id = $1 FOR UPDATE", id.String()); err != nil {
		t.Fatal(err)
	}
	y.sweep()
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := approvals.Approve(t.Context(), y.decider("ada"), id, approval.Approval{}); err != nil {
		t.Fatal(err)
	}
	y.sweep()
	y.resume(pause.Target{Scope: pause.Tenant})
	y.sweep()

	y.work()

	if diff := cmp.Diff([]string{"0 skipped killed"}, y.history(id)); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
}

// TestKillDuringASubmission has a submission begin before the kill and
// commit after the first sweep.
func TestKillDuringASubmission(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	first := y.propose(proposal())[0]
	y.work()
	slow, err := y.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	id := envelope.NewActionID()
	for _, write := range []string{
		`INSERT INTO actions (tenant_id, action_id, content_digest, source_id, tool_name, args, risk, effect, decision_id, config_version,
				tool_digest, approval_state, bucket_id, max_attempts)
			SELECT tenant_id, $2, content_digest, source_id, tool_name, args, risk, effect, decision_id, config_version,
				tool_digest, approval_state, bucket_id, max_attempts FROM actions WHERE action_id = $1`,
		`INSERT INTO outbox (tenant_id, action_id, bucket_id, next_attempt_at, max_attempts)
			SELECT tenant_id, $2, bucket_id, now(), max_attempts FROM actions WHERE action_id = $1`,
	} {
		if _, err := slow.Exec(t.Context(), write, first.String(), id.String()); err != nil {
			t.Fatal(err)
		}
	}
	y.pause(pause.Target{Scope: pause.Tenant}, true)
	y.sweep()
	if err := slow.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	y.sweep()
	y.resume(pause.Target{Scope: pause.Tenant})
	y.sweep()

	y.work()

	if diff := cmp.Diff([]string{"0 skipped killed"}, y.history(id)); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
}

// TestResumeDuringPutBack lets a worker claim during a pause, and put the
// action back after the end of the pause.
func TestResumeDuringPutBack(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	source := pause.Target{Scope: pause.Source, Subject: "fake"}
	id := y.propose(proposal())[0]
	y.pause(source, false)
	inWorker := func(fn func(tx pgx.Tx) error) {
		t.Helper()
		if err := postgres.InTx(t.Context(), y.db, postgres.Worker().Planned(), fn); err != nil {
			t.Fatal(err)
		}
	}
	var items []outbox.Item
	inWorker(func(tx pgx.Tx) (err error) {
		due, err := outbox.DueBuckets(t.Context(), tx, 0, 1)
		if err == nil && len(due) == 1 {
			items, err = outbox.Claim(t.Context(), tx, outbox.Mark{}, []outbox.ClaimRequest{{Bucket: due[0].Bucket, From: due[0].From, Quota: 1}}, time.Minute)
		}
		return err
	})
	if len(items) != 1 {
		t.Fatalf("Claim has %d items, want 1", len(items))
	}
	y.resume(source)
	y.sweep()
	inWorker(func(tx pgx.Tx) error {
		_, err := outbox.Settle(t.Context(), tx, outbox.Mark{}, "w1", []outbox.Settlement{outbox.Defer(items[0], preflight.CodePaused, time.Hour)})
		return err
	})

	y.sweep()

	if due := one[bool](y, "SELECT next_attempt_at <= now() FROM outbox WHERE action_id = $1", id.String()); !due {
		t.Errorf("it waits on, though nothing is paused any more")
	}
}

func TestSweepContinuesAnInterruptedOne(t *testing.T) {
	t.Parallel()
	const n = 2500 // more than two pages
	y := newFixture(t)
	y.exec("DROP FUNCTION tell CASCADE")
	y.fill(0, n)
	y.pause(pause.Target{Scope: pause.Tenant}, true)
	step := func(most int) bool {
		var ended bool
		err := postgres.InTx(t.Context(), y.db, postgres.Worker(), func(tx pgx.Tx) error {
			sweeps, err := outbox.Sweeps(t.Context(), tx, 10)
			if err != nil || len(sweeps) == 0 {
				return err
			}
			_, ended, err = sweeps[0].Step(t.Context(), tx, outbox.SweepCursor{}, most)
			return err
		})
		if err != nil {
			t.Error(err)
		}
		return ended
	}

	step(700) // and the worker has ended
	var both sync.WaitGroup
	for range 2 { // two leaders concurrently
		both.Go(func() {
			if err := background.Sweep(t.Context(), y.db, func() {}); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	y.later()
	y.sweep()

	if got := one[int](y, "SELECT count(1)::int FROM tool_executions WHERE code = 'killed'"); got != n {
		t.Errorf("%d attempts, want %d", got, n)
	}
	if got := one[int](y, "SELECT cancelled FROM pauses"); got != n {
		t.Errorf("the pause tells of %d, want %d", got, n)
	}
	if left := one[int](y, "SELECT count(1)::int FROM outbox"); left != 0 || !one[bool](y, "SELECT swept_at IS NOT NULL FROM pauses") {
		t.Errorf("%d are left", left)
	}
}

func TestAKillOfMany(t *testing.T) {
	t.Parallel()
	const n = 20_000
	y := newFixture(t)
	y.exec("DROP FUNCTION tell CASCADE")
	y.fill(0, n)
	y.submit(toolRead, 10)
	y.pause(pause.Target{Scope: pause.Tool, Subject: "fake:" + toolOnce}, true)

	y.sweep()
	y.later()
	y.sweep()

	if got := one[int](y, "SELECT cancelled FROM pauses WHERE swept_at IS NOT NULL"); got != n {
		t.Errorf("%d were ended, want %d", got, n)
	}
	if left := one[int](y, "SELECT count(1)::int FROM outbox"); left != 10 {
		t.Errorf("%d are left, want the 10 of another tool", left)
	}
}

// TestTheFleetSweeps leaves the work after a kill and a resume to the workers'
// own jobs.
func TestTheFleetSweeps(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	tool := pause.Target{Scope: pause.Tool, Subject: "fake:" + toolOnce}
	later := proposal(func(p *envelope.Proposal) { p.Constraints.NotBefore = time.Now().Add(time.Hour) })
	killed := y.propose(later)[0]
	y.run(y.fleet(y.src, config("w1")))

	began := time.Now()
	y.pause(tool, true)
	y.until("SELECT cancelled = 1 FROM pauses")
	after := y.propose(proposal())[0]
	y.settled()
	y.resume(tool)
	y.empty()
	took := time.Since(began)

	if diff := cmp.Diff([]string{"0 skipped killed"}, y.history(killed)); diff != "" {
		t.Errorf("attempts of what was pending (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"1 sent"}, y.history(after)); diff != "" {
		t.Errorf("attempts of what came after (-want +got):\n%s", diff)
	}
	t.Logf("a kill and a resume took the fleet %v", took)
}
