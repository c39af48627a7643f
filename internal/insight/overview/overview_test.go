package overview_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/insight/overview"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

// everyReason schedules actions for every reason.
func (k tenant) everyReason() {
	k.t.Helper()
	open := k.bucket("open", "")
	k.queue(open, 3, -60, "")
	k.queue(open, 2, 600, "")
	k.queue(open, 1, 30, "waits_for = 'retry'")
	k.queue(open, 2, 3600, "waits_for = 'quiet_hours'")
	k.queue(open, 1, -5, "waits_for = 'retry'") // due again
	k.queue(open, 4, -1, "lease_until = now() + interval '30 seconds'")
	spent := k.bucket("spent", "rate_limit = 1, rate_seconds = 60, burst = 1, tat = now() + interval '60 seconds'")
	k.queue(spent, 5, -90, "")
	k.queue(spent, 1, 3600, "") // later than the next permit
	closed := k.bucket("closed", "closed_until = now() + interval '40 seconds', closed_by = 'retry_after'")
	k.queue(closed, 2, -10, "")
	halted := k.bucket("halted", "concurrency = 3")
	k.queue(halted, 2, -20, "")
	k.queue(halted, 1, 500, "waits_for = 'breaker_open'")
	k.queue(halted, 2, -1, "lease_until = now() + interval '30 seconds', held = true")
	k.exec("INSERT INTO pauses (pause_id, tenant_id, scope, subject, reason, paused_by) VALUES (gen_random_uuid(), $1, 'bucket', 'halted', 'a fair', 'Ana')", k.id.String())
	k.propose(open, "send", envelope.ApprovalRequired)
}

func TestReasonsMatchTheEnvelopes(t *testing.T) {
	t.Parallel()
	k := fixture{t, dbtest.Tx(t)}.tenant("reasons")
	k.everyReason()
	var want map[string]int64
	k.as(postgres.API(k.id), func(tx pgx.Tx) error {
		rows, err := tx.Query(t.Context(), "SELECT waits_for, count(1) FROM envelopes WHERE waits_for IS NOT NULL GROUP BY waits_for")
		if err != nil {
			return err
		}
		want = make(map[string]int64)
		var reason string
		var n int64
		_, err = pgx.ForEachRow(rows, []any{&reason, &n}, func() error { want[reason] = n; return nil })
		return err
	})

	got := k.overview()

	if diff := cmp.Diff(want, reasons(got.Waiting)); diff != "" {
		t.Errorf("waiting (-envelopes +overview):\n%s", diff)
	}
	if len(want) < 7 {
		t.Errorf("envelopes wait for %v only", want)
	}
}

func TestOverviewOfATenant(t *testing.T) {
	t.Parallel()
	f := fixture{t, dbtest.Tx(t)}
	other := f.tenant("other")
	other.queue(other.bucket("open", ""), 7, -1000, "")
	other.exec("INSERT INTO pauses (pause_id, tenant_id, scope, reason, paused_by) VALUES (gen_random_uuid(), $1, 'tenant', 'theirs', 'Bo')", other.id.String())
	other.exec("INSERT INTO dead_letters (tenant_id, action_id, reason, attempt) VALUES ($1, $1, 'refused', 1)", other.id.String())
	k := f.tenant("mine")
	k.everyReason()
	k.queue(k.bucket("open", ""), 1, -300, "lease_until = now() - interval '5 seconds'")
	k.exec(`INSERT INTO breakers (tenant_id, source_id, state, cause, open_until, openings, worker)
		VALUES ($1, 'mail', 'open', 'failures', now() + interval '1 minute', 3, 'w1')`, k.id.String())
	for reason, age := range map[string]int{"unknown": 3600, "refused": 60} {
		k.exec(`INSERT INTO dead_letters (tenant_id, action_id, reason, attempt, created_at)
			VALUES ($1, gen_random_uuid(), $2, 1, now() - make_interval(secs => $3))`, k.id.String(), reason, age)
	}

	got := k.overview()

	type shape struct {
		Due, Scheduled, InFlight, Overdue int64
		Estimated                         bool
	}
	want := shape{Due: 3 + 1 + 5 + 2 + 2 + 1, Scheduled: 2 + 1 + 2 + 1 + 1, InFlight: 4 + 2, Overdue: 1}
	if diff := cmp.Diff(want, shape{got.Due, got.Scheduled, got.InFlight, got.LeasesOverdue, got.Estimated}); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if !about(got.OldestDue, 60) {
		t.Errorf("oldest due = %g s, want the one that nothing holds back", got.OldestDue)
	}
	named := func(name string) wire.OverviewBucket {
		return find(t, got.Buckets, func(b wire.OverviewBucket) bool { return b.Name == name })
	}
	wantBuckets := []wire.OverviewBucket{
		{Name: "open", Waiting: 9, OldestDue: 60},
		{Name: "spent", Waiting: 6, OldestDue: 90, Limited: true, Permits: new(int64(0)), OpensIn: 60},
		{Name: "halted", Waiting: 3, OldestDue: 20, Paused: true, Limited: true, InUse: new(int64(2)), Concurrency: new(int64(3))},
		{Name: "closed", Waiting: 2, OldestDue: 10, OpensIn: 40, ClosedBy: new("retry_after")},
	}
	same := cmp.Comparer(about)
	for _, b := range wantBuckets {
		if diff := cmp.Diff(b, named(b.Name), same); diff != "" {
			t.Errorf("bucket %s (-want +got):\n%s", b.Name, diff)
		}
	}
	quiet := find(t, got.Waiting, func(w wire.OverviewWaiting) bool { return w.Reason == "quiet_hours" })
	if diff := cmp.Diff(wire.OverviewWaiting{Reason: "quiet_hours", Actions: 2, NextIn: new(3600.0)}, quiet, same); diff != "" {
		t.Errorf("quiet hours (-want +got):\n%s", diff)
	}
	if len(got.Breakers) != 1 || got.Breakers[0].State != "open" || got.Breakers[0].Openings != 3 {
		t.Errorf("breakers = %+v, want the open one", got.Breakers)
	}
	if len(got.Pauses) != 1 || got.Pauses[0].Subject != "halted" || got.Pauses[0].By != "Ana" || got.Pauses[0].Reason != "a fair" {
		t.Errorf("pauses = %+v, want the tenant's own", got.Pauses)
	}
	if got.Approvals.Waiting != 1 || got.Approvals.OldestAt == nil || !got.Approvals.OldestAt.Equal(got.At) {
		t.Errorf("approvals = %+v, want one that was proposed at %s", got.Approvals, got.At)
	}
	deadLetters := []wire.OverviewDeadLetters{{Reason: "refused", Count: 1, Oldest: 60}, {Reason: "unknown", Count: 1, Oldest: 3600}}
	byReason := cmpopts.SortSlices(func(a, b wire.OverviewDeadLetters) bool { return a.Reason < b.Reason })
	if diff := cmp.Diff(deadLetters, got.DeadLetters, same, byReason); diff != "" {
		t.Errorf("dead letters (-want +got):\n%s", diff)
	}
}

func TestPauseOfEverythingIsVisibleToEveryTenant(t *testing.T) {
	t.Parallel()
	k := fixture{t, dbtest.DB(t)}.tenant("halted")
	k.queue(k.bucket("open", ""), 2, -60, "")
	k.queue(k.bucket("open", ""), 1, 60, "waits_for = 'quiet_hours'")
	k.exec("INSERT INTO pauses (pause_id, scope, reason, paused_by) VALUES (gen_random_uuid(), 'everything', 'fire', 'Cy')")

	got := k.overview()

	if diff := cmp.Diff(map[string]int64{"paused": 2, "quiet_hours": 1}, reasons(got.Waiting)); diff != "" {
		t.Errorf("waiting (-want +got):\n%s", diff)
	}
	if len(got.Pauses) != 1 || got.Pauses[0].Scope != "everything" || got.OldestDue != 0 {
		t.Errorf("pauses = %+v and oldest due = %g s, want the one of everything, and none due", got.Pauses, got.OldestDue)
	}
}

func TestResumedActionsDoNotWaitForAPause(t *testing.T) {
	t.Parallel()
	k := fixture{t, dbtest.DB(t)}.tenant("resumed")
	k.queue(k.bucket("open", ""), 3, 3600, "waits_for = 'paused'")

	got := k.overview()

	if diff := cmp.Diff(map[string]int64{"turn": 3}, reasons(got.Waiting)); diff != "" || got.Due != 3 {
		t.Errorf("%d due, waiting (-want +got):\n%s", got.Due, diff)
	}
}

func TestThroughput(t *testing.T) {
	t.Parallel()
	k := fixture{t, dbtest.Tx(t)}.tenant("flow")
	bucket := k.bucket("open", "")
	tell := func(kind audit.Kind, ago string, tool string, statuses ...envelope.Status) {
		e := audit.Event{Tenant: k.id, Kind: kind, Actor: "worker/test"}
		for _, s := range statuses {
			e.Items = append(e.Items, audit.Item{Action: k.propose(bucket, tool, envelope.ApprovalAuto), Status: s})
		}
		k.as(postgres.Worker(), func(tx pgx.Tx) error { return audit.Write(t.Context(), tx, e) })
		k.exec("UPDATE events SET at = now() - $2::interval WHERE tenant_id = $1 AND at = now()", k.id.String(), ago)
	}
	tell(audit.Settled, "6 minutes", "send", envelope.StatusSent)
	tell(audit.Settled, "4 minutes", "send", envelope.StatusSent, envelope.StatusSent, envelope.StatusFailed)
	tell(audit.Killed, "3 minutes", "send", envelope.StatusSkipped)
	tell(audit.Settled, "30 seconds", "send", envelope.StatusSent)
	tell(audit.Settled, "10 seconds", "list", envelope.StatusPending, envelope.StatusPending)
	tell(audit.Proposed, "5 seconds", "list", envelope.StatusPending)

	got := k.overview().Throughput

	want := wire.OverviewThroughput{Covers: 300, Ended: []wire.OverviewEnded{
		{Tool: "mail:send", Status: "sent", LastMinute: 1, LastFiveMinutes: 3},
		{Tool: "mail:list", Status: "pending", LastMinute: 2, LastFiveMinutes: 2},
		{Tool: "mail:send", Status: "failed", LastFiveMinutes: 1},
		{Tool: "mail:send", Status: "skipped", LastFiveMinutes: 1},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("throughput (-want +got):\n%s", diff)
	}
}

func TestThroughputReportsItsWindow(t *testing.T) {
	t.Parallel()
	k := fixture{t, dbtest.Tx(t)}.tenant("flood")
	id := k.propose(k.bucket("open", ""), "send", envelope.ApprovalAuto)
	k.exec(`INSERT INTO events (tenant_id, kind, actor, at, items)
		SELECT $1, 'settled', 'worker/test', now() - make_interval(secs => 100 - i), (SELECT jsonb_agg(jsonb_build_object('action_id', $2::text, 'status', 'sent')) FROM generate_series(1, 500))
		FROM generate_series(1, 100) i`, k.id.String(), id.String())

	got := k.overview().Throughput

	if len(got.Ended) != 1 || got.Ended[0].LastFiveMinutes != 5000 || !about(got.Covers, 9) {
		t.Errorf("throughput = %+v, want 5000 envelopes of the last 9 s", got)
	}
}

func TestFleet(t *testing.T) {
	t.Parallel()
	f := fixture{t, dbtest.DB(t)}
	one, two := f.tenant("one"), f.tenant("two")
	one.everyReason()
	two.everyReason()
	for i := range 25 {
		two.queue(two.bucket(fmt.Sprintf("bucket.%02d", i), ""), 1, -30, "")
	}
	f.exec("INSERT INTO breakers (tenant_id, source_id, state, cause, open_until, worker) VALUES ($1, 'mail', 'half-open', 'failures', now(), 'w')", one.id.String())
	f.exec("INSERT INTO dead_letters (tenant_id, action_id, reason, attempt, created_at) VALUES ($1, $1, 'unknown', 1, now() - interval '1 hour')", two.id.String())
	f.exec("INSERT INTO retention_checks (tenant_id, checked_at, actions, events) VALUES ($1, now(), 5, 6), ($2, now(), 7, 0)", one.id.String(), two.id.String())
	f.exec("INSERT INTO events (tenant_id, kind, actor, at, items) VALUES ($1, 'settled', 'w', now() - interval '10 minutes', '[]')", one.id.String())
	f.exec("INSERT INTO db_logins (tenant_id, login_id, login) VALUES ($1, $1, 'one'), ($2, $2, 'two')", one.id.String(), two.id.String())
	f.exec(`INSERT INTO proposals (tenant_id, proposal_id, login_id, body, bytes, proposed_at, answered_at, problem) VALUES
		($1, gen_random_uuid(), $1, '{}', 2, now() - interval '3 minutes', NULL, NULL), ($2, gen_random_uuid(), $2, '{}', 2, now(), NULL, NULL),
		($2, gen_random_uuid(), $2, '{}', 2, now() - interval '1 hour', now(), '{}')`, one.id.String(), two.id.String())

	got := f.fleet()

	if got.Proposals != 2 || got.OldestProposal < 3*time.Minute || got.OldestProposal > 50*time.Minute {
		t.Errorf("%d proposals wait, the oldest for %s, want 2 and 3 minutes", got.Proposals, got.OldestProposal)
	}
	wantWaiting := map[string]int64{
		"turn": 8 + 25, "not_before": 4 + 2, "retry": 2, "quiet_hours": 4, "bucket": 10, "retry_after": 4, "paused": 4, "breaker_open": 2, "approval": 2, "held": 0, "login_lost": 0, "login_unavailable": 0,
	}
	if diff := cmp.Diff(wantWaiting, got.Waiting); diff != "" {
		t.Errorf("waiting (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int64{"everything": 0, "tenant": 0, "employee": 0, "source": 0, "bucket": 2, "tool": 0, "automation": 0}, got.Pauses); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int64{"refused": 0, "exhausted": 0, "unknown": 1}, got.DeadLetters); diff != "" {
		t.Errorf("dead letters (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int64{"actions": 12, "events": 6}, got.PastRetention); diff != "" {
		t.Errorf("past retention (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]overview.Breaker{{Tenant: one.name, OverviewBreaker: wire.OverviewBreaker{Source: "mail", State: "half-open", Cause: "failures", Openings: 1}}}, got.Breakers, cmpopts.IgnoreFields(wire.OverviewBreaker{}, "Since", "OpenUntil")); diff != "" {
		t.Errorf("breakers (-want +got):\n%s", diff)
	}
	if got.OldestDue < time.Minute || got.CheckpointLag < 10*time.Minute || got.OldestUnknown < time.Hour {
		t.Errorf("oldest due, uncovered, oldest unknown = %s, %s, %s", got.OldestDue, got.CheckpointLag, got.OldestUnknown)
	}
	limited, sum := 0, int64(0)
	for _, b := range got.Buckets {
		sum += b.Waiting
		if b.Limited {
			limited++
		}
	}
	rest := got.Buckets[len(got.Buckets)-1]
	if limited != 4 || len(got.Buckets) != 4+20+1 || rest.Name != "(others)" || rest.Waiting != 9 || sum != 33+6+2+4+10+4+4+2 {
		t.Errorf("%d buckets, %d of them limited, %d envelopes, the last of them %+v", len(got.Buckets), limited, sum, rest)
	}
	outbox := find(t, got.Tables, func(s overview.Table) bool { return s.Name == "outbox" })
	if len(got.Tables) != 8 || outbox.Bytes == 0 {
		t.Errorf("tables = %+v", got.Tables)
	}
}

func TestEmptyFleet(t *testing.T) {
	t.Parallel()

	got := fixture{t, dbtest.DB(t)}.fleet()

	if got.Due != 0 || got.Waiting["turn"] != 0 || len(got.Waiting) != 11 || len(got.Buckets) != 0 {
		t.Errorf("an empty fleet is %+v", got)
	}
}

// TestLongQueuesAreEstimated inserts more rows than are counted, in more pages
// than are read.
func TestLongQueuesAreEstimated(t *testing.T) {
	t.Parallel()
	f := fixture{t, dbtest.DB(t)}
	f.exec("ALTER TABLE outbox SET (autovacuum_enabled = off)")
	big, small := f.tenant("big"), f.tenant("small")
	big.fill(big.bucket("open", ""), 50_000)
	big.fill(big.bucket("spent", "rate_limit = 1, rate_seconds = 60, burst = 1, tat = now() + interval '60 seconds'"), 50_000)
	small.queue(small.bucket("open", ""), 3, -7200, "")
	f.exec("ANALYZE outbox")

	fleet, mine, theirs := f.fleet(), small.overview(), big.overview()

	near := func(what string, got int64) {
		t.Helper()
		if got < 38_000 || got > 62_000 { // five times the random error
			t.Errorf("%s = %d, want about 50,000", what, got)
		}
	}
	near("turn of the fleet", fleet.Waiting["turn"])
	near("bucket of the fleet", fleet.Waiting["bucket"])
	near("turn of the big one", reasons(theirs.Waiting)["turn"])
	if !theirs.Estimated || mine.Estimated || reasons(mine.Waiting)["turn"] != 3 {
		t.Errorf("estimated %t with %d rows, %t with 3", theirs.Estimated, theirs.Due, mine.Estimated)
	}
	if fleet.OldestDue < 2*time.Hour {
		t.Errorf("oldest due of the fleet = %s, want the small tenant's of two hours", fleet.OldestDue)
	}
}

// TestEmptyPagesAfterABurst has many pages and few rows.
func TestEmptyPagesAfterABurst(t *testing.T) {
	t.Parallel()
	f := fixture{t, dbtest.DB(t)}
	f.exec("ALTER TABLE outbox SET (autovacuum_enabled = off)")
	k := f.tenant("burst")
	bucket := k.bucket("open", "")
	k.fill(bucket, 60_000)
	f.exec("DELETE FROM outbox")
	k.queue(bucket, 4, -60, "")
	f.exec("ANALYZE outbox") // the statistics are up to date

	fleet, mine := f.fleet(), k.overview()

	if fleet.Waiting["turn"] != 4 || reasons(mine.Waiting)["turn"] != 4 || mine.Estimated {
		t.Errorf("the fleet has %d, the tenant %d, estimated %t; want 4", fleet.Waiting["turn"], reasons(mine.Waiting)["turn"], mine.Estimated)
	}
}
