package intake_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// sessions sets the limits of sessions.
func (d fixture) sessions(pending, minute int) {
	d.t.Helper()
	d.as(func(ctx context.Context, tx pgx.Tx) error {
		return limits.PutTenant(ctx, tx, d.tenant, limits.Tenant{Timezone: "UTC", SessionPending: &pending, SessionMinute: &minute}, "ada")
	})
}

// propose proposes in a session.
func (d fixture) propose(session string, proposals ...*envelope.Proposal) []intake.Answer {
	d.t.Helper()
	by := d.by()
	by.Session = session
	answers, err := d.in.Accept(d.t.Context(), by, proposals)
	if err != nil {
		d.t.Fatal(err)
	}
	return answers
}

// called is call with a name.
func called(external, tool string) *envelope.Proposal {
	p := call(tool, `{}`)
	p.ExternalID = external
	return p
}

// became returns the result of each proposal, in one word.
func became(answers []intake.Answer) []string {
	words := make([]string, len(answers))
	for i, a := range answers {
		switch {
		case errors.Is(a.Err, fault.Limited):
			words[i] = "limited"
		case a.Err != nil:
			words[i] = "refused"
		case a.Known:
			words[i] = "known"
		default:
			words[i] = string(a.Approval)
		}
	}
	return words
}

// after returns the Retry-After of the first proposal refused by a limit.
func after(answers []intake.Answer) time.Duration {
	for _, a := range answers {
		if e, ok := errors.AsType[*fault.Error](a.Err); ok && e.Kind == fault.Limited {
			return e.After
		}
	}
	return 0
}

func (d fixture) wants(got []intake.Answer, want ...string) {
	d.t.Helper()
	if diff := cmp.Diff(want, became(got)); diff != "" {
		d.t.Errorf("became (-want +got):\n%s", diff)
	}
}

// notes are proposals of a tool that is allowed.
func notes(n int) []*envelope.Proposal {
	all := make([]*envelope.Proposal, n)
	for i := range all {
		all[i] = call("note", `{}`)
	}
	return all
}

func TestSessionLimitPerMinute(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.sessions(10, 3)

	d.wants(d.propose("s", notes(2)...), "auto", "auto")
	over := d.propose("s", notes(3)...)
	d.wants(over, "auto", "limited", "limited")
	if wait := after(over); wait <= 50*time.Second || wait > time.Minute {
		t.Errorf("told to wait %v, want what is left of the minute", wait)
	}
	d.wants(d.propose("other", notes(1)...), "auto")
	d.wants(d.propose("", notes(4)...), "auto", "auto", "auto", "auto")
	d.exec("UPDATE session_usage SET window_from = window_from - interval '61 seconds' WHERE tenant_id = $1", d.tenant.String())
	d.wants(d.propose("s", notes(4)...), "auto", "auto", "auto", "limited")
	if n := d.count("SELECT used FROM session_usage WHERE tenant_id = $1 AND session_id = 's'", d.tenant.String()); n != 3 {
		t.Errorf("%d are counted, want the 3 that were accepted", n)
	}
}

func TestSessionLimitOfPendingActions(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.mode("first:danger", envelope.ModeRequireApproval)
	d.sessions(2, 100)
	danger := func() *envelope.Proposal { return call("danger", `{}`) }

	first := d.propose("s", danger(), danger(), danger(), call("note", `{}`))
	d.wants(first, "required", "required", "limited", "auto")
	if wait := after(first); wait != time.Hour {
		t.Errorf("told to wait %v, want as long as approvals wait", wait)
	}
	d.exec("UPDATE actions SET approval_expires_at = now() + interval '20 minutes' WHERE action_id = $1", first[1].Action.String())
	second := d.propose("s", danger())
	d.wants(second, "limited")
	if wait := after(second); wait <= 19*time.Minute || wait > 20*time.Minute {
		t.Errorf("told to wait %v, want until the first of them expires", wait)
	}
	d.exec("UPDATE actions SET approval_state = 'granted' WHERE action_id = $1", first[0].Action.String())
	d.wants(d.propose("s", danger(), danger()), "required", "limited")
	d.exec("UPDATE actions SET approval_expires_at = now() - interval '1 second' WHERE action_id = $1", first[1].Action.String())
	d.wants(d.propose("s", danger()), "required")
	d.wants(d.propose("other", danger()), "required")
}

func TestPendingActionsAreCountedOnlyForPendingProposals(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.mode("first:danger", envelope.ModeRequireApproval)
	d.sessions(1, 3)

	d.wants(d.propose("s", call("danger", `{}`), call("danger", `{}`), call("danger", `{}`)), "required", "limited", "limited")
	d.wants(d.propose("s", notes(3)...), "auto", "auto", "limited")
}

func TestRetryAfterOfALoweredLimit(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.mode("first:danger", envelope.ModeRequireApproval)
	d.sessions(0, 0)
	var all []*envelope.Proposal
	for range 3 {
		all = append(all, call("danger", `{}`))
	}
	for i, a := range d.propose("s", all...) {
		d.exec("UPDATE actions SET approval_expires_at = now() + make_interval(mins => $2) WHERE action_id = $1", a.Action.String(), 10*(i+1))
	}
	d.sessions(2, 0)

	got := d.propose("s", call("danger", `{}`))

	d.wants(got, "limited")
	if wait := after(got); wait <= 19*time.Minute || wait > 20*time.Minute {
		t.Errorf("told to wait %v, want until only one is left, in 20 minutes", wait)
	}
}

func TestASessionWithoutLimitsCostsNothing(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.mode("first:danger", envelope.ModeRequireApproval)
	d.sessions(0, 0)

	for range 3 {
		for _, a := range d.propose("s", append(notes(50), call("danger", `{}`), call("danger", `{}`), call("danger", `{}`), call("danger", `{}`))...) {
			if a.Err != nil {
				t.Fatalf("Accept = %v, want no limit", a.Err)
			}
		}
	}

	if n := d.count("SELECT count(1) FROM session_usage WHERE tenant_id = $1", d.tenant.String()); n != 0 {
		t.Errorf("session_usage has %d rows, want none", n)
	}
}

func TestDefaultLimitsAreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.mode("first:danger", envelope.ModeRequireApproval)

	var pending, minute int
	for range 12 {
		if d.propose("s", call("danger", `{}`))[0].Err == nil {
			pending++
		}
	}
	for _, a := range d.propose("other", notes(70)...) {
		if a.Err == nil {
			minute++
		}
	}

	if pending != 10 || minute != 60 {
		t.Errorf("%d waited and %d went through, want 10 and 60", pending, minute)
	}
}

func TestARepeatIsNeverRefusedForALimit(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.sessions(10, 2)
	d.wants(d.propose("s", called("a", "note"), called("b", "note")), "auto", "auto")

	d.wants(d.propose("s", called("a", "note")), "known")
	d.wants(d.propose("s", called("c", "note"), called("b", "note"), called("c", "note")), "limited", "known", "limited")
	d.exec("UPDATE session_usage SET used = 1 WHERE tenant_id = $1", d.tenant.String())
	d.wants(d.propose("s", called("a", "note"), called("c", "note"), called("b", "note"), called("c", "note")), "known", "auto", "known", "known")
}

func TestRefusedProposalsAreNotCounted(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.sessions(10, 2)

	d.wants(d.propose("s", call("send", `{}`), call("nothing", `{}`), call("note", `{}`), call("note", `{}`)), "refused", "refused", "auto", "auto")
	d.wants(d.propose("s", call("note", `{}`), call("send", `{}`)), "limited", "refused")
}

func TestDeniedProposalsAreCounted(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.mode("first:danger", envelope.ModeDeny)
	d.sessions(10, 1)

	d.wants(d.propose("s", call("danger", `{}`)), "denied")
	d.wants(d.propose("s", call("danger", `{}`)), "limited")
}

func TestIdleSessionsArePruned(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.propose("old", notes(1)...)
	d.exec("UPDATE session_usage SET window_from = window_from - interval '2 hours' WHERE tenant_id = $1", d.tenant.String())
	d.propose("new", notes(1)...)

	n, err := intake.PruneSessions(t.Context(), d.db)

	if err != nil || n != 1 {
		t.Errorf("PruneSessions = %d, %v, want 1 and no error", n, err)
	}
	if left := d.count("SELECT count(1) FROM session_usage WHERE tenant_id = $1", d.tenant.String()); left != 1 {
		t.Errorf("%d sessions are left, want the one of now", left)
	}
}

// replicas are intakes that share nothing but the database.
func (d fixture) replicas(t *testing.T, n int) []*intake.Intake {
	t.Helper()
	pool, ok := d.db.(*pgxpool.Pool)
	if !ok {
		t.Fatalf("the database is a %T, want a pool", d.db)
	}
	all := make([]*intake.Intake, n)
	for i := range all {
		own, err := pgxpool.New(t.Context(), pool.Config().ConnString())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(own.Close)
		all[i] = intake.New(own, settings.NewCache(), intake.Config{ApprovalWait: time.Hour})
	}
	return all
}

func TestReplicasShareTheLimitsOfASession(t *testing.T) {
	t.Parallel()
	const pending, minute = 7, 40
	d := fixtureIn(t, dbtest.DB(t))
	d.mode("first:danger", envelope.ModeRequireApproval)
	d.sessions(pending, minute)
	by := d.by()
	by.Session = "s"
	var waits, goes atomic.Int32
	var wg sync.WaitGroup

	for i, in := range d.replicas(t, 4) {
		for j := range 2 {
			wg.Go(func() {
				chance := rand.New(rand.NewPCG(uint64(i), uint64(j)))
				for k := range 12 {
					var batch []*envelope.Proposal
					for n := range 1 + chance.IntN(4) {
						batch = append(batch, called(fmt.Sprintf("%d-%d-%d-%d", i, j, k, n), []string{"note", "danger"}[chance.IntN(2)]))
					}
					answers, err := in.Accept(t.Context(), by, batch)
					if err != nil {
						t.Error(err)
						return
					}
					for _, a := range answers {
						switch {
						case a.Err != nil && !errors.Is(a.Err, fault.Limited):
							t.Error(a.Err)
						case a.Approval == envelope.ApprovalRequired:
							waits.Add(1)
						case a.Approval == envelope.ApprovalAuto:
							goes.Add(1)
						}
					}
				}
			})
		}
	}
	wg.Wait()

	if waits.Load() != pending || waits.Load()+goes.Load() != minute {
		t.Errorf("%d wait and %d go, want %d to wait and %d in all", waits.Load(), goes.Load(), pending, minute)
	}
	if n := d.count("SELECT count(1) FROM actions WHERE tenant_id = $1", d.tenant.String()); n != minute {
		t.Errorf("%d envelopes are stored, want %d", n, minute)
	}
}

func TestCapacityFreedByADecisionIsUsedOnce(t *testing.T) {
	t.Parallel()
	const pending, rounds = 3, 25
	d := fixtureIn(t, dbtest.DB(t))
	d.mode("first:danger", envelope.ModeRequireApproval)
	d.sessions(pending, 0)
	by := d.by()
	by.Session = "s"
	replicas := d.replicas(t, 4)
	const waiting = "SELECT count(1) FROM actions WHERE tenant_id = $1 AND approval_state = 'required'"

	for round := range rounds {
		accepted := make(chan envelope.ActionID, len(replicas))
		var wg sync.WaitGroup
		for i, in := range replicas {
			wg.Go(func() {
				answers, err := in.Accept(t.Context(), by, []*envelope.Proposal{called(strconv.Itoa(round)+"-"+strconv.Itoa(i), "danger")})
				if err != nil {
					t.Error(err)
					return
				}
				if answers[0].Err == nil {
					accepted <- answers[0].Action
				}
			})
		}
		wg.Wait()
		close(accepted)

		// Full again each time, by exactly as many as there was room for.
		if n := d.count(waiting, d.tenant.String()); n != pending {
			t.Fatalf("round %d: %d wait, want %d", round, n, pending)
		}
		d.exec(`UPDATE actions SET approval_state = 'denied' WHERE action_id IN (
			SELECT action_id FROM actions WHERE tenant_id = $1 AND approval_state = 'required' LIMIT $2)`, d.tenant.String(), 1+round%pending)
	}
}
