package intake_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// step is a line of a trace.
type step struct {
	Layer, Said, Detail string
}

// spoke returns a layer's part in the decision about an envelope.
func (d fixture) spoke(id envelope.ActionID, layer string) string {
	d.t.Helper()
	var trace []step
	if err := json.Unmarshal(d.view(id).Trace, &trace); err != nil {
		d.t.Fatal(err)
	}
	at := slices.IndexFunc(trace, func(s step) bool { return s.Layer == layer })
	if at < 0 {
		d.t.Fatalf("the trace has no layer %s: %+v", layer, trace)
	}
	return trace[at].Said
}

func (d fixture) rule(r limits.ToolRule) {
	d.t.Helper()
	d.as(func(ctx context.Context, tx pgx.Tx) error { return limits.PutToolRule(ctx, tx, d.tenant, r, "ada") })
}

func (d fixture) employ(e limits.Employee) {
	d.t.Helper()
	d.as(func(ctx context.Context, tx pgx.Tx) error { return limits.PutEmployee(ctx, tx, d.tenant, e, "ada") })
}

func TestDoNotContactDeniesProposals(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.rule(limits.ToolRule{Source: "first", Name: "note", Recipients: &[]string{"/to/*", "/cc"}})
	to := func(args string) *envelope.Proposal { return call("note", args) }
	before := d.accept(to(`{"to":["ana@example.org"]}`))[0]
	d.as(func(ctx context.Context, tx pgx.Tx) error {
		_, err := contact.PutEntries(ctx, tx, d.tenant, []contact.Entry{{Value: "ana@example.org", Reason: "asked"}, {Value: "example.net"}}, "ada")
		return err
	})

	answers := d.accept(to(`{"to":["bo@example.org","Ana@EXAMPLE.org"]}`), to(`{"cc":"cy@mail.example.net"}`), to(`{"to":["bo@example.org"]}`), to(`{"about":"ana@example.org"}`))

	for i, denied := range []bool{true, true, false, false} {
		a := answers[i]
		v := d.view(a.Action)
		said := d.spoke(a.Action, policy.LayerDoNotContact)
		if denied != (a.Mode == envelope.ModeDeny) || denied != (v.Envelope.Result.Status == envelope.StatusSkipped) || denied != (said == string(envelope.ModeDeny)) ||
			denied != strings.HasSuffix(a.Source, "+"+policy.LayerDoNotContact) {
			t.Errorf("envelope %d is %s by %s, %s, and the list said %q; want that it is denied to be %t", i, a.Mode, a.Source, v.Envelope.Result.Status, said, denied)
		}
	}
	if got := d.spoke(before.Action, policy.LayerDoNotContact); got != "" {
		t.Errorf("before there was a list it said %q", got)
	}
	if got := d.count("SELECT count(1) FROM outbox WHERE tenant_id = $1", d.tenant.String()); got != 3 {
		t.Errorf("%d are on the schedule, want 3", got)
	}
}

func TestTrustAndScopesNarrow(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	trusted, careful, other := newEmployee(), newEmployee(), newEmployee()
	d.rule(limits.ToolRule{Source: "first", Name: "note", Scopes: []string{"notes:write"}})
	d.employ(limits.Employee{ID: trusted, Trust: policy.TrustHigh, Scopes: []string{"notes:*"}})
	d.employ(limits.Employee{ID: careful, Trust: policy.TrustLow, Scopes: []string{"notes:write"}})
	d.employ(limits.Employee{ID: other, Trust: policy.TrustHigh, Scopes: []string{"mail:*"}})

	for name, test := range map[string]struct {
		employee envelope.EmployeeID
		mode     envelope.Mode
		layer    string
	}{
		"one who may":               {trusted, envelope.ModeAllow, ""},
		"one with too little trust": {careful, envelope.ModeRequireApproval, policy.LayerTrust},
		"one without the scope":     {other, envelope.ModeDeny, policy.LayerScopes},
		"one who is not known":      {newEmployee(), envelope.ModeAllow, ""},
	} {
		p := note("")
		p.EmployeeID, p.Risk = test.employee, envelope.RiskMedium

		a := d.accept(p)[0]

		if a.Mode != test.mode || test.layer != "" && d.spoke(a.Action, test.layer) != string(test.mode) {
			t.Errorf("%s: %s by %s, want %s by %s", name, a.Mode, a.Source, test.mode, test.layer)
		}
	}
	d.employ(limits.Employee{Trust: policy.TrustHigh})
	p := note("")
	p.EmployeeID = newEmployee()
	if a := d.accept(p)[0]; a.Mode != envelope.ModeDeny {
		t.Errorf("one who is not known, with an entry for those: %s by %s, want denied for want of a scope", a.Mode, a.Source)
	}
}

func newEmployee() envelope.EmployeeID { return envelope.EmployeeID(uuid.Must(uuid.NewV7())) }

func TestAnUnknownBucketIsRefusedWithTheNearestOrAll(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	for _, name := range []string{"email.daily", "slack.minute", "gone"} {
		d.bucket(name)
	}
	d.as(func(ctx context.Context, tx pgx.Tx) error {
		return limits.RetireBucket(ctx, tx, d.tenant, "gone", "ada")
	})
	in := func(name string) *envelope.Proposal {
		p := note("")
		p.Constraints.RateBucket = name
		return p
	}

	answers := d.accept(in("email.daily"), in("email.dayly"), in("gone"), in(""))

	for i, end := range []string{"", `"email.dayly"; did you mean "email.daily"?`, "default, email.daily, slack.minute", ""} {
		broken, ok := errors.AsType[*envelope.InvalidError](answers[i].Err)
		if ok != (end != "") {
			t.Errorf("proposal %d: %v", i, answers[i].Err)
		}
		if ok && (broken.Fields[0].Pointer != "/constraints/rate_bucket" || !strings.HasSuffix(broken.Fields[0].Message, end)) {
			t.Errorf("proposal %d: %+v, want the field and %s", i, broken.Fields, end)
		}
	}
}

// TestChangedLimitsApplyToTheNextSubmission changes limits in another process,
// behind the back of this one's cache.
func TestChangedLimitsApplyToTheNextSubmission(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	employee := newEmployee()
	d.rule(limits.ToolRule{Source: "first", Name: "note", Recipients: &[]string{"/to"}})
	p := func() *envelope.Proposal {
		p := call("note", `{"to":"ana@example.org"}`)
		p.EmployeeID = employee
		return p
	}
	accept := func() intake.Answer { return d.accept(p())[0] }

	first := accept()
	d.employ(limits.Employee{ID: employee, Trust: policy.TrustNone})
	second := accept()
	d.as(func(ctx context.Context, tx pgx.Tx) error {
		_, err := contact.PutEntries(ctx, tx, d.tenant, []contact.Entry{{Value: "ana@example.org"}}, "ada")
		return err
	})
	third := accept()
	d.as(func(ctx context.Context, tx pgx.Tx) error {
		if err := limits.DeleteEmployee(ctx, tx, d.tenant, employee, "ada"); err != nil {
			return err
		}
		_, err := contact.DeleteEntries(ctx, tx, d.tenant, []contact.Entry{{Value: "ana@example.org"}}, "asked again", "ada")
		return err
	})
	fourth := accept()

	for i, want := range []envelope.Mode{envelope.ModeAllow, envelope.ModeRequireApproval, envelope.ModeDeny, envelope.ModeAllow} {
		if got := []intake.Answer{first, second, third, fourth}[i]; got.Mode != want {
			t.Errorf("submission %d: %s by %s, want %s", i, got.Mode, got.Source, want)
		}
	}
}
