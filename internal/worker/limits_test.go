package worker_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/preflight"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/quiethours"
)

// proposal is one of the tool act.once, with a test's additions.
func proposal(with ...func(p *envelope.Proposal)) *envelope.Proposal {
	p := &envelope.Proposal{Type: envelope.TypeExec, Tool: envelope.Tool{Name: toolOnce, Source: "fake"}, Args: json.RawMessage(`{}`)}
	for _, w := range with {
		w(p)
	}
	return p
}

func by(id envelope.EmployeeID) func(p *envelope.Proposal) {
	return func(p *envelope.Proposal) { p.EmployeeID = id }
}

func in(bucket string) func(p *envelope.Proposal) {
	return func(p *envelope.Proposal) { p.Constraints.RateBucket = bucket }
}

func to(recipient string) func(p *envelope.Proposal) {
	return func(p *envelope.Proposal) { p.Args = json.RawMessage(`{"to":"` + recipient + `"}`) }
}

func urgent(p *envelope.Proposal) { p.Constraints.Urgent = true }

func before(at time.Time) func(p *envelope.Proposal) {
	return func(p *envelope.Proposal) { p.Constraints.MustRunBefore = at }
}

// propose submits proposals and returns their ids.
func (y *fixture) propose(proposals ...*envelope.Proposal) []envelope.ActionID {
	y.t.Helper()
	answers, err := y.in.Accept(y.t.Context(), intake.Submitter{Tenant: y.tenant, Name: "agent", Names: identity.EveryName()}, proposals)
	if err != nil {
		y.t.Fatal(err)
	}
	ids := make([]envelope.ActionID, len(answers))
	for i, a := range answers {
		if a.Err != nil {
			y.t.Fatal(a.Err)
		}
		ids[i] = a.Action
	}
	return ids
}

func newEmployee() envelope.EmployeeID { return envelope.EmployeeID(uuid.Must(uuid.NewV7())) }

func (y *fixture) employ(e limits.Employee) {
	y.t.Helper()
	y.configure(func(ctx context.Context, tx pgx.Tx) error { return limits.PutEmployee(ctx, tx, y.tenant, e, "ada") })
}

func (y *fixture) bucket(b limits.Bucket) {
	y.t.Helper()
	y.configure(func(ctx context.Context, tx pgx.Tx) error { return limits.PutBucket(ctx, tx, y.tenant, b, "ada") })
}

// recipients are the paths of act.once's recipients.
func (y *fixture) recipients() {
	y.t.Helper()
	y.configure(func(ctx context.Context, tx pgx.Tx) error {
		return limits.PutToolRule(ctx, tx, y.tenant, limits.ToolRule{Source: "fake", Name: toolOnce, Recipients: &[]string{"/to"}}, "ada")
	})
}

// quiet makes it quiet today and tomorrow. It returns the end of that.
func (y *fixture) quiet(scope limits.QuietScope, subject string) (end time.Time) {
	y.t.Helper()
	now := time.Now().UTC()
	day := func(at time.Time) string { return strings.ToLower(at.Weekday().String()[:3]) }
	h := limits.QuietHours{Scope: scope, Subject: subject, Hours: quiethours.Hours{
		Timezone: "UTC", Windows: []quiethours.Window{{Days: []string{day(now), day(now.AddDate(0, 0, 1))}, From: "00:00", Until: "24:00"}}, Spread: new(envelope.Duration(10 * time.Minute)),
	}}
	y.configure(func(ctx context.Context, tx pgx.Tx) error { return limits.PutQuietHours(ctx, tx, y.tenant, h, "ada") })
	return now.Truncate(24 * time.Hour).Add(48 * time.Hour)
}

// settled waits until every envelope has ended, or waits for something that
// the worker itself has found.
func (y *fixture) settled() {
	y.t.Helper()
	y.until("SELECT NOT EXISTS (SELECT FROM outbox WHERE waits_for IS NULL OR lease_until > now())")
}

// code is the word with which an envelope ended.
func (y *fixture) code(id envelope.ActionID) string {
	y.t.Helper()
	if e := y.view(id).Envelope.Result.Error; e != nil {
		return e.Code
	}
	return ""
}

func TestQuietHoursAreWaitedFor(t *testing.T) {
	t.Parallel()
	employee := newEmployee()
	for name, test := range map[string]struct {
		scope   limits.QuietScope
		subject string
		meant   func(p *envelope.Proposal)
	}{
		"of the tenant":    {limits.QuietTenant, "", func(*envelope.Proposal) {}},
		"of an employee":   {limits.QuietEmployee, employee.String(), by(employee)},
		"of a bucket":      {limits.QuietBucket, "slow", in("slow")},
		"of a recipient":   {limits.QuietRecipient, "email:ana@example.org", to("Ana@Example.org")},
		"of a whole house": {limits.QuietRecipient, "domain:example.org", to("ana@mail.example.org")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newFixture(t)
			y.recipients()
			y.bucket(limits.Bucket{Name: "slow"})
			end := y.quiet(test.scope, test.subject)
			quiet := y.propose(proposal(test.meant), proposal(test.meant), proposal(test.meant))
			other := y.propose(proposal(by(newEmployee()), to("bo@example.net")))[0]

			y.run(y.pipeline(y.db, y.src, config("w1")))
			y.settled()

			spread := make(map[time.Time]bool)
			for _, id := range quiet {
				v := y.view(id)
				if v.WaitsFor != preflight.CodeQuietHours || v.WaitsUntil.Before(end) || v.WaitsUntil.After(end.Add(11*time.Minute)) || len(y.history(id)) != 0 {
					t.Errorf("it waits for %q until %s with the attempts %q, want quiet_hours until %s or up to ten minutes later", v.WaitsFor, v.WaitsUntil, y.history(id), end)
				}
				spread[v.WaitsUntil] = true
			}
			if len(spread) == 1 {
				t.Errorf("all of them are to be sent at %v", end)
			}
			if got := y.view(other).Envelope.Result.Status; (got == envelope.StatusSent) == (test.scope == limits.QuietTenant) {
				t.Errorf("one that is not meant is %s", got)
			}
		})
	}
}

func TestQuietHoursAndTheDeadline(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	end := y.quiet(limits.QuietTenant, "")
	within, atEnd, after := y.propose(proposal(before(end.Add(-time.Hour))))[0], y.propose(proposal(before(end)))[0], y.propose(proposal(before(end.Add(time.Second))))[0]

	y.run(y.pipeline(y.db, y.src, config("w1")))
	y.settled()

	for _, id := range []envelope.ActionID{within, atEnd} {
		if diff := cmp.Diff([]string{"0 skipped quiet_hours"}, y.history(id)); diff != "" {
			t.Errorf("attempts of one that must run before the end (-want +got):\n%s", diff)
		}
		if e := y.view(id).Envelope.Result.Error; e == nil || !strings.Contains(e.Message, "must_run_before") {
			t.Errorf("it says %+v, want that its deadline lies within", e)
		}
	}
	// The spread would carry it past its deadline.
	if v := y.view(after); v.WaitsFor != preflight.CodeQuietHours || v.WaitsUntil.Before(end) || !v.WaitsUntil.Before(end.Add(time.Second)) {
		t.Errorf("one that may run a second longer waits for %q until %s, want until %s", v.WaitsFor, v.WaitsUntil, end)
	}
}

func TestUrgentGoesOutInQuietHoursOnlyWithTheScope(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	trusted, other := newEmployee(), newEmployee()
	y.employ(limits.Employee{ID: trusted, Trust: policy.TrustHigh, Scopes: []string{"quiet_hours:override"}})
	y.employ(limits.Employee{ID: other, Trust: policy.TrustHigh, Scopes: []string{"contacts:*"}})
	y.quiet(limits.QuietTenant, "")
	ids := y.propose(proposal(by(trusted), urgent), proposal(by(trusted)), proposal(by(other), urgent), proposal(urgent))

	y.run(y.pipeline(y.db, y.src, config("w1")))
	y.settled()

	for i, want := range []envelope.Status{envelope.StatusSent, envelope.StatusPending, envelope.StatusPending, envelope.StatusPending} {
		if got := y.view(ids[i]).Envelope.Result.Status; got != want {
			t.Errorf("envelope %d is %s, want %s", i, got, want)
		}
	}
}

func (y *fixture) list(values ...string) {
	y.t.Helper()
	var entries []contact.Entry
	for _, v := range values {
		entries = append(entries, contact.Entry{Value: v, Reason: "asked not to be"})
	}
	y.configure(func(ctx context.Context, tx pgx.Tx) error {
		_, err := contact.PutEntries(ctx, tx, y.tenant, entries, "ada")
		return err
	})
}

func TestDoNotContactCountsUntilTheCall(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	y.recipients()
	ids := y.propose(proposal(to("ana@example.org")), proposal(to("bo@sub.example.net")), proposal(to("cy@example.com")), proposal(to("dee@example.edu")))
	y.list("Ana@Example.org", "example.net", "dee@example.edu")
	y.configure(func(ctx context.Context, tx pgx.Tx) error {
		_, err := contact.DeleteEntries(ctx, tx, y.tenant, []contact.Entry{{Value: "dee@example.edu"}}, "asked again", "ada")
		return err
	})

	y.work()

	for i, want := range []string{"0 skipped do_not_contact", "0 skipped do_not_contact", "1 sent", "1 sent"} {
		if diff := cmp.Diff([]string{want}, y.history(ids[i])); diff != "" {
			t.Errorf("attempts of envelope %d (-want +got):\n%s", i, diff)
		}
	}
	if e := y.view(ids[0]).Envelope.Result.Error; e == nil || !strings.Contains(e.Message, "asked not to be") || strings.Contains(e.Message, "ana") {
		t.Errorf("it says %+v, want why and not whom", e)
	}
}

func TestAnEntryThatExpiredDoesNotCount(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	y.recipients()
	y.list("ana@example.org", "bo@example.org")
	ids := y.propose(proposal(to("cy@example.org")))
	y.exec("UPDATE actions SET args = '{\"to\":\"ana@example.org\"}'")
	y.exec("UPDATE do_not_contact SET expires_at = now() - interval '1 second' WHERE value LIKE 'ana%'")

	y.work()

	if diff := cmp.Diff([]string{"1 sent"}, y.history(ids[0])); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
}

// TestEmployeesAreCheckedAtTheCall lowers the trust or the scopes of an
// employee whose envelopes are waiting.
func TestEmployeesAreCheckedAtTheCall(t *testing.T) {
	t.Parallel()
	employee := newEmployee()
	needs := func(y *fixture, scopes ...string) {
		y.configure(func(ctx context.Context, tx pgx.Tx) error {
			return limits.PutToolRule(ctx, tx, y.tenant, limits.ToolRule{Source: "fake", Name: toolOnce, Scopes: scopes}, "ada")
		})
	}
	employ := func(y *fixture, trust policy.Trust, scopes ...string) {
		y.employ(limits.Employee{ID: employee, Trust: trust, Scopes: scopes})
	}
	for name, test := range map[string]struct {
		lower func(y *fixture)
		phase envelope.Phase
		waits string
		code  string
	}{
		"trust is lowered":          {func(y *fixture) { employ(y, policy.TrustNone, "contacts:*") }, envelope.PhasePending, "approval", ""},
		"a scope is taken":          {func(y *fixture) { employ(y, policy.TrustHigh, "notes:*") }, envelope.PhaseSkipped, "", "policy_denied"},
		"the tool needs another":    {func(y *fixture) { needs(y, "contacts:write", "money:spend") }, envelope.PhaseSkipped, "", "policy_denied"},
		"everyone else is lowered":  {func(y *fixture) { y.employ(limits.Employee{Trust: policy.TrustNone}) }, envelope.PhaseCompleted, "", ""},
		"more than needed is taken": {func(y *fixture) { employ(y, policy.TrustHigh, "contacts:write") }, envelope.PhaseCompleted, "", ""},
		"the employee is taken away": {func(y *fixture) {
			y.employ(limits.Employee{Trust: policy.TrustNone})
			y.configure(func(ctx context.Context, tx pgx.Tx) error {
				return limits.DeleteEmployee(ctx, tx, y.tenant, employee, "ada")
			})
		}, envelope.PhaseSkipped, "", "policy_denied"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newFixture(t)
			needs(y, "contacts:write")
			employ(y, policy.TrustHigh, "contacts:*")
			id := y.propose(proposal(by(employee)))[0]
			test.lower(y)

			y.work()

			v := y.view(id)
			if v.Phase != test.phase || v.WaitsFor != test.waits || y.code(id) != test.code {
				t.Errorf("it is %s, waits for %q and ended with %q; want %s, %q and %q", v.Phase, v.WaitsFor, y.code(id), test.phase, test.waits, test.code)
			}
			if calls := len(y.src.Calls()); (calls == 1) != (test.phase == envelope.PhaseCompleted) {
				t.Errorf("%d calls were made", calls)
			}
		})
	}
}

// TestApprovalOverridesLowerTrustButNotAMissingScope lowers
// both after a person has granted an envelope.
func TestApprovalOverridesLowerTrustButNotAMissingScope(t *testing.T) {
	t.Parallel()
	employee := newEmployee()
	for scope, want := range map[string]envelope.Status{"contacts:*": envelope.StatusSent, "notes:*": envelope.StatusSkipped} {
		y := newFixture(t)
		y.configure(func(ctx context.Context, tx pgx.Tx) error {
			return limits.PutToolRule(ctx, tx, y.tenant, limits.ToolRule{Source: "fake", Name: toolOnce, Scopes: []string{"contacts:write"}}, "ada")
		})
		y.employ(limits.Employee{ID: employee, Trust: policy.TrustHigh, Scopes: []string{"contacts:*"}})
		id := y.propose(proposal(by(employee)))[0]
		y.exec("UPDATE actions SET approval_state = 'granted'")
		y.employ(limits.Employee{ID: employee, Trust: policy.TrustNone, Scopes: []string{scope}})

		y.work()

		if got := y.view(id).Envelope.Result.Status; got != want {
			t.Errorf("with the scope %s it is %s, want %s", scope, got, want)
		}
	}
}
