package settings_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/tenant/tenanttest"
)

func (s fixture) rule(r settings.Rule) {
	s.T.Helper()
	s.Must(func(ctx context.Context, tx pgx.Tx) error { return s.putRule(ctx, tx, r) })
}

func (s fixture) putRule(ctx context.Context, tx pgx.Tx, r settings.Rule) error {
	snap, err := s.cache.Current(ctx, tx, s.Tenant)
	if err != nil {
		return err
	}
	return settings.PutRule(ctx, tx, snap, r, "ada")
}

func (s fixture) grant(g settings.Grant) uuid.UUID {
	s.T.Helper()
	var id uuid.UUID
	s.Must(func(ctx context.Context, tx pgx.Tx) (err error) {
		id, err = settings.PutGrant(ctx, tx, s.Tenant, g)
		return err
	})
	return id
}

func (s fixture) session(id, pattern string, mode envelope.Mode, lasts time.Duration) {
	s.T.Helper()
	s.Must(func(ctx context.Context, tx pgx.Tx) error {
		_, err := settings.PutSessionMode(ctx, tx, s.Tenant, settings.SessionMode{Session: id, Pattern: pattern, Mode: mode}, lasts, "ada")
		return err
	})
}

// now returns the database's clock, as for intake and the workers.
func (s fixture) now() time.Time {
	s.T.Helper()
	var now time.Time
	s.Must(func(ctx context.Context, tx pgx.Tx) error {
		_, state, err := s.cache.CurrentAndState(ctx, tx, s.Tenant)
		now = state.Now
		return err
	})
	if now.IsZero() {
		s.T.Fatal("the state has no clock")
	}
	return now
}

// expire runs the maintenance of the worker.
func (s fixture) expire(most int) int {
	s.T.Helper()
	var n int
	if err := postgres.InTx(s.T.Context(), s.DB, postgres.Worker(), func(tx pgx.Tx) (err error) {
		n, err = settings.Expire(s.T.Context(), tx, most)
		return err
	}); err != nil {
		s.T.Fatal(err)
	}
	return n
}

func step(t testing.TB, d policy.Decision, layer string) policy.Step {
	t.Helper()
	for _, s := range d.Trace {
		if s.Layer == layer {
			return s
		}
	}
	t.Fatalf("the trace has no layer %s: %s", layer, d.TraceJSON)
	return policy.Step{}
}

// TestEveryChangeOfARuleHasANewVersion sets, changes, deletes and sets again
// every kind of rule.
func TestEveryChangeOfARuleHasANewVersion(t *testing.T) {
	t.Parallel()
	pref := settings.Preference{Pattern: "src:*"}
	for name, tt := range map[string]struct {
		layer    string
		put, del func(ctx context.Context, tx pgx.Tx, s fixture) error
	}{
		"a mode": {policy.LayerOrganisation,
			func(ctx context.Context, tx pgx.Tx, s fixture) error {
				return settings.PutMode(ctx, tx, s.Tenant, "", "*", envelope.ModeDeny, "ada")
			},
			func(ctx context.Context, tx pgx.Tx, s fixture) error {
				return settings.DeleteMode(ctx, tx, s.Tenant, "", "*")
			}},
		"a rule": {policy.LayerArguments,
			func(ctx context.Context, tx pgx.Tx, s fixture) error {
				return s.putRule(ctx, tx, settings.Rule{ID: "r", Pattern: "*", Expression: "true", Mode: "deny", Enabled: true})
			},
			func(ctx context.Context, tx pgx.Tx, s fixture) error {
				return settings.DeleteRule(ctx, tx, s.Tenant, "r")
			}},
		"a session's mode": {policy.LayerSession,
			func(ctx context.Context, tx pgx.Tx, s fixture) error {
				_, err := settings.PutSessionMode(ctx, tx, s.Tenant, settings.SessionMode{Session: "s-1", Pattern: "*", Mode: envelope.ModeDeny}, time.Hour, "ada")
				return err
			},
			func(ctx context.Context, tx pgx.Tx, s fixture) error {
				return settings.DeleteSessionMode(ctx, tx, s.Tenant, "s-1", "*")
			}},
		"a preference": {policy.LayerPreference,
			func(ctx context.Context, tx pgx.Tx, s fixture) error {
				return settings.PutPreference(ctx, tx, s.Tenant, pref, "ada")
			},
			func(ctx context.Context, tx pgx.Tx, s fixture) error {
				return settings.DeletePreference(ctx, tx, s.Tenant, envelope.EmployeeID{}, pref.Pattern)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t)
			do := func(fn func(ctx context.Context, tx pgx.Tx, s fixture) error) {
				t.Helper()
				before := s.snapshot().Version
				s.Must(func(ctx context.Context, tx pgx.Tx) error { return fn(ctx, tx, s) })
				if s.snapshot().Version <= before {
					t.Error("the version of the tenant stayed as it was")
				}
			}
			seen, decisions := map[string]bool{}, map[uuid.UUID]bool{}
			look := func() {
				t.Helper()
				d := s.snapshot().Decide(s.act(), settings.Proposal{Session: "s-1"})
				at := step(t, d, tt.layer)
				if at.Said != envelope.ModeDeny || at.Version == "" || seen[at.Version] || decisions[d.ID] {
					t.Errorf("step = %+v in decision %s; want it denied, with a version of its own", at, d.ID)
				}
				seen[at.Version], decisions[d.ID] = true, true
			}

			do(tt.put)
			look()
			do(tt.put)
			look()
			do(tt.del)
			if at := step(t, s.snapshot().Decide(s.act(), settings.Proposal{Session: "s-1"}), tt.layer); at.Said != "" {
				t.Errorf("what was deleted says %+v", at)
			}
			if err := s.Try(func(ctx context.Context, tx pgx.Tx) error { return tt.del(ctx, tx, s) }); !errors.Is(err, fault.NotFound) {
				t.Errorf("deleting it again = %v, want fault.NotFound", err)
			}
			do(tt.put)
			look()
		})
	}
}

// TestVersionsOfConcurrentChangesDiffer has several processes set one mode
// concurrently: each gets its own version.
func TestVersionsOfConcurrentChangesDiffer(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.DB = dbtest.DB(t)
	s.Tenant = envelope.TenantID(uuid.New())
	s.Exec("INSERT INTO tenants (tenant_id, name) VALUES ($1, 'racing')", s.Tenant.String())
	const processes, times = 4, 10
	versions := make([][]int64, processes)
	var wg sync.WaitGroup
	for i := range processes {
		wg.Go(func() {
			for range times {
				err := s.Try(func(ctx context.Context, tx pgx.Tx) error {
					if err := settings.PutMode(ctx, tx, s.Tenant, "", "*", envelope.ModeDeny, "ada"); err != nil {
						return err
					}
					modes, err := settings.Modes(ctx, tx, s.Tenant)
					if err == nil {
						versions[i] = append(versions[i], modes[0].Version)
					}
					return err
				})
				if err != nil {
					t.Errorf("PutMode = %v", err)
				}
			}
		})
	}
	wg.Wait()

	all := slices.Sorted(slices.Values(slices.Concat(versions...)))
	if distinct := slices.Compact(slices.Clone(all)); len(all) != processes*times || len(distinct) != len(all) {
		t.Errorf("versions = %v, want %d that differ", all, processes*times)
	}
}

func TestGrantCoverage(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	employee := envelope.EmployeeID(uuid.New())
	id := s.grant(settings.Grant{
		Tool: s.act().Key, Digest: s.act().Binding, Employee: employee, Session: "s-1", Automation: "nightly",
		Pins: map[string]json.RawMessage{"": json.RawMessage(`{"to":"a","n":1.0}`)}, Loose: []string{"/more"}, Reason: "r", For: time.Hour, By: "ada",
	})
	now := s.now()
	with := func(fn func(p *settings.Proposal)) settings.Proposal {
		p := settings.Proposal{Employee: employee, Session: "s-1", Automation: "nightly", Args: json.RawMessage(`{"n":1,"to":"a","more":true}`), Now: now}
		fn(&p)
		return p
	}
	for name, tt := range map[string]struct {
		proposed settings.Proposal
		covered  bool
	}{
		"what it says":             {with(func(*settings.Proposal) {}), true},
		"just before its end":      {with(func(p *settings.Proposal) { p.Now = now.Add(time.Hour - time.Second) }), true},
		"at its end":               {with(func(p *settings.Proposal) { p.Now = now.Add(time.Hour + time.Second) }), false},
		"without a clock":          {with(func(p *settings.Proposal) { p.Now = time.Time{} }), false},
		"another session":          {with(func(p *settings.Proposal) { p.Session = "s-2" }), false},
		"no session":               {with(func(p *settings.Proposal) { p.Session = "" }), false},
		"another employee":         {with(func(p *settings.Proposal) { p.Employee = envelope.EmployeeID(uuid.New()) }), false},
		"nobody":                   {with(func(p *settings.Proposal) { p.Employee = envelope.EmployeeID{} }), false},
		"another automation":       {with(func(p *settings.Proposal) { p.Automation = "weekly" }), false},
		"another value":            {with(func(p *settings.Proposal) { p.Args = json.RawMessage(`{"n":1,"to":"b"}`) }), false},
		"another type":             {with(func(p *settings.Proposal) { p.Args = json.RawMessage(`{"n":"1","to":"a"}`) }), false},
		"a loose argument missing": {with(func(p *settings.Proposal) { p.Args = json.RawMessage(`{"n":1,"to":"a"}`) }), true},
		"one argument more":        {with(func(p *settings.Proposal) { p.Args = json.RawMessage(`{"n":1,"to":"a","cc":null}`) }), false},
		"a missing argument":       {with(func(p *settings.Proposal) { p.Args = json.RawMessage(`{"n":1}`) }), false},
		"no arguments":             {with(func(p *settings.Proposal) { p.Args = nil }), false},
		"arguments nobody knows":   {with(func(p *settings.Proposal) { p.AnyArgs = true }), false},
		"the agent asks a person":  {with(func(p *settings.Proposal) { p.AskedApproval = true }), false},
		"somebody not to write to": {with(func(p *settings.Proposal) { p.Listed = true }), false},
	} {
		d := s.snapshot().Decide(s.act(), tt.proposed)
		if covered := d.Mode == envelope.ModeAllow; covered != tt.covered {
			t.Errorf("%s: Decide = %s from %s, want it covered: %t", name, d.Mode, d.Source, tt.covered)
		}
		if tt.covered && (d.Source != "inferred_default+grant:"+id.String() || step(t, d, policy.LayerGrant).Version == "") {
			t.Errorf("%s: Decide = %s, %s", name, d.Source, d.TraceJSON)
		}
	}

	// Another definition, accepted or not, is another tool.
	changed := tenanttest.Tool("act")
	changed.Description = "Acts otherwise."
	s.List("src", changed)
	if d := s.snapshot().Decide(s.act(), with(func(*settings.Proposal) {})); d.Mode != envelope.ModeRequireApproval {
		t.Errorf("after a drift Decide = %s from %s", d.Mode, d.Source)
	}
	s.Must(func(ctx context.Context, tx pgx.Tx) error {
		return catalog.AcceptTool(ctx, tx, s.Tenant, s.act().Key, s.act().Digest)
	})
	if d := s.snapshot().Decide(s.act(), with(func(*settings.Proposal) {})); d.Mode != envelope.ModeRequireApproval {
		t.Errorf("after the drift was accepted Decide = %s from %s", d.Mode, d.Source)
	}
	s.List("src", tenanttest.Tool("act"))
	s.Must(func(ctx context.Context, tx pgx.Tx) error {
		return catalog.AcceptTool(ctx, tx, s.Tenant, s.act().Key, s.act().Digest)
	})
	if d := s.snapshot().Decide(s.act(), with(func(*settings.Proposal) {})); d.Mode != envelope.ModeAllow {
		t.Errorf("with the definition of before Decide = %s from %s", d.Mode, d.Source)
	}
}

// TestGrantsOfEarlierVersionsKeepTheirMeaning checks that they pin only their
// pins, and show that everything else is loose.
func TestGrantsOfEarlierVersionsKeepTheirMeaning(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.Exec(`INSERT INTO grants (tenant_id, grant_id, source_id, tool_name, tool_digest, pins, expires_at)
		VALUES ($1, gen_random_uuid(), 'src', 'act', $2, '{"/to/0": "a"}', now() + interval '1 hour')`, s.Tenant.String(), s.act().Binding)
	for args, want := range map[string]envelope.Mode{
		`{"to":["a","b"],"cc":1}`: envelope.ModeAllow, `{"to":["b"]}`: envelope.ModeRequireApproval,
	} {
		if d := s.snapshot().Decide(s.act(), settings.Proposal{Args: json.RawMessage(args), Now: s.now()}); d.Mode != want {
			t.Errorf("%s: Decide = %s, want %s", args, d.Mode, want)
		}
	}
	var all []settings.Grant
	s.Must(func(ctx context.Context, tx pgx.Tx) (err error) {
		all, err = settings.Grants(ctx, tx, s.Tenant, settings.GrantFilter{Most: 10})
		return err
	})
	if len(all) != 1 || !slices.Equal(all[0].Loose, []string{policy.Everything}) {
		t.Errorf("grants = %+v, want everything else loose", all)
	}
}

func TestGrantsNeedTheApprovalsOfReviews(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.grant(settings.Grant{Tool: s.act().Key, Digest: s.act().Binding, Loose: []string{policy.Everything}})
	p := settings.Proposal{Risk: envelope.RiskMedium, Now: s.now()}
	before := s.snapshot().Decide(s.act(), p)
	s.Must(func(ctx context.Context, tx pgx.Tx) error {
		return settings.PutReview(ctx, tx, s.Tenant, settings.ReviewRule{Pattern: "src:*", Risk: envelope.RiskMedium, Approvals: 2}, "ada")
	})

	after := s.snapshot().Decide(s.act(), p)

	if before.Mode != envelope.ModeAllow || after.Mode != envelope.ModeRequireApproval {
		t.Errorf("Decide = %s, and %s where two must approve; want allow and require_approval", before.Mode, after.Mode)
	}
}

func TestGrantsReadBackAndEnd(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	from := envelope.NewActionID()
	id := s.grant(settings.Grant{Tool: s.act().Key, Digest: s.act().Binding, Pins: map[string]json.RawMessage{"": json.RawMessage(`{"n": 1}`)}, Loose: []string{"/m"}, From: from, By: "ada"})
	list := func(ended bool) []settings.Grant {
		t.Helper()
		var all []settings.Grant
		s.Must(func(ctx context.Context, tx pgx.Tx) (err error) {
			all, err = settings.Grants(ctx, tx, s.Tenant, settings.GrantFilter{Ended: ended, Most: 100})
			return err
		})
		return all
	}

	got := list(false)

	if len(got) != 1 || got[0].ID != id || got[0].From != from || got[0].By != "ada" || got[0].ExpiresAt.Sub(got[0].CreatedAt) != settings.DefaultGrant || got[0].Version == 0 {
		t.Fatalf("Grants = %+v", got)
	}
	text, err := json.Marshal(got[0])
	if err != nil {
		t.Fatal(err)
	}
	var back settings.Grant
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got[0], back); diff != "" {
		t.Errorf("a grant written and read (-want +got):\n%s", diff)
	}

	before := s.snapshot().Version
	s.Must(func(ctx context.Context, tx pgx.Tx) error { return settings.RevokeGrant(ctx, tx, s.Tenant, id, "bo") })
	if s.snapshot().Version <= before || len(list(false)) != 0 || len(list(true)) != 1 || list(true)[0].RevokedBy != "bo" {
		t.Errorf("after it was revoked: %+v", list(true))
	}
	for _, gone := range []uuid.UUID{id, uuid.New()} {
		err := s.Try(func(ctx context.Context, tx pgx.Tx) error { return settings.RevokeGrant(ctx, tx, s.Tenant, gone, "bo") })
		if !errors.Is(err, fault.NotFound) {
			t.Errorf("RevokeGrant = %v, want fault.NotFound", err)
		}
	}
}

func TestInvalidGrants(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	good := settings.Grant{Tool: s.act().Key, Digest: s.act().Binding, Loose: []string{policy.Everything}}
	for name, change := range map[string]func(g *settings.Grant){
		"several tools":   func(g *settings.Grant) { g.Tool.Action = "*" },
		"no digest":       func(g *settings.Grant) { g.Digest = nil },
		"no time":         func(g *settings.Grant) { g.For = time.Millisecond },
		"a past":          func(g *settings.Grant) { g.For = -time.Hour },
		"too long":        func(g *settings.Grant) { g.For = settings.MaxGrant + time.Second },
		"a pin":           func(g *settings.Grant) { g.Pins = map[string]json.RawMessage{"to": json.RawMessage("1")} },
		"open by silence": func(g *settings.Grant) { g.Loose = nil },
		"a reason":        func(g *settings.Grant) { g.Reason = strings.Repeat("x", 501) },
	} {
		g := good
		change(&g)
		err := s.Try(func(ctx context.Context, tx pgx.Tx) error {
			_, err := settings.PutGrant(ctx, tx, s.Tenant, g)
			return err
		})
		if !errors.Is(err, fault.Invalid) {
			t.Errorf("%s: PutGrant = %v, want fault.Invalid", name, err)
		}
	}
	s.Exec(`INSERT INTO grants (tenant_id, grant_id, source_id, tool_name, tool_digest, expires_at)
		SELECT $1, gen_random_uuid(), 'src', 'act', '', now() + interval '1 hour' FROM generate_series(1, 1000)`, s.Tenant.String())
	if err := s.Try(func(ctx context.Context, tx pgx.Tx) error {
		_, err := settings.PutGrant(ctx, tx, s.Tenant, good)
		return err
	}); !errors.Is(err, fault.Conflict) {
		t.Errorf("PutGrant beside 1000 = %v, want fault.Conflict", err)
	}
}

func TestSessionsModesEnd(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.mode("", "*", envelope.ModeAllow)
	s.session("s-1", "*", envelope.ModeRequireApproval, 2*time.Hour)
	s.session("s-1", "src:act", envelope.ModeDeny, time.Hour)
	now := s.now()
	for name, tt := range map[string]struct {
		session string
		now     time.Time
		want    envelope.Mode
	}{
		"the particular one first": {"s-1", now, envelope.ModeDeny},
		"then the general one":     {"s-1", now.Add(time.Hour + time.Second), envelope.ModeRequireApproval},
		"then none":                {"s-1", now.Add(2*time.Hour + time.Second), envelope.ModeAllow},
		"without a clock":          {"s-1", time.Time{}, envelope.ModeDeny},
		"another session":          {"s-2", now, envelope.ModeAllow},
		"no session":               {"", now, envelope.ModeAllow},
	} {
		if d := s.snapshot().Decide(s.act(), settings.Proposal{Session: tt.session, Now: tt.now}); d.Mode != tt.want {
			t.Errorf("%s: Decide = %s from %s, want %s", name, d.Mode, d.Source, tt.want)
		}
	}
	for name, try := range map[string]func(ctx context.Context, tx pgx.Tx) error{
		"no session": func(ctx context.Context, tx pgx.Tx) error {
			_, err := settings.PutSessionMode(ctx, tx, s.Tenant, settings.SessionMode{Pattern: "*", Mode: envelope.ModeDeny}, time.Hour, "ada")
			return err
		},
		"too long": func(ctx context.Context, tx pgx.Tx) error {
			_, err := settings.PutSessionMode(ctx, tx, s.Tenant, settings.SessionMode{Session: "s", Pattern: "*", Mode: envelope.ModeDeny}, settings.MaxSessionMode+time.Second, "ada")
			return err
		},
		"a pattern": func(ctx context.Context, tx pgx.Tx) error {
			_, err := settings.PutSessionMode(ctx, tx, s.Tenant, settings.SessionMode{Session: "s", Pattern: "x", Mode: envelope.ModeDeny}, time.Hour, "ada")
			return err
		},
	} {
		if err := s.Try(try); !errors.Is(err, fault.Invalid) {
			t.Errorf("%s: PutSessionMode = %v, want fault.Invalid", name, err)
		}
	}
}

// TestExpireRecordsExpiredGrants lets time pass in the database.
func TestExpireRecordsExpiredGrants(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.session("s-1", "*", envelope.ModeDeny, time.Hour)
	s.session("s-2", "*", envelope.ModeDeny, time.Hour)
	s.session("s-3", "*", envelope.ModeDeny, 3*time.Hour)
	s.grant(settings.Grant{Tool: s.act().Key, Digest: s.act().Binding, Loose: []string{policy.Everything}, For: time.Hour})
	if before := s.snapshot().Version; s.expire(10) != 0 || s.snapshot().Version != before {
		t.Error("upkeep found something that has expired before anything has")
	}
	s.Exec("UPDATE session_modes SET expires_at = expires_at - interval '2 hours' WHERE tenant_id = $1", s.Tenant.String())
	s.Exec("UPDATE grants SET created_at = created_at - interval '2 hours', expires_at = expires_at - interval '2 hours' WHERE tenant_id = $1", s.Tenant.String())
	before := s.snapshot().Version

	took := []int{s.expire(1), s.expire(1), s.expire(1)}

	if diff := cmp.Diff([]int{1, 1, 0}, took); diff != "" {
		t.Errorf("Expire one at a time (-want +got):\n%s", diff)
	}
	if s.snapshot().Version <= before {
		t.Error("the version stayed as it was")
	}
	s.Must(func(ctx context.Context, tx pgx.Tx) error {
		left, err := settings.SessionModes(ctx, tx, s.Tenant, "")
		if len(left) != 1 || left[0].Session != "s-3" {
			t.Errorf("SessionModes = %+v, want that of s-3", left)
		}
		return err
	})
}

func TestPreferencesOfEmployeesAndEverybody(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.mode("", "*", envelope.ModeAllow)
	ana, bo := envelope.EmployeeID(uuid.New()), envelope.EmployeeID(uuid.New())
	put := func(p settings.Preference) {
		s.Must(func(ctx context.Context, tx pgx.Tx) error { return settings.PutPreference(ctx, tx, s.Tenant, p, "ada") })
	}
	mode := func(e envelope.EmployeeID) envelope.Mode {
		return s.snapshot().Decide(s.act(), settings.Proposal{Employee: e}).Mode
	}

	put(settings.Preference{Employee: ana, Pattern: "src:*"})
	one := []envelope.Mode{mode(ana), mode(bo), mode(envelope.EmployeeID{})}
	put(settings.Preference{Pattern: "*:act"})
	all := []envelope.Mode{mode(ana), mode(bo), mode(envelope.EmployeeID{})}

	if diff := cmp.Diff([]envelope.Mode{envelope.ModeDeny, envelope.ModeAllow, envelope.ModeAllow}, one); diff != "" {
		t.Errorf("switched off for one (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]envelope.Mode{envelope.ModeDeny, envelope.ModeDeny, envelope.ModeDeny}, all); diff != "" {
		t.Errorf("switched off for all (-want +got):\n%s", diff)
	}
}

func TestRulesSeeTheProposal(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.mode("", "*", envelope.ModeAllow)
	s.mode("nightly", "*", envelope.ModeAllow)
	s.rule(settings.Rule{ID: "all", Pattern: "*", Expression: `args.n > 1 && !employee.known && employee.id != "" && envelope.session == "s-1"`, Mode: "deny", Enabled: true})
	s.rule(settings.Rule{ID: "nightly", Automation: "nightly", Pattern: "src:act", Expression: `tool.name == "act" && envelope.automation == "nightly"`, Mode: "require_approval", Enabled: true})
	s.rule(settings.Rule{ID: "off", Pattern: "*", Expression: "true", Mode: "deny"})
	p := settings.Proposal{Employee: envelope.EmployeeID(uuid.New()), Session: "s-1", Args: json.RawMessage(`{"n":2}`)}
	other := p
	other.Session = "s-2"
	nightly := other
	nightly.Automation = "nightly"
	silent := p
	silent.Args = nil
	nobody := other
	nobody.Args, nobody.AnyArgs = nil, true

	for name, tt := range map[string]struct {
		proposed settings.Proposal
		want     string
	}{
		"all hold":               {p, "org_default+arguments:all"},
		"one does not":           {other, "org_default"},
		"under the automation":   {nightly, "automation_override+arguments:nightly"},
		"arguments nobody knows": {nobody, "org_default"},
		"no arguments":           {silent, "org_default+arguments:all"},
	} {
		if got := s.snapshot().Decide(s.act(), tt.proposed); got.Source != tt.want {
			t.Errorf("%s: Decide from %s, want %s", name, got.Source, tt.want)
		}
	}
}

func TestInvalidRules(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	closed := source.Tool{Name: "closed", InputSchema: json.RawMessage(`{"type":"object","properties":{"to":{}},"additionalProperties":false}`)}
	s.List("src", tenanttest.Tool("act"), closed)
	for name, r := range map[string]settings.Rule{
		"an id":         {ID: "Not so", Pattern: "*", Expression: "true", Mode: "deny"},
		"no id":         {Pattern: "*", Expression: "true", Mode: "deny"},
		"a pattern":     {ID: "r", Pattern: "x", Expression: "true", Mode: "deny"},
		"a mode":        {ID: "r", Pattern: "*", Expression: "true", Mode: "allow"},
		"an expression": {ID: "r", Pattern: "*", Expression: "tru", Mode: "deny"},
		"an argument":   {ID: "r", Pattern: "src:closed", Expression: `args.cc == ""`, Mode: "deny"},
	} {
		if err := s.Try(func(ctx context.Context, tx pgx.Tx) error { return s.putRule(ctx, tx, r) }); !errors.Is(err, fault.Invalid) {
			t.Errorf("%s: PutRule = %v, want fault.Invalid", name, err)
		}
	}
	s.rule(settings.Rule{ID: "r", Pattern: "src:*", Expression: `args.cc == ""`, Mode: "deny"})

	s.Exec("INSERT INTO policy_rules (tenant_id, rule_id, key, expression, mode) SELECT $1, 'n' || n, '*', 'true', 'deny' FROM generate_series(2, 200) n", s.Tenant.String())
	s.rule(settings.Rule{ID: "r", Pattern: "src:*", Expression: `true`, Mode: "deny"})
	if err := s.Try(func(ctx context.Context, tx pgx.Tx) error {
		return s.putRule(ctx, tx, settings.Rule{ID: "one-more", Pattern: "*", Expression: "true", Mode: "deny"})
	}); !errors.Is(err, fault.Conflict) {
		t.Errorf("PutRule beside 200 = %v, want fault.Conflict", err)
	}
}

// TestInvalidStoredRulesDeny inserts rules that another version may have
// written.
func TestInvalidStoredRulesDeny(t *testing.T) {
	t.Parallel()
	const rule = "INSERT INTO policy_rules (tenant_id, rule_id, key, expression, mode) VALUES ($1, 'r', "
	for name, tt := range map[string]struct{ sql, want string }{
		"an expression":      {rule + `'*', 'from.the.future()', 'require_approval')`, "org_default+rule_error:r"},
		"a mode":             {rule + `'*', 'true', 'ask_twice')`, "org_default+unknown_mode:ask_twice"},
		"a key":              {rule + `'s*c', 'true', 'require_approval')`, "org_default+unknown_key:s*c"},
		"a session's mode":   {"INSERT INTO session_modes (tenant_id, session_id, key, mode, expires_at) VALUES ($1, 's-1', '*', 'ask_twice', now() + interval '1 hour')", "org_default+unknown_mode:ask_twice"},
		"a session's key":    {"INSERT INTO session_modes (tenant_id, session_id, key, mode, expires_at) VALUES ($1, 's-1', 'x', 'allow', now() + interval '1 hour')", "org_default+unknown_key:x"},
		"a preference's key": {"INSERT INTO preferences (tenant_id, key) VALUES ($1, 'x')", "org_default+unknown_key:x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t)
			s.mode("", "*", envelope.ModeAllow)
			s.Exec(tt.sql, s.Tenant.String())

			d := s.snapshot().Decide(s.act(), settings.Proposal{Session: "s-1", Now: s.now()})

			if d.Mode != envelope.ModeDeny || d.Source != tt.want {
				t.Errorf("Decide = %s from %s, want deny from %s", d.Mode, d.Source, tt.want)
			}
		})
	}
	s := newFixture(t)
	s.Exec(`INSERT INTO grants (tenant_id, grant_id, source_id, tool_name, tool_digest, pins, expires_at)
		SELECT $1, gen_random_uuid(), 'src', 'act', t.digest, '{"to": 1}', now() + interval '1 hour' FROM tools t WHERE t.tenant_id = $1`, s.Tenant.String())
	if d := s.snapshot().Decide(s.act(), settings.Proposal{Now: s.now()}); d.Mode != envelope.ModeRequireApproval {
		t.Errorf("a grant with pins that nobody can read: Decide = %s from %s", d.Mode, d.Source)
	}
}

func TestWithChangesThePolicy(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.mode("", "*", envelope.ModeAllow)
	s.mode("nightly", "*", envelope.ModeDeny)
	s.rule(settings.Rule{ID: "r", Pattern: "*", Expression: "args.n > 1", Mode: "deny", Enabled: true})
	s.Must(func(ctx context.Context, tx pgx.Tx) error {
		return settings.PutPreference(ctx, tx, s.Tenant, settings.Preference{Pattern: "other:*"}, "ada")
	})
	snap, act := s.snapshot(), s.act()
	sources := func(snap *settings.Settings) string {
		var all []string
		for _, p := range []settings.Proposal{{Args: json.RawMessage(`{"n":2}`)}, {Args: json.RawMessage(`{"n":1}`)}, {Automation: "nightly", AnyArgs: true}} {
			all = append(all, snap.Decide(act, p).Source)
		}
		return fmt.Sprint(all)
	}
	before := sources(snap)

	for name, tt := range map[string]struct {
		change settings.Document
		want   string
	}{
		"no change": {settings.Document{}, "[org_default+arguments:r org_default automation_override]"},
		"no modes":  {settings.Document{Modes: []settings.Mode{}}, "[inferred_default+arguments:r inferred_default inferred_default]"},
		"other modes": {settings.Document{Modes: []settings.Mode{{Pattern: "src:act", Mode: "deny"}, {Automation: "nightly", Pattern: "*", Mode: "odd"}}},
			"[org_default org_default unknown_mode:odd]"},
		"no rules":    {settings.Document{Rules: []settings.Rule{}}, "[org_default org_default automation_override]"},
		"other rules": {settings.Document{Rules: []settings.Rule{{ID: "q", Pattern: "*", Expression: "args.n == 1", Mode: "require_approval", Enabled: true}}}, "[org_default org_default+arguments:q automation_override]"},
		"preferences": {settings.Document{Preferences: []settings.Preference{{Pattern: "src:*"}}}, "[org_default+arguments:r+user_preference org_default+user_preference automation_override]"},
	} {
		if got := sources(snap.With(tt.change)); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
	if after := sources(snap); after != before {
		t.Errorf("the snapshot itself decides %s by now, and %s before", after, before)
	}
	if err := snap.CheckRule(settings.Rule{ID: "r", Pattern: "*", Expression: "tru", Mode: "deny"}); !errors.Is(err, fault.Invalid) {
		t.Errorf("CheckRule = %v, want fault.Invalid", err)
	}
}
