package outbox_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/outbox/outboxtest"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// TestViewOfEveryState reads an envelope in every state.
func TestViewOfEveryState(t *testing.T) {
	t.Parallel()
	type want struct {
		status    envelope.Status
		approval  envelope.Approval
		attempts  int
		sent      bool // SentAt is set
		completed bool // CompletedAt is set
		scheduled bool // NextAttemptAt is set
		code      string
	}
	claimed := func(effect envelope.Effect, then func(fx fixture, it outbox.Item)) func(fx fixture) envelope.ActionID {
		return func(fx fixture) envelope.ActionID {
			fx.Queue(effect, 1)
			it := fx.Claim(1)[0]
			then(fx, it)
			return it.Action
		}
	}
	settled := func(s func(outbox.Item) outbox.Settlement) func(fx fixture) envelope.ActionID {
		return claimed(envelope.EffectKeyed, func(fx fixture, it outbox.Item) { fx.Settle(s(it)) })
	}
	proposed := func(approval envelope.Approval) func(fx fixture) envelope.ActionID {
		return func(fx fixture) envelope.ActionID {
			id := fx.Propose(fx.Bucket, envelope.EffectKeyed, approval, 1)[0]
			fx.Exec("UPDATE actions SET decided_at = now() WHERE action_id = $1 AND approval_state <> 'required'", id.String())
			return id
		}
	}
	returnToApproval := func(fx fixture, it outbox.Item) {
		fx.As(postgres.Worker(), func(tx pgx.Tx) error {
			_, err := outbox.ReturnToApproval(fx.T.Context(), tx, []outbox.ApprovalReturn{{Lease: it.Lease, ToolDigest: []byte{1}, Note: "changed", Needed: 1, Wait: time.Minute}})
			return err
		})
	}
	// replayedAndReturned failed once, was replayed, and then returned to approval.
	replayedAndReturned := func(approval envelope.Approval) func(fx fixture) envelope.ActionID {
		return func(fx fixture) envelope.ActionID {
			id := fx.EndAsDeadLetters(1, outbox.Refused)[0]
			if _, err := fx.Replay(false, id); err != nil {
				fx.T.Fatal(err)
			}
			returnToApproval(fx, fx.Claim(1)[0])
			fx.Exec("UPDATE actions SET approval_state = $2 WHERE action_id = $1", id.String(), string(approval))
			return id
		}
	}

	for name, test := range map[string]struct {
		arrange func(fx fixture) envelope.ActionID
		want    want
	}{
		"waits for its turn": {func(fx fixture) envelope.ActionID { return fx.Queue(envelope.EffectKeyed, 1)[0] },
			want{status: envelope.StatusPending, approval: envelope.ApprovalAuto, scheduled: true}},
		"waits for a person": {proposed(envelope.ApprovalRequired),
			want{status: envelope.StatusPending, approval: envelope.ApprovalRequired}},
		"denied": {proposed(envelope.ApprovalDenied),
			want{status: envelope.StatusSkipped, approval: envelope.ApprovalDenied, completed: true}},
		"expired": {proposed(envelope.ApprovalExpired),
			want{status: envelope.StatusSkipped, approval: envelope.ApprovalExpired, completed: true}},
		"granted": {func(fx fixture) envelope.ActionID {
			id := fx.Queue(envelope.EffectKeyed, 1)[0]
			fx.Exec("UPDATE actions SET approval_state = 'granted' WHERE action_id = $1", id.String())
			return id
		}, want{status: envelope.StatusPending, approval: envelope.ApprovalGranted, scheduled: true}},
		"leased of a class that is not marked": {claimed(envelope.EffectKeyed, func(fixture, outbox.Item) {}),
			want{status: envelope.StatusSending, approval: envelope.ApprovalAuto, scheduled: true}},
		"its lease ran out": {claimed(envelope.EffectKeyed, func(fx fixture, it outbox.Item) { fx.Expire(it.Action) }),
			want{status: envelope.StatusPending, approval: envelope.ApprovalAuto, scheduled: true}},
		"leased of class once": {claimed(envelope.EffectOnce, func(fixture, outbox.Item) {}),
			want{status: envelope.StatusPending, approval: envelope.ApprovalAuto, scheduled: true}},
		"started of class once": {claimed(envelope.EffectOnce, func(fx fixture, it outbox.Item) { fx.Start(it.Lease) }),
			want{status: envelope.StatusSending, approval: envelope.ApprovalAuto, scheduled: true}},
		"to be retried": {settled(func(it outbox.Item) outbox.Settlement { return outboxtest.Again(it, time.Minute) }),
			want{status: envelope.StatusPending, approval: envelope.ApprovalAuto, attempts: 1, scheduled: true, code: "unreachable"}},
		"sent": {settled(outboxtest.Sent),
			want{status: envelope.StatusSent, approval: envelope.ApprovalAuto, attempts: 1, sent: true, completed: true}},
		"there already": {settled(func(it outbox.Item) outbox.Settlement {
			s := outboxtest.Sent(it)
			s.Status = envelope.StatusConflict
			return s
		}), want{status: envelope.StatusConflict, approval: envelope.ApprovalAuto, attempts: 1, sent: true, completed: true}},
		"failed": {settled(outboxtest.Failed),
			want{status: envelope.StatusFailed, approval: envelope.ApprovalAuto, attempts: 1, completed: true, code: "rejected"}},
		"unknown": {settled(outbox.WorkerLost),
			want{status: envelope.StatusUnknown, approval: envelope.ApprovalAuto, attempts: 1, code: "worker_lost"}},
		"skipped": {settled(func(it outbox.Item) outbox.Settlement { return outbox.Skip(it, "deadline", "late") }),
			want{status: envelope.StatusSkipped, approval: envelope.ApprovalAuto, completed: true, code: "deadline"}},
		"returned to approval": {claimed(envelope.EffectKeyed, returnToApproval),
			want{status: envelope.StatusPending, approval: envelope.ApprovalRequired}},
		"returned to approval after a replay": {replayedAndReturned(envelope.ApprovalRequired),
			want{status: envelope.StatusPending, approval: envelope.ApprovalRequired, attempts: 1, code: "rejected"}},
		"denied after a replay": {replayedAndReturned(envelope.ApprovalDenied),
			want{status: envelope.StatusSkipped, approval: envelope.ApprovalDenied, attempts: 1, completed: true, code: "rejected"}},
		"replayed": {func(fx fixture) envelope.ActionID {
			id := fx.EndAsDeadLetters(1, outbox.Refused)[0]
			if _, err := fx.Replay(false, id); err != nil {
				fx.T.Fatal(err)
			}
			return id
		}, want{status: envelope.StatusPending, approval: envelope.ApprovalAuto, attempts: 1, scheduled: true, code: "rejected"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fx := newFixture(t)
			id := test.arrange(fx)

			v := fx.View(id)

			e := v.Envelope
			got := want{
				status: e.Result.Status, approval: e.Approval, attempts: e.Result.Attempts,
				sent: e.Timestamps.SentAt != nil, completed: e.Timestamps.CompletedAt != nil, scheduled: v.NextAttemptAt != nil,
			}
			if e.Result.Error != nil {
				got.code = e.Result.Error.Code
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("view (-want +got):\n%s", diff)
			}
			inSQL := envelope.Phase(outboxtest.One[string](fx.Fixture, "SELECT phase FROM envelopes WHERE action_id = $1", id.String()))
			if want := envelope.PhaseOf(e.Approval, e.Result.Status, got.code); v.Phase != want || inSQL != want || !want.Valid() {
				t.Errorf("phase = %q, in SQL %q, want %q", v.Phase, inSQL, want)
			}
			if diff := cmp.Diff([]envelope.ActionID{id}, fx.list(outbox.Filter{Status: test.want.status, Approval: test.want.approval, Most: 10})); diff != "" {
				t.Errorf("List by its status and approval (-want +got):\n%s", diff)
			}
		})
	}
}

func (fx fixture) list(f outbox.Filter) []envelope.ActionID {
	fx.T.Helper()
	var ids []envelope.ActionID
	fx.As(postgres.API(fx.Tenant), func(tx pgx.Tx) error {
		page, err := outbox.List(fx.T.Context(), tx, fx.Tenant, f)
		for _, v := range page.Items {
			ids = append(ids, v.Envelope.ActionID)
		}
		return err
	})
	return ids
}

func TestViewReturnsTheProposal(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	id := fx.Propose(fx.Bucket, envelope.EffectOnce, envelope.ApprovalRequired, 1)[0]
	fx.Exec(`UPDATE actions SET external_id = 'e1', employee_id = $1, session_id = 's1', automation_id = 'a1', composio_app = 'app',
		args = '{"a": 1}', risk = 'high', rate_bucket = 'default', not_before = '2030-01-01', must_run_before = '2031-01-01',
		decided_by = 'ada', decision_note = 'why' WHERE action_id = $2`, fx.Tenant.String(), id.String())

	v := fx.View(id)

	want := envelope.Envelope{
		Version: envelope.SchemaVersion, ActionID: id, ExternalID: "e1", TenantID: fx.Tenant, EmployeeID: envelope.EmployeeID(fx.Tenant),
		Type: envelope.TypeExec, Tool: envelope.Tool{Name: "tool", Source: "src", ComposioApp: "app"}, Args: []byte(`{"a": 1}`),
		Risk: envelope.RiskHigh, Approval: envelope.ApprovalRequired, SessionID: "s1", AutomationID: "a1",
		Constraints: envelope.Constraints{
			RateBucket: "default", NotBefore: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), MustRunBefore: time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC),
		},
		Result:     envelope.Result{Status: envelope.StatusPending},
		Timestamps: envelope.Timestamps{CreatedAt: v.Envelope.Timestamps.CreatedAt},
	}
	if diff := cmp.Diff(want, v.Envelope); diff != "" {
		t.Errorf("envelope (-want +got):\n%s", diff)
	}
	if v.Effect != envelope.EffectOnce || v.Mode != envelope.ModeAllow || v.ModeSource != "test" || string(v.Trace) != "[]" || v.DecidedBy != "ada" || v.DecisionNote != "why" {
		t.Errorf("view = %+v", v)
	}
}

func TestListNarrows(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	ids := fx.Propose(fx.Bucket, envelope.EffectKeyed, envelope.ApprovalRequired, 4)
	fx.Exec("UPDATE actions SET session_id = 's', external_id = 'x' WHERE action_id = $1", ids[0].String())
	fx.Exec("UPDATE actions SET tool_name = 'other' WHERE action_id = $1", ids[1].String())
	fx.Exec("UPDATE actions SET source_id = 'elsewhere', risk = 'high', employee_id = $1, automation_id = 'auto', workflow_id = $1 WHERE action_id = $2", fx.Tenant.String(), ids[2].String())
	fx.Exec("UPDATE actions SET approval_state = 'denied', created_at = '2030-01-02' WHERE action_id = $1", ids[3].String())
	due := fx.Queue(envelope.EffectKeyed, 2)
	fx.Exec("UPDATE outbox SET lease_until = now() + interval '1 minute' WHERE action_id = $1", due[1].String())
	later := time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC)

	for name, test := range map[string]struct {
		filter outbox.Filter
		want   []envelope.ActionID
	}{
		"by session":     {outbox.Filter{Session: "s"}, ids[:1]},
		"by external id": {outbox.Filter{ExternalID: "x"}, ids[:1]},
		"by tool":        {outbox.Filter{Tool: "other"}, ids[1:2]},
		"by source":      {outbox.Filter{Source: "elsewhere"}, ids[2:3]},
		"by both":        {outbox.Filter{Session: "s", Tool: "other"}, nil},
		"by nothing":     {outbox.Filter{}, []envelope.ActionID{due[1], due[0], ids[3], ids[2], ids[1], ids[0]}},
		"the oldest":     {outbox.Filter{Oldest: true}, slices.Concat(ids, due)},
		"oldest after":   {outbox.Filter{Oldest: true, After: ids[2], Source: "src"}, slices.Concat(ids[3:], due)},
		"by risk":        {outbox.Filter{Risks: []envelope.Risk{envelope.RiskHigh, envelope.RiskMedium}}, ids[2:3]},
		"by employee":    {outbox.Filter{Employee: envelope.EmployeeID(fx.Tenant)}, ids[2:3]},
		"by automation":  {outbox.Filter{Automation: "auto"}, ids[2:3]},
		"by workflow":    {outbox.Filter{Workflow: uuid.UUID(fx.Tenant)}, ids[2:3]},
		"of a workflow":  {outbox.Filter{Workflow: uuid.UUID(fx.Tenant), Phases: []envelope.Phase{envelope.PhaseDenied}}, nil},
		"pending":        {outbox.Filter{Phases: []envelope.Phase{envelope.PhasePending}}, []envelope.ActionID{ids[2], ids[1], ids[0]}},
		"approved":       {outbox.Filter{Phases: []envelope.Phase{envelope.PhaseApproved}}, due[:1]},
		"on their way":   {outbox.Filter{Phases: []envelope.Phase{envelope.PhaseApproved, envelope.PhaseExecuting}, Oldest: true}, due},
		"in two phases":  {outbox.Filter{Phases: []envelope.Phase{envelope.PhaseDenied, envelope.PhaseExecuting}}, []envelope.ActionID{due[1], ids[3]}},
		"since":          {outbox.Filter{Since: later}, ids[3:4]},
		"until":          {outbox.Filter{Until: later, Oldest: true}, slices.Concat(ids[:3], due)},
	} {
		test.filter.Most = 10
		if diff := cmp.Diff(outboxtest.Texts(test.want), outboxtest.Texts(fx.list(test.filter))); diff != "" {
			t.Errorf("List %s (-want +got):\n%s", name, diff)
		}
	}
}

// TestListReadsABoundedNumberOfRows has a page of a filter that matches one of very
// many end before that one, and the next page find it.
func TestListReadsABoundedNumberOfRows(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	rare := fx.Propose(fx.Bucket, envelope.EffectKeyed, envelope.ApprovalAuto, 1)[0]
	fx.Exec("UPDATE actions SET session_id = 'rare' WHERE action_id = $1", rare.String())
	fx.Propose(fx.Bucket, envelope.EffectKeyed, envelope.ApprovalAuto, 10_005)
	page := func(f outbox.Filter) (p outbox.Page) {
		fx.As(postgres.API(fx.Tenant), func(tx pgx.Tx) (err error) {
			p, err = outbox.List(fx.T.Context(), tx, fx.Tenant, f)
			return err
		})
		return p
	}

	first := page(outbox.Filter{Session: "rare", Most: 5})
	if len(first.Items) != 0 || first.Next == nil {
		t.Fatalf("the first page has %d, and the next is %v; want none, and one more page", len(first.Items), first.Next)
	}
	second := page(outbox.Filter{Session: "rare", Most: 5, After: *first.Next})

	if len(second.Items) != 1 || second.Items[0].Envelope.ActionID != rare || second.Next != nil {
		t.Errorf("the second page = %d with next %v, want the one, and the end", len(second.Items), second.Next)
	}
	whole := page(outbox.Filter{Most: 5})
	if len(whole.Items) != 5 || whole.Next == nil || *whole.Next != whole.Items[4].Envelope.ActionID {
		t.Errorf("a page without a filter has %d and next %v", len(whole.Items), whole.Next)
	}
}

func TestPagesAreStableDuringInserts(t *testing.T) {
	t.Parallel()
	const before, page = 60, 7
	fx := newSharedFixture(t)
	want := fx.Propose(fx.Bucket, envelope.EffectKeyed, envelope.ApprovalRequired, before)
	slices.Reverse(want)
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 20 {
			fx.Propose(fx.Bucket, envelope.EffectKeyed, envelope.ApprovalRequired, 3)
		}
	})

	var got []envelope.ActionID
	at := want[0]
	got = append(got, at)
	for {
		ids := fx.list(outbox.Filter{After: at, Most: page})
		if len(ids) == 0 {
			break
		}
		got, at = append(got, ids...), ids[len(ids)-1]
	}
	wg.Wait()

	if diff := cmp.Diff(outboxtest.Texts(want), outboxtest.Texts(got)); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
}

func TestSQLComputesThePhaseOfEveryPair(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	for _, a := range []envelope.Approval{
		envelope.ApprovalAuto, envelope.ApprovalRequired, envelope.ApprovalGranted, envelope.ApprovalDenied, envelope.ApprovalExpired,
	} {
		for _, s := range []envelope.Status{
			envelope.StatusPending, envelope.StatusSending, envelope.StatusSent, envelope.StatusConflict, envelope.StatusFailed,
			envelope.StatusSkipped, envelope.StatusUnknown,
		} {
			for _, code := range []string{"", envelope.CodeUndone, "deadline"} {
				got := outboxtest.One[string](fx.Fixture, "SELECT action_phase($1, $2, nullif($3, ''))", string(a), string(s), code)
				if want := envelope.PhaseOf(a, s, code); envelope.Phase(got) != want {
					t.Errorf("action_phase(%s, %s, %q) = %q, want %q", a, s, code, got, want)
				}
			}
		}
	}
}

// TestReadingByIDTouchesNoOtherAction reads one action of many with the plan that
// single reads have, and counts the rows that PostgreSQL fetched.
func TestReadingByIDTouchesNoOtherAction(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	id := fx.Queue(envelope.EffectKeyed, 300)[0]
	var before, after int64

	fx.As(postgres.API(fx.Tenant).Planned(), func(tx pgx.Tx) error {
		fetched := func() (n int64) {
			row := tx.QueryRow(t.Context(), `SELECT coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)
				FROM pg_stat_xact_user_tables WHERE schemaname = 'countersign_data' AND relname = 'actions'`)
			if err := row.Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		before = fetched()
		views, err := outbox.Get(t.Context(), tx, fx.Tenant, id)
		if len(views) != 1 {
			t.Errorf("read %d actions, want 1", len(views))
		}
		after = fetched()
		return err
	})

	if after-before > 5 {
		t.Errorf("reading one action fetched %d rows of actions", after-before)
	}
}

// TestViewReadsItsOwnBucket holds that the view looks up an action's bucket by its
// key, and does not read the tenant's other buckets.
func TestViewReadsItsOwnBucket(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	id := fx.Queue(envelope.EffectKeyed, 1)[0]
	var plan []string

	fx.As(postgres.API(fx.Tenant).Planned(), func(tx pgx.Tx) error {
		rows, err := tx.Query(t.Context(), "EXPLAIN SELECT v.waits_for FROM envelopes v WHERE v.tenant_id = $1 AND v.action_id = $2 LIMIT 1", fx.Tenant.String(), id.String())
		if err != nil {
			return err
		}
		plan, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})

	if text := strings.Join(plan, "\n"); !strings.Contains(text, "using buckets_pkey on buckets") {
		t.Errorf("the bucket is not looked up by its key:\n%s", text)
	}
}
