package simulate_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/insight/simulate"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

const (
	allow = envelope.ModeAllow
	asks  = envelope.ModeRequireApproval
	deny  = envelope.ModeDeny
)

func TestThreeDecisionsAreCompared(t *testing.T) {
	t.Parallel()
	s := newStage(t, dbtest.Tx(t))
	small := s.propose(s.by(), call("refund", `{"amount":10}`))
	large := s.propose(s.by(), call("refund", `{"amount":120}`))
	s.propose(s.by(), call("mail", `{"to":"ana@example.org"}`))
	s.mode("shop:mail", deny)

	got := s.read(lately()).Compare(rule("has(args.amount) && args.amount > 100", asks), never)

	want := []wire.SimulationCount{count("shop:mail", allow, deny, deny, 1), count("shop:refund", allow, allow, allow, 1), count("shop:refund", allow, allow, asks, 1)}
	if diff := cmp.Diff(want, got.Counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if len(got.Differences) != 2 || got.Differences[1].Action != large[0] || got.Examined != 3 || got.Compared != 3 || got.Next != nil {
		t.Fatalf("report = %+v; the small refund is %s", got, small[0])
	}
	mail, refund := got.Differences[0], got.Differences[1]
	if len(mail.Causes) != 0 || mail.Then.Mode != allow || mail.Changed.Mode != deny {
		t.Errorf("what the policy of now changed already = %+v", mail)
	}
	if refund.Changed.Source != "org_default+arguments:r" || refund.Now.Source != "org_default" {
		t.Errorf("sources = %+v", refund)
	}
	if diff := cmp.Diff([]wire.SimulationCause{{Layer: policy.LayerArguments, Rule: "r", Tool: "shop:*", Changed: asks, Detail: "why"}}, refund.Causes); diff != "" {
		t.Errorf("because (-want +got):\n%s", diff)
	}
}

// TestGrantIsTried finds the calls that needed a person's decision and would be
// allowed by the grant, except the one from which the grant was made.
func TestGrantIsTried(t *testing.T) {
	t.Parallel()
	s := newStage(t, dbtest.Tx(t))
	s.mode("shop:*", asks)
	from := s.propose(s.by(), call("refund", `{"amount":10,"to":"a"}`))[0]
	same := s.propose(s.by(), call("refund", `{"to":"a","amount":10.0}`))[0]
	other := s.propose(s.by(), call("refund", `{"to":"b","amount":10}`))[0]
	s.propose(s.by(), call("refund", `{"amount":10,"to":"a","cc":"b"}`), call("mail", `{"amount":10,"to":"a"}`))
	page := s.read(lately())
	tool, _ := page.Snapshot.Tool(policy.Key{Source: "shop", Action: "refund"})
	for name, tt := range map[string]struct {
		loose []string
		want  []envelope.ActionID
	}{
		"by default":     {nil, []envelope.ActionID{same}},
		"with one loose": {[]string{"/to"}, []envelope.ActionID{other, same}},
	} {
		g := settings.Grant{Tool: tool.Key, Digest: tool.Binding, From: from}
		var err error
		if g.Pins, g.Loose, err = policy.Exactly([]byte(`{"amount":10,"to":"a"}`), tt.loose...); err != nil {
			t.Fatal(err)
		}

		got, err := page.Granted(g, time.Now(), never)

		var ids []envelope.ActionID
		for _, c := range got.Calls {
			ids = append(ids, c.Action)
		}
		if diff := cmp.Diff(tt.want, ids); err != nil || diff != "" || got.Compared != 5 || !got.Complete {
			t.Errorf("%s: Granted = %+v, %v (-want +got):\n%s", name, got, err, diff)
		}
	}
}

func TestRiskIsTried(t *testing.T) {
	t.Parallel()
	s := newStage(t, dbtest.Tx(t))
	s.propose(s.by(), call("mail", `{}`))
	s.as(func(ctx context.Context, tx pgx.Tx) error {
		return settings.DeleteMode(ctx, tx, s.tenant, "", "shop:*")
	})
	req := lately()
	req.Overrides = map[policy.Key]catalog.Overrides{{Source: "shop", Action: "mail"}: {Risk: policy.RiskDanger}}

	got := s.read(req).Compare(settings.Document{}, never)

	if diff := cmp.Diff([]wire.SimulationCount{count("shop:mail", allow, asks, deny, 1)}, got.Counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

// TestReviewsAreTried requires more approvals of actions that wait, and of no
// others; a removed review requires fewer.
func TestReviewsAreTried(t *testing.T) {
	t.Parallel()
	s := newStage(t, dbtest.Tx(t))
	s.mode("shop:refund", asks)
	s.propose(s.by(), call("refund", `{}`), call("refund", `{"amount":1}`), call("mail", `{}`))
	with := func(reviews ...settings.ReviewRule) settings.Document {
		return settings.Document{Reviews: append([]settings.ReviewRule{}, reviews...)}
	}
	three := settings.ReviewRule{Pattern: "shop:*", Risk: envelope.RiskLow, Approvals: 3}

	got := s.read(lately()).Compare(with(three), never)

	raised := count("shop:refund", asks, asks, asks, 2)
	raised.ChangedApprovals = 3
	if diff := cmp.Diff([]wire.SimulationCount{count("shop:mail", allow, allow, allow, 1), raised}, got.Counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	tried := slices.DeleteFunc(got.Differences, func(d wire.SimulationDifference) bool { return !d.Now.Differs(d.Changed) })
	if len(tried) != 2 || tried[0].Now.Approvals != 0 || tried[0].Changed.Approvals != 3 {
		t.Errorf("differences = %+v, want two with 3 approvals", tried)
	}

	s.as(func(ctx context.Context, tx pgx.Tx) error {
		return settings.PutReview(ctx, tx, s.tenant, three, "ada")
	})
	got = s.read(lately()).Compare(with(), never)
	raised.NowApprovals, raised.ChangedApprovals = 3, 0
	if diff := cmp.Diff([]wire.SimulationCount{count("shop:mail", allow, allow, allow, 1), raised}, got.Counts); diff != "" {
		t.Errorf("counts without the review (-want +got):\n%s", diff)
	}
}

// TestCausesOfDifferences changes one section after the other.
func TestCausesOfDifferences(t *testing.T) {
	t.Parallel()
	s := newStage(t, dbtest.Tx(t))
	s.as(func(ctx context.Context, tx pgx.Tx) error {
		return settings.PutPreference(ctx, tx, s.tenant, settings.Preference{Pattern: "shop:mail"}, "ada")
	})
	s.propose(s.by(), call("refund", `{"amount":10}`), call("mail", `{}`))
	for name, tt := range map[string]struct {
		change settings.Document
		want   []string
	}{
		"nothing":       {settings.Document{}, nil},
		"modes":         {settings.Document{Modes: []settings.Mode{{Pattern: "shop:refund", Mode: "deny"}}}, []string{"shop:refund org_default allow deny"}},
		"no modes":      {settings.Document{Modes: []settings.Mode{}}, []string{"shop:refund org_default allow ", "shop:refund inferred_default  require_approval"}},
		"preferences":   {settings.Document{Preferences: []settings.Preference{{Pattern: "shop:refund"}}}, []string{"shop:mail user_preference deny ", "shop:refund user_preference  deny"}},
		"reviews":       {settings.Document{Reviews: []settings.ReviewRule{{Pattern: "*", Risk: envelope.RiskLow, Approvals: 2}}}, nil},
		"a broken rule": {rule("args.", deny), []string{"shop:refund arguments r deny"}},
		"no such mode":  {settings.Document{Modes: []settings.Mode{{Pattern: "*", Mode: "maybe"}}}, []string{"shop:refund org_default allow deny"}},
	} {
		got := s.read(lately()).Compare(tt.change, never)
		var causes []string
		for _, d := range got.Differences {
			for _, c := range d.Causes {
				text := fmt.Sprintf("%s %s %s %s", d.Tool, c.Layer, c.Now, c.Changed)
				if c.Rule != "" {
					text = fmt.Sprintf("%s %s %s %s", d.Tool, c.Layer, c.Rule, c.Changed)
				}
				causes = append(causes, text)
			}
		}
		slices.Sort(causes)
		slices.Sort(tt.want)
		if diff := cmp.Diff(tt.want, causes); diff != "" {
			t.Errorf("%s: causes (-want +got):\n%s", name, diff)
		}
	}
}

// TestDecisionsDependOnProposals simulates decisions that depend on more than
// the tool: under the current policy, each is as before.
func TestDecisionsDependOnProposals(t *testing.T) {
	t.Parallel()
	s := newStage(t, dbtest.Tx(t))
	employee := envelope.EmployeeID(uuid.New())
	s.as(func(ctx context.Context, tx pgx.Tx) error {
		if _, err := contact.PutEntries(ctx, tx, s.tenant, []contact.Entry{{Value: "no@example.org"}}, "ada"); err != nil {
			return err
		}
		if err := limits.PutEmployee(ctx, tx, s.tenant, limits.Employee{ID: employee, Trust: policy.TrustNone}, "ada"); err != nil {
			return err
		}
		return settings.PutMode(ctx, tx, s.tenant, "nightly", "*", asks, "ada")
	})
	asked := call("refund", `{}`)
	asked.Approval = envelope.ApprovalRequired
	trusted := call("refund", `{}`)
	trusted.EmployeeID = employee
	nightly := call("refund", `{}`)
	nightly.AutomationID = "nightly"
	s.propose(s.by(), asked, trusted, nightly, call("mail", `{"to":"no@example.org"}`), call("mail", `{"to":"yes@example.org"}`))
	edited := s.propose(s.by(), nightlyOf(call("refund", `{"amount":500}`)))
	s.exec("UPDATE actions SET args = '{\"amount\":5}' WHERE action_id = $1", edited[0].String())
	s.exec("UPDATE approvals SET proposed_args = '{\"amount\":500}' WHERE action_id = $1", edited[0].String())

	same := s.read(lately()).Compare(settings.Document{}, never)
	ruled := s.read(lately()).Compare(rule("has(args.amount) && args.amount == 500", deny), never)

	if len(same.Differences) != 0 || same.Compared != 6 {
		t.Errorf("by the policy of now %d compared, and these differ: %+v", same.Compared, same.Differences)
	}
	want := []wire.SimulationCount{count("shop:mail", allow, allow, allow, 1), count("shop:mail", deny, deny, deny, 1), count("shop:refund", asks, asks, asks, 3+1)}
	if diff := cmp.Diff(want, same.Counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if len(ruled.Differences) != 1 || ruled.Differences[0].Action != edited[0] {
		t.Errorf("a rule about what was proposed finds %+v, want the one that was edited since", ruled.Differences)
	}
}

func nightlyOf(p *envelope.Proposal) *envelope.Proposal {
	p.AutomationID = "nightly"
	return p
}

// TestArgumentsThatFailARule counts them as the rule's mode, without their
// values in the report.
func TestArgumentsThatFailARule(t *testing.T) {
	t.Parallel()
	s := newStage(t, dbtest.Tx(t))
	s.propose(s.by(), call("refund", `{}`), call("refund", `{"amount":"secret-word"}`), call("refund", `{"amount":{"secret-word":1}}`), call("refund", `{"amount":7}`))

	got := s.read(lately()).Compare(rule("args.amount > 100", asks), never)

	if diff := cmp.Diff([]wire.SimulationCount{count("shop:refund", allow, allow, allow, 1), count("shop:refund", allow, allow, asks, 3)}, got.Counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	for _, d := range got.Differences {
		if len(d.Causes) != 1 || !strings.Contains(d.Causes[0].Detail, "counts as true") || strings.Contains(d.Causes[0].Detail, "secret-word") {
			t.Errorf("because = %+v", d.Causes)
		}
	}
}

// TestThousandsAreReadInSets simulates 2,600 envelopes with a do-not-contact
// list, and counts the statements.
func TestThousandsAreReadInSets(t *testing.T) {
	t.Parallel()
	s := newStage(t, dbtest.Tx(t))
	const all = 2600
	s.refunds(all)
	s.as(func(ctx context.Context, tx pgx.Tx) error {
		if _, err := contact.PutEntries(ctx, tx, s.tenant, []contact.Entry{{Value: "u7@example.org"}}, "ada"); err != nil {
			return err
		}
		return limits.PutToolRule(ctx, tx, s.tenant, limits.ToolRule{Source: "shop", Name: "refund", Recipients: new([]string{"/to"})}, "ada")
	})
	s.read(lately()) // the catalog is read once, when it has changed
	var n atomic.Int64
	counted := s
	counted.db = counting{s.db, &n}

	seen, would, then := 0, map[envelope.Mode]int{}, time.Now()
	req := lately()
	for pages := 1; ; pages++ {
		n.Store(0)
		page := counted.read(req)
		if made := n.Load(); made > 20 {
			t.Errorf("page %d took %d statements", pages, made)
		}
		report := page.Compare(rule("args.amount >= 2000", asks), never)
		seen += report.Compared
		for _, c := range report.Counts {
			would[c.Changed] += c.Count
		}
		if report.Next == nil {
			break
		}
		req.Before = *report.Next
	}
	t.Logf("%d envelopes in %s", seen, time.Since(then))

	if diff := cmp.Diff(map[envelope.Mode]int{allow: 1999, asks: 600, deny: 1}, would); diff != "" || seen != all {
		t.Errorf("%d seen (-want +got):\n%s", seen, diff)
	}
}

// TestPagesJoin reads the same range in pages of every size, and with an enough
// that returns true early.
func TestPagesJoin(t *testing.T) {
	t.Parallel()
	s := newStage(t, dbtest.Tx(t))
	ids := s.refunds(30)
	slices.Reverse(ids)
	for name, tt := range map[string]struct {
		most   int
		enough func() bool
		tool   policy.Key
	}{
		"one by one":    {1, never, policy.Key{Source: "*", Action: "*"}},
		"sevens":        {7, never, policy.Key{Source: "shop", Action: "*"}},
		"soon enough":   {30, func() bool { return true }, policy.Key{Source: "*", Action: "refund"}},
		"all":           {2000, never, policy.Key{Source: "shop", Action: "refund"}},
		"an exact page": {30, never, policy.Key{Source: "*", Action: "*"}},
	} {
		var got []envelope.ActionID
		looked := 0
		req := lately()
		req.Limit, req.Tool = tt.most, tt.tool
		for range 40 {
			report := s.read(req).Compare(rule("true", deny), tt.enough)
			looked += report.Examined
			for _, d := range report.Differences {
				got = append(got, d.Action)
			}
			if report.Next == nil {
				break
			}
			req.Before = *report.Next
		}
		if diff := cmp.Diff(ids, got); diff != "" || looked != 30 {
			t.Errorf("%s: looked at %d (-want +got):\n%s", name, looked, diff)
		}
	}
}

func TestRequestsSelectActions(t *testing.T) {
	t.Parallel()
	s := newStage(t, dbtest.Tx(t))
	s.refunds(3)
	old := s.propose(s.by(), call("mail", `{}`))
	s.as(func(ctx context.Context, tx pgx.Tx) error {
		return catalog.PutListing(ctx, tx, s.tenant, "shop", tools("refund"))
	})
	for name, tt := range map[string]struct {
		change         func(*simulate.Request)
		compared, gone int
	}{
		"all":            {func(*simulate.Request) {}, 3, 1},
		"a tool":         {func(r *simulate.Request) { r.Tool = policy.Key{Source: "shop", Action: "refund"} }, 3, 0},
		"another source": {func(r *simulate.Request) { r.Tool = policy.Key{Source: "mail", Action: "*"} }, 0, 0},
		"an earlier time": {func(r *simulate.Request) {
			r.From, r.To = r.From.Add(-48*time.Hour), r.From.Add(-24*time.Hour)
		}, 0, 0},
		"a time to come": {func(r *simulate.Request) { r.From, r.To = r.To, r.To.Add(time.Hour) }, 0, 0},
		"behind one":     {func(r *simulate.Request) { r.Before = old[0] }, 3, 0},
	} {
		req := lately()
		tt.change(&req)
		got := s.read(req).Compare(settings.Document{}, never)
		if got.Compared != tt.compared || got.WithoutTool != tt.gone {
			t.Errorf("%s: %d compared and %d gone, want %d and %d", name, got.Compared, got.WithoutTool, tt.compared, tt.gone)
		}
	}
}

func TestOtherTenantsAreInvisible(t *testing.T) {
	t.Parallel()
	db := dbtest.Tx(t)
	one, two := newStage(t, db), newStage(t, db)
	one.refunds(3)
	two.refunds(2)

	if got := two.read(lately()).Compare(rule("true", deny), never); got.Examined != 2 || len(got.Differences) != 2 {
		t.Errorf("a tenant with 2 envelopes simulates %d: %+v", got.Examined, got.Differences)
	}
	// Row-level security holds even with another tenant's id.
	err := postgres.InTx(t.Context(), db, postgres.API(two.tenant).ReadOnly(), func(tx pgx.Tx) error {
		page, err := simulate.Read(t.Context(), tx, settings.NewCache(), one.tenant, lately())
		if err == nil {
			t.Errorf("another tenant's past is read: %+v", page)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestNothingIsWritten compares every row of the tenant, by its version in the
// database, before and after.
func TestNothingIsWritten(t *testing.T) {
	t.Parallel()
	s := newStage(t, dbtest.DB(t))
	s.refunds(50)
	s.mode("shop:refund", asks)
	before := s.fingerprint()

	err := postgres.InTx(t.Context(), s.db, postgres.API(s.tenant).ReadOnly(), func(tx pgx.Tx) error {
		page, err := simulate.Read(t.Context(), tx, s.cache, s.tenant, lately())
		if err != nil {
			return err
		}
		if got := page.Compare(rule("args.amount > 10", deny), never); len(got.Differences) != 50 {
			t.Errorf("%d differ, want 50", len(got.Differences))
		}
		var assigned *string
		if err := tx.QueryRow(t.Context(), "SELECT pg_current_xact_id_if_assigned()::text").Scan(&assigned); err != nil {
			return err
		}
		if assigned != nil {
			t.Errorf("the transaction has the id %s, so it wrote", *assigned)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(before, s.fingerprint()); diff != "" {
		t.Errorf("the database (-before +after):\n%s", diff)
	}
	if err := postgres.InTx(t.Context(), s.db, postgres.API(s.tenant).ReadOnly(), func(tx pgx.Tx) error {
		return settings.PutMode(t.Context(), tx, s.tenant, "", "*", allow, "ada")
	}); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("a change in such a transaction = %v, want it refused by the database", err)
	}
}

// fingerprint returns, for every table, the number of rows and a digest of the
// transactions that wrote them.
func (s stage) fingerprint() map[string]string {
	s.t.Helper()
	prints := make(map[string]string)
	err := postgres.InTx(s.t.Context(), s.db, postgres.Admin(), func(tx pgx.Tx) error {
		rows, err := tx.Query(s.t.Context(), `SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE n.nspname = 'countersign_data' AND c.relkind = 'r' ORDER BY 1`)
		if err != nil {
			return err
		}
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		for _, name := range names {
			var print string
			query := `SELECT count(1) || ' rows, ' || coalesce(md5(string_agg(x.ctid::text || x.xmin::text || x.xmax::text, ',' ORDER BY x.ctid)), '') FROM ` +
				pgx.Identifier{name}.Sanitize() + " x"
			if err := tx.QueryRow(s.t.Context(), query).Scan(&print); err != nil {
				return err
			}
			prints[name] = print
		}
		return nil
	})
	if err != nil || len(prints) < 20 {
		s.t.Fatalf("fingerprint of %d tables: %v", len(prints), err)
	}
	return prints
}

func count(tool string, then, now, changed envelope.Mode, n int) wire.SimulationCount {
	return wire.SimulationCount{Tool: tool, Then: then, Now: now, Changed: changed, Count: n}
}
