package intake_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/preflight"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source/breaker"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/pause"
	"github.com/countersign-dev/countersign/internal/tenant/quiethours"
)

func (d fixture) preview(p *envelope.Proposal) intake.Preview {
	d.t.Helper()
	v, err := d.in.Preview(d.t.Context(), d.by(), p)
	if err != nil {
		d.t.Fatal(err)
	}
	return v
}

// spoke returns the gates that do not pass, with their codes.
func spoke(v intake.Preview) (words []string) {
	for _, w := range v.Prediction.Gates {
		if w.Result != string(preflight.Pass) {
			words = append(words, w.Gate+" "+w.Code)
		}
	}
	return words
}

// today is quiet until tomorrow is over.
func today() limits.QuietHours {
	now := time.Now().UTC()
	day := func(at time.Time) string { return strings.ToLower(at.Format("Mon")) }
	return limits.QuietHours{Scope: limits.QuietTenant, Hours: quiethours.Hours{
		Timezone: "UTC", Windows: []quiethours.Window{{Days: []string{day(now), day(now.Add(24 * time.Hour))}, From: "00:00", Until: "24:00"}},
	}}
}

func TestAPreviewAsksEveryGate(t *testing.T) {
	t.Parallel()
	set := func(fn func(ctx context.Context, tx pgx.Tx, d fixture) error) func(d fixture) {
		return func(d fixture) {
			d.t.Helper()
			d.as(func(ctx context.Context, tx pgx.Tx) error { return fn(ctx, tx, d) })
		}
	}
	setPause := func(target pause.Target) func(d fixture) {
		return set(func(ctx context.Context, tx pgx.Tx, d fixture) error {
			_, err := pause.Set(ctx, tx, d.tenant, pause.Order{Target: target, Reason: "a test", By: "ada"})
			return err
		})
	}
	soon := envelope.Constraints{MustRunBefore: time.Now().Add(time.Minute).UTC()}
	late := envelope.Constraints{NotBefore: time.Now().Add(24 * 300 * time.Hour).UTC().Truncate(time.Second)}
	for name, test := range map[string]struct {
		prepare     func(d fixture)
		constraints envelope.Constraints
		would       string
		spoke       []string
		goes        bool
	}{
		"nothing": {func(fixture) {}, envelope.Constraints{}, intake.PredictRun, nil, true},
		"quiet hours": {set(func(ctx context.Context, tx pgx.Tx, d fixture) error {
			return limits.PutQuietHours(ctx, tx, d.tenant, today(), "ada")
		}), envelope.Constraints{}, intake.PredictWait, []string{"quiet_hours quiet_hours"}, true},
		"quiet hours past the deadline": {set(func(ctx context.Context, tx pgx.Tx, d fixture) error {
			return limits.PutQuietHours(ctx, tx, d.tenant, today(), "ada")
		}), soon, intake.PredictSkip, []string{"quiet_hours quiet_hours"}, false},
		"a later time":       {func(fixture) {}, late, intake.PredictWait, []string{"not_before not_before"}, true},
		"a paused tool":      {setPause(pause.Target{Scope: pause.Tool, Subject: "first:note"}), envelope.Constraints{}, intake.PredictWait, []string{"pause paused"}, false},
		"a paused tenant":    {setPause(pause.Target{Scope: pause.Tenant}), envelope.Constraints{}, intake.PredictWait, []string{"pause paused"}, false},
		"a pause of another": {setPause(pause.Target{Scope: pause.Source, Subject: "second"}), envelope.Constraints{}, intake.PredictRun, nil, true},
		"an open breaker": {func(d fixture) {
			if err := postgres.InTx(d.t.Context(), d.db, postgres.Worker(), func(tx pgx.Tx) error {
				return breaker.Open(d.t.Context(), tx, breaker.Source{Tenant: d.tenant, ID: "first"}, breaker.CauseFailures, time.Minute, "w1")
			}); err != nil {
				d.t.Fatal(err)
			}
		}, envelope.Constraints{}, intake.PredictWait, []string{"breaker breaker_open"}, true},
		"a breaker that outlasts the deadline": {func(d fixture) {
			if err := postgres.InTx(d.t.Context(), d.db, postgres.Worker(), func(tx pgx.Tx) error {
				return breaker.Open(d.t.Context(), tx, breaker.Source{Tenant: d.tenant, ID: "first"}, breaker.CauseRetryAfter, time.Hour, "w1")
			}); err != nil {
				d.t.Fatal(err)
			}
		}, soon, intake.PredictSkip, []string{"breaker breaker_open", "deadline deadline"}, false},
		"a listed recipient": {set(func(ctx context.Context, tx pgx.Tx, d fixture) error {
			if err := limits.PutToolRule(ctx, tx, d.tenant, limits.ToolRule{Source: "first", Name: "note", Recipients: &[]string{"/to"}}, "ada"); err != nil {
				return err
			}
			_, err := contact.PutEntries(ctx, tx, d.tenant, []contact.Entry{{Value: "ana@example.org"}}, "ada")
			return err
		}), envelope.Constraints{}, intake.PredictDeny, []string{"do_not_contact do_not_contact"}, false},
	} {
		d := newFixture(t)
		test.prepare(d)
		p := call("note", `{"to":"ana@example.org"}`)
		p.Constraints = test.constraints

		v := d.preview(p)

		if diff := cmp.Diff(test.spoke, spoke(v)); diff != "" || v.Prediction.Result != test.would || (v.Prediction.GoesOutAt != nil) != test.goes {
			t.Errorf("%s: %s at %v, want %s; gates (-want +got):\n%s", name, v.Prediction.Result, v.Prediction.GoesOutAt, test.would, diff)
		}
		if d.count("SELECT count(1) FROM actions WHERE tenant_id = $1", d.tenant.String()) != 0 {
			t.Errorf("%s: a preview proposed something", name)
		}
		if got := d.accept(p)[0]; got.Err != nil || got.Mode != v.Decision.Mode || got.Source != v.Decision.Source {
			t.Errorf("%s: Accept = %+v, where the preview said %s by %s", name, got, v.Decision.Mode, v.Decision.Source)
		}
	}
}

func TestPreviewAndAcceptRefuseTheSameProposals(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.accept(note("taken"))
	other := note("taken")
	other.Args = json.RawMessage(`{"n":2}`)
	for name, p := range map[string]*envelope.Proposal{
		"no such tool":     call("nothing", `{}`),
		"bad arguments":    call("send", `{"text":7}`),
		"a taken name":     other,
		"another tenant's": {Type: envelope.TypeExec, TenantID: envelope.TenantID(newEmployee()), Tool: envelope.Tool{Name: "note", Source: "first"}, Args: json.RawMessage(`{}`)},
	} {
		_, err := d.in.Preview(t.Context(), d.by(), p)

		if want := d.accept(p)[0].Err; err == nil || want == nil || fault.KindOf(err) != fault.KindOf(want) || err.Error() != want.Error() {
			t.Errorf("%s: Preview = %v, Accept = %v", name, err, want)
		}
	}
	if v := d.preview(note("taken")); v.Known == (envelope.ActionID{}) {
		t.Error("a preview of what is there does not know it")
	}
}

func TestAcceptComparesPlans(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	v := d.preview(note(""))
	by := d.by()
	by.Plan = &v.Plan
	accept := func(p *envelope.Proposal) intake.Answer {
		answers, err := d.in.Accept(t.Context(), by, []*envelope.Proposal{p})
		if err != nil {
			t.Fatal(err)
		}
		return answers[0]
	}

	same, other := accept(note("one")), accept(call("note", `{"n":2}`))
	d.mode("first:note", envelope.ModeRequireApproval)
	later, known := accept(note("two")), accept(note("one"))

	if same.Err != nil || !errors.Is(other.Err, fault.Conflict) || !errors.Is(later.Err, fault.Conflict) || known.Err != nil || !known.Known {
		t.Errorf("the same %v, other arguments %v, under other rules %v, known %+v", same.Err, other.Err, later.Err, known)
	}
	if same.Action != known.Action {
		t.Error("what was accepted under a plan is not known again")
	}
}
