package access_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/reconcile"
	"github.com/countersign-dev/countersign/internal/action/subscription"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// loosens reports whether a change loosens anything.
func loosens(before, after access.Configuration) bool {
	return slices.ContainsFunc(access.Compare(before, after), func(c access.Change) bool { return c.Loosens })
}

// TestLooseningChanges compares the settings of a row, in both directions.
func TestLooseningChanges(t *testing.T) {
	t.Parallel()
	key := policy.Key{Source: "bank", Action: "pay"}
	tool := func(change func(*catalog.Tool)) access.Configuration {
		one := &catalog.Tool{Key: key, Risk: policy.RiskWrite, Effect: envelope.EffectKeyed, Scopes: []string{"pay"}}
		change(one)
		return access.Configuration{Tools: []*catalog.Tool{one}}
	}
	as := func(change func(*access.Configuration)) access.Configuration {
		var c access.Configuration
		change(&c)
		return c
	}
	mode := func(pattern string, m envelope.Mode) access.Configuration {
		return as(func(c *access.Configuration) { c.Policy.Modes = []settings.Mode{{Pattern: pattern, Mode: string(m)}} })
	}
	session := func(m envelope.Mode, until int64) access.Configuration {
		return as(func(c *access.Configuration) {
			c.Sessions = []settings.SessionMode{{Session: "s", Pattern: "*", Mode: m, ExpiresAt: time.Unix(until, 0)}}
		})
	}
	rule := func(r settings.Rule) access.Configuration {
		r.ID, r.Pattern = "r", "bank:*"
		return as(func(c *access.Configuration) { c.Policy.Rules = []settings.Rule{r} })
	}
	review := func(r settings.ReviewRule) access.Configuration {
		r.Pattern, r.Risk = "bank:*", envelope.RiskLow
		return as(func(c *access.Configuration) { c.Policy.Reviews = []settings.ReviewRule{r} })
	}
	tenant := func(of limits.Tenant) access.Configuration {
		return as(func(c *access.Configuration) { c.Limits.Settings = &of })
	}
	bucket := func(all ...limits.Bucket) access.Configuration {
		return as(func(c *access.Configuration) { c.Limits.Buckets = all })
	}
	employee := func(all ...limits.Employee) access.Configuration {
		return as(func(c *access.Configuration) { c.Limits.Employees = all })
	}
	source := func(of catalog.Source) access.Configuration {
		of.ID = "bank"
		return as(func(c *access.Configuration) { c.Sources = []catalog.Source{of} })
	}
	at := func(port int) json.RawMessage { return fmt.Appendf(nil, `{"url":"http://127.0.0.1:%d"}`, port) }
	snapshot := func(r catalog.SnapshotRule) access.Configuration {
		return as(func(c *access.Configuration) { c.Snapshots = map[policy.Key]catalog.SnapshotRule{key: r} })
	}
	ana := envelope.EmployeeID(uuid.Must(uuid.NewV7()))
	to, err := contact.ParsePattern("/to")
	if err != nil {
		t.Fatal(err)
	}
	var none access.Configuration
	const ask, deny, allow = envelope.ModeRequireApproval, envelope.ModeDeny, envelope.ModeAllow
	minute := limits.Duration(time.Minute)

	for name, tt := range map[string]struct {
		was, is   access.Configuration
		way, back bool // from was to is, and back
	}{
		"risk":                       {tool(func(t *catalog.Tool) { t.Risk = policy.RiskDanger }), tool(func(*catalog.Tool) {}), true, false},
		"effect class":               {tool(func(t *catalog.Tool) { t.Effect = envelope.EffectOnce }), tool(func(*catalog.Tool) {}), true, false},
		"a read":                     {tool(func(t *catalog.Tool) { t.Effect = envelope.EffectIdempotent }), tool(func(t *catalog.Tool) { t.Effect = envelope.EffectRead }), true, false},
		"scopes":                     {tool(func(*catalog.Tool) {}), tool(func(t *catalog.Tool) { t.Scopes = nil }), true, false},
		"other scopes":               {tool(func(*catalog.Tool) {}), tool(func(t *catalog.Tool) { t.Scopes = []string{"other"} }), true, true},
		"recipients":                 {tool(func(t *catalog.Tool) { t.Recipients = []contact.Pattern{to} }), tool(func(*catalog.Tool) {}), true, false},
		"drift":                      {tool(func(t *catalog.Tool) { t.Drift = catalog.DriftInterface }), tool(func(*catalog.Tool) {}), true, false},
		"quarantine":                 {tool(func(t *catalog.Tool) { t.Quarantined = true }), tool(func(*catalog.Tool) {}), true, false},
		"reversal":                   {tool(func(*catalog.Tool) {}), tool(func(t *catalog.Tool) { t.Reversal = &catalog.Reversal{Tool: key} }), true, false},
		"attempts":                   {tool(func(*catalog.Tool) {}), tool(func(t *catalog.Tool) { t.MaxAttempts = 9 }), false, false},
		"allow instead of nothing":   {none, mode("*", allow), true, false},
		"approval instead of denial": {mode("*", deny), mode("*", ask), true, false},
		"approval instead of nothing, which may be denial": {none, mode("*", ask), true, true},
		"denial":                               {none, mode("*", deny), false, true},
		"session: denial ends earlier":         {session(deny, 9), session(deny, 8), true, false},
		"session: allow ends earlier":          {session(allow, 9), session(allow, 8), false, false},
		"a rule":                               {rule(settings.Rule{Enabled: true, Mode: "deny"}), none, true, false},
		"a rule that is off":                   {rule(settings.Rule{Mode: "deny"}), none, false, false},
		"a rule with another expression":       {rule(settings.Rule{Enabled: true, Mode: "deny", Expression: "a"}), rule(settings.Rule{Enabled: true, Mode: "deny", Expression: "b"}), true, true},
		"a rule with another reason":           {rule(settings.Rule{Enabled: true, Mode: "deny"}), rule(settings.Rule{Enabled: true, Mode: "deny", Reason: "b"}), false, false},
		"a rule that asks":                     {rule(settings.Rule{Enabled: true, Mode: "deny"}), rule(settings.Rule{Enabled: true, Mode: "require_approval"}), true, false},
		"a preference":                         {as(func(c *access.Configuration) { c.Policy.Preferences = []settings.Preference{{Pattern: "*"}} }), none, true, false},
		"two people":                           {review(settings.ReviewRule{Approvals: 2}), review(settings.ReviewRule{Approvals: 1}), true, false},
		"a review of two":                      {review(settings.ReviewRule{Approvals: 2}), none, true, false},
		"a review of one":                      {review(settings.ReviewRule{Approvals: 1}), none, false, false},
		"times of a review":                    {review(settings.ReviewRule{Approvals: 2, Wait: &minute}), review(settings.ReviewRule{Approvals: 2}), false, false},
		"a grant":                              {none, as(func(c *access.Configuration) { c.Grants = []settings.Grant{{Tool: key}} }), true, false},
		"time zone":                            {tenant(limits.Tenant{Timezone: "UTC"}), tenant(limits.Tenant{Timezone: "Asia/Tokyo"}), true, true},
		"plus-addressing":                      {tenant(limits.Tenant{PlusAddressing: true}), tenant(limits.Tenant{}), true, false},
		"session limits":                       {tenant(limits.Tenant{SessionMinute: new(60)}), tenant(limits.Tenant{SessionMinute: new(0)}), true, false},
		"a ceiling":                            {bucket(limits.Bucket{Name: "a", Concurrency: 2}), bucket(limits.Bucket{Name: "a"}), true, false},
		"a rate":                               {bucket(limits.Bucket{Name: "a", Rate: &limits.Rate{Limit: 60, Per: minute}}), bucket(limits.Bucket{Name: "a", Rate: &limits.Rate{Limit: 2, Per: minute / 60}}), true, false},
		"a burst":                              {bucket(limits.Bucket{Name: "a", Rate: &limits.Rate{Limit: 60, Per: minute}}), bucket(limits.Bucket{Name: "a", Rate: &limits.Rate{Limit: 60, Per: minute, Burst: 2}}), true, false},
		"a calendar":                           {bucket(limits.Bucket{Name: "a", Calendar: &limits.Calendar{Limit: 1, Every: limits.PeriodDay}}), bucket(limits.Bucket{Name: "a", Calendar: &limits.Calendar{Limit: 1, Every: limits.PeriodHour}}), true, true},
		"a bucket beside a limited one":        {bucket(limits.Bucket{Name: "a", Concurrency: 2}), bucket(limits.Bucket{Name: "a", Concurrency: 2}, limits.Bucket{Name: "b"}), true, false},
		"a tighter bucket beside a looser one": {bucket(limits.Bucket{Name: "a"}), bucket(limits.Bucket{Name: "a"}, limits.Bucket{Name: "b", Concurrency: 2}), false, false},
		"trust":                                {employee(limits.Employee{ID: ana, Trust: policy.TrustLow}), employee(limits.Employee{ID: ana, Trust: policy.TrustHigh}), true, false},
		"scopes of an employee":                {employee(limits.Employee{ID: ana, Scopes: []string{"a:b"}}), employee(limits.Employee{ID: ana, Scopes: []string{"a:*"}}), true, false},
		"an entry, where there is none":        {employee(limits.Employee{ID: ana}), none, true, false},
		"an entry, where all others have one":  {employee(limits.Employee{Trust: policy.TrustLow}), employee(limits.Employee{Trust: policy.TrustLow}, limits.Employee{ID: ana, Trust: policy.TrustMedium}), true, false},
		"a source":                             {source(catalog.Source{Enabled: true}), none, true, true},
		"a source in quarantine":               {source(catalog.Source{Enabled: true, Unaccepted: true}), none, true, false},
		"an accepted source":                   {source(catalog.Source{Unaccepted: true}), source(catalog.Source{}), true, false},
		"a source's address":                   {source(catalog.Source{Kind: "mcp", Config: at(1)}), source(catalog.Source{Kind: "mcp", Config: at(2)}), true, true},
		"a source's address, in quarantine":    {source(catalog.Source{Config: at(1)}), source(catalog.Source{Config: at(2), Unaccepted: true}), false, true},
		"a source's credentials":               {source(catalog.Source{Secret: at(1)}), source(catalog.Source{Secret: at(2)}), true, true},
		"a source's risk":                      {source(catalog.Source{}), source(catalog.Source{DefaultRisk: policy.RiskRead}), true, false},
		"a new source's risk":                  {none, source(catalog.Source{DefaultRisk: policy.RiskRead}), true, true},
		"a source that is on":                  {source(catalog.Source{}), source(catalog.Source{Enabled: true}), true, false},
		"a source's guard":                     {source(catalog.Source{DriftGuard: catalog.GuardFull}), source(catalog.Source{DriftGuard: catalog.GuardInterface}), true, false},
		"a source's quarantine":                {source(catalog.Source{Quarantine: true}), source(catalog.Source{}), true, false},
		"a read that is required":              {snapshot(catalog.SnapshotRule{Tool: "list", Required: true}), snapshot(catalog.SnapshotRule{Tool: "list"}), true, false},
		"sending again": {none, as(func(c *access.Configuration) {
			c.Reconciles = []reconcile.ToolRule{{Key: key, Rule: reconcile.Rule{Resend: true}}}
		}), true, false},
		"a subscription": {none, as(func(c *access.Configuration) {
			c.Subscriptions = []subscription.Subscription{{Name: "a", Source: "hooks"}}
		}), true, false},
	} {
		if way, back := loosens(tt.was, tt.is), loosens(tt.is, tt.was); way != tt.way || back != tt.back {
			t.Errorf("%s: loosens %t, and back %t; want %t and %t", name, way, back, tt.way, tt.back)
		}
	}
}

func TestLooseningContactChanges(t *testing.T) {
	t.Parallel()
	ana, soon, late := contact.Contact{Kind: contact.Email, Value: "ana@example.org"}, time.Unix(1, 0), time.Unix(2, 0)
	type ends = map[contact.Contact]*time.Time

	for name, tt := range map[string]struct {
		was, is ends
		want    bool
	}{
		"a new one":         {ends{}, ends{ana: nil}, false},
		"gone":              {ends{ana: nil}, ends{}, true},
		"ends":              {ends{ana: nil}, ends{ana: &late}, true},
		"ends earlier":      {ends{ana: &late}, ends{ana: &soon}, true},
		"ends later":        {ends{ana: &soon}, ends{ana: &late}, false},
		"does not end":      {ends{ana: &soon}, ends{ana: nil}, false},
		"stays as it was":   {ends{ana: &soon}, ends{ana: &soon}, false},
		"never was, is not": {ends{}, ends{}, false},
	} {
		if got := len(access.CompareContacts(tt.was, tt.is)) > 0; got != tt.want {
			t.Errorf("an entry %s: loosens %t, want %t", name, got, tt.want)
		}
	}
}

func TestChangesAreHeldToRightsAndTools(t *testing.T) {
	t.Parallel()
	ana := uuid.Must(uuid.NewV7())
	pay := policy.Key{Source: "bank", Action: "pay"}
	operator, admin := identity.Principal{Role: identity.RoleOperator, Operator: ana}, identity.Principal{Role: identity.RoleAdmin}
	narrowed := func(p identity.Principal, scopes []identity.Scope, tools ...string) identity.Principal {
		p.Scopes, p.Tools = scopes, tools
		return p
	}

	for name, tt := range map[string]struct {
		by     identity.Principal
		change access.Change
		want   bool
	}{
		"an operator tightens":                {operator, access.Change{Tools: pay}, true},
		"an operator loosens":                 {operator, access.Change{Tools: pay, Loosens: true}, false},
		"an operator takes back their own":    {operator, access.Change{Tools: pay, Loosens: true, SetBy: ana}, true},
		"an operator takes back another's":    {operator, access.Change{Tools: pay, Loosens: true, SetBy: uuid.Max}, false},
		"an administrator loosens":            {admin, access.Change{Tools: pay, Loosens: true}, true},
		"an administrator without the scope":  {narrowed(admin, []identity.Scope{identity.LimitsWrite}), access.Change{Tools: pay, Loosens: true}, false},
		"an operator with the scope":          {narrowed(operator, []identity.Scope{identity.PolicyWrite}), access.Change{Tools: pay, Loosens: true}, false},
		"a token for the tool":                {narrowed(admin, nil, "bank:*"), access.Change{Tools: pay, Loosens: true}, true},
		"a token for another tool":            {narrowed(admin, nil, "mail:*"), access.Change{Tools: pay}, false},
		"a token for a tool, and all tools":   {narrowed(admin, nil, "bank:*"), access.Change{Tools: policy.Key{Source: "*", Action: "*"}}, false},
		"a token for a tool, and its sources": {narrowed(admin, nil, "bank:pay"), access.Change{Tools: policy.Key{Source: "bank", Action: "*"}}, false},
	} {
		if err := access.AdmitChanges(tt.by, []access.Change{{Tools: pay}, tt.change}[1:]); (err == nil) != tt.want || err != nil && !errors.Is(err, fault.Denied) {
			t.Errorf("%s: %v, want it admitted: %t", name, err, tt.want)
		}
	}
}

// world is a configuration that is small enough for all proposals to be tried.
type world struct {
	access.Configuration
	language  *policy.Language
	arguments policy.Arguments
}

var (
	worldTools     = []policy.Key{{Source: "a", Action: "x"}, {Source: "a", Action: "y"}, {Source: "b", Action: "x"}}
	worldPatterns  = []string{"a:x", "a:*", "*:x", "b:x", "*", "*:*"}
	worldModes     = []string{"allow", "require_approval", "deny"}
	worldRisks     = []policy.ToolRisk{policy.RiskRead, policy.RiskWrite, policy.RiskDanger}
	worldEmployees = []envelope.EmployeeID{{}, {1}, {2}}
	worldTrusts    = []policy.Trust{policy.TrustNone, policy.TrustLow, policy.TrustMedium, policy.TrustHigh}
	worldScopes    = [][]string{{}, {"s:a"}, {"s:a", "s:b"}, {"s:*"}}
	worldRules     = []string{"true", "tool.risk == 'write'", "employee.trust == 'low'", "size(employee.scopes) == 1", "employee.known", "envelope.risk == 'medium'"}
)

func pick[T any](rt *rapid.T, from []T) T { return rapid.SampledFrom(from).Draw(rt, "pick") }

// edit changes one setting, or adds or removes one.
func (w *world) edit(rt *rapid.T) {
	p := &w.Policy
	switch rapid.IntRange(0, 8).Draw(rt, "section") {
	case 0:
		p.Modes = edited(rt, p.Modes, func() settings.Mode {
			return settings.Mode{Automation: pick(rt, []string{"", "auto"}), Pattern: pick(rt, worldPatterns), Mode: pick(rt, worldModes)}
		}, func(m settings.Mode) string { return m.Automation + m.Pattern })
	case 1:
		w.Sessions = edited(rt, w.Sessions, func() settings.SessionMode {
			return settings.SessionMode{Session: "s", Pattern: pick(rt, worldPatterns), Mode: envelope.Mode(pick(rt, worldModes))}
		}, func(m settings.SessionMode) string { return m.Pattern })
	case 2:
		p.Rules = edited(rt, p.Rules, func() settings.Rule {
			return settings.Rule{
				ID: pick(rt, []string{"r1", "r2"}), Automation: pick(rt, []string{"", "auto"}), Pattern: pick(rt, worldPatterns), Expression: pick(rt, worldRules),
				Mode: pick(rt, worldModes[1:]), Enabled: rapid.IntRange(0, 3).Draw(rt, "off") > 0,
			}
		}, func(r settings.Rule) string { return r.ID })
	case 3:
		p.Preferences = edited(rt, p.Preferences, func() settings.Preference {
			return settings.Preference{Employee: pick(rt, worldEmployees), Pattern: pick(rt, worldPatterns)}
		}, func(p settings.Preference) string { return p.Employee.String() + p.Pattern })
	case 4:
		w.Limits.Employees = edited(rt, w.Limits.Employees, func() limits.Employee {
			return limits.Employee{ID: pick(rt, worldEmployees), Trust: pick(rt, worldTrusts), Scopes: pick(rt, worldScopes)}
		}, func(e limits.Employee) string { return e.ID.String() })
	case 5:
		w.Grants = edited(rt, w.Grants, func() settings.Grant {
			return settings.Grant{ID: pick(rt, []uuid.UUID{{1}, {2}}), Tool: pick(rt, worldTools)}
		}, func(g settings.Grant) string { return g.ID.String() })
	case 6, 7, 8:
		tools := slices.Clone(w.Tools)
		at := rapid.IntRange(0, len(tools)-1).Draw(rt, "tool")
		tools[at] = newTool(rt, tools[at].Key)
		w.Tools = tools
	}
}

func newTool(rt *rapid.T, key policy.Key) *catalog.Tool {
	return &catalog.Tool{
		Key: key, Risk: pick(rt, worldRisks), Effect: envelope.EffectOnce, Scopes: pick(rt, worldScopes[:3]),
		Drift: pick(rt, []catalog.Drift{catalog.DriftNone, catalog.DriftInterface}), Quarantined: rapid.IntRange(0, 9).Draw(rt, "quarantined") == 0,
	}
}

// edited returns a list with an item more, another one in place of an item, or
// an item less.
func edited[T any](rt *rapid.T, all []T, item func() T, key func(T) string) []T {
	if len(all) > 0 && rapid.IntRange(0, 2).Draw(rt, "remove") == 0 {
		at := rapid.IntRange(0, len(all)-1).Draw(rt, "at")
		return slices.Delete(slices.Clone(all), at, at+1)
	}
	is := item()
	return append(slices.DeleteFunc(slices.Clone(all), func(was T) bool { return key(was) == key(is) }), is)
}

// compile prepares the rules about arguments.
func (w *world) compile() {
	var rules []policy.ArgumentRule
	for _, r := range w.Policy.Rules {
		if r.Enabled {
			rules = append(rules, policy.ArgumentRule{ID: r.ID, Automation: r.Automation, Key: r.Pattern, Expression: r.Expression, Mode: r.Mode})
		}
	}
	w.arguments = policy.CompileArguments(func() (*policy.Language, error) { return w.language, nil }, rules)
}

// decide evaluates policy for a call, with the tenant's settings.
func (w *world) decide(t *catalog.Tool, automation, session string, employee envelope.EmployeeID) envelope.Mode {
	in := policy.Input{Key: t.Key, Risk: t.Risk, EnvelopeRisk: t.Risk.Envelope(), Drifted: t.Drifted(), Quarantined: t.Quarantined}
	modes := make(map[string][]policy.Rule)
	for _, m := range w.Policy.Modes {
		modes[m.Automation] = append(modes[m.Automation], policy.Rule{Key: m.Pattern, Mode: m.Mode})
	}
	in.Organisation = policy.Compile(modes[""])
	if automation != "" {
		in.Automation = policy.Compile(modes[automation])
	}
	off := make(map[envelope.EmployeeID][]policy.Rule)
	for _, p := range w.Policy.Preferences {
		off[p.Employee] = append(off[p.Employee], policy.Rule{Key: p.Pattern, Mode: "deny"})
	}
	in.Everybody, in.Personal = policy.Compile(off[envelope.EmployeeID{}]), policy.Compile(off[employee])
	var ofSession []policy.Rule
	for _, m := range w.Sessions {
		if m.Session == session {
			ofSession = append(ofSession, policy.Rule{Key: m.Pattern, Mode: string(m.Mode)})
		}
	}
	in.Session = policy.Compile(ofSession)
	subject := &policy.Subject{Key: t.Key, Risk: t.Risk, EnvelopeRisk: in.EnvelopeRisk, Automation: automation, Session: session, Scopes: []string{}}
	byID := make(map[envelope.EmployeeID]limits.Employee)
	for _, e := range w.Limits.Employees {
		byID[e.ID] = e
	}
	entry, known := byID[employee]
	subject.Known = known && employee != envelope.EmployeeID{}
	if !known {
		entry, known = byID[envelope.EmployeeID{}]
	}
	if known {
		in.Trust, in.MissingScopes = entry.Trust, policy.MissingScopes(entry.Scopes, t.Scopes)
		subject.Trust, subject.Scopes = entry.Trust, append(subject.Scopes, entry.Scopes...)
	}
	in.Matches = w.arguments.Match(automation, t.Key, func() *policy.Subject { return subject })
	if slices.ContainsFunc(w.Grants, func(g settings.Grant) bool { return g.Tool == t.Key }) {
		in.Grant = policy.GrantFound{ID: "g"}
	}
	return policy.Decide(in).Mode
}

// A change that loosens nothing makes no decision about any proposal less
// strict.
func TestAChangeThatLoosensNothingLetsNothingThrough(t *testing.T) {
	t.Parallel()
	language, err := policy.NewLanguage()
	if err != nil {
		t.Fatal(err)
	}
	loose, tight := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		was := world{language: language}
		was.Policy.Modes = []settings.Mode{{Pattern: "*", Mode: pick(rt, worldModes)}}
		for _, key := range worldTools {
			was.Tools = append(was.Tools, newTool(rt, key))
		}
		for range rapid.IntRange(0, 8).Draw(rt, "settings") {
			was.edit(rt)
		}
		if changes := access.Compare(was.Configuration, was.Configuration); len(changes) > 0 {
			rt.Fatalf("a configuration differs from itself: %+v", changes)
		}
		was.compile()
		for range 20 {
			is := was
			for range rapid.IntRange(1, 2).Draw(rt, "edits") {
				is.edit(rt)
			}
			changes := access.Compare(was.Configuration, is.Configuration)
			if slices.ContainsFunc(changes, func(c access.Change) bool { return c.Loosens }) {
				loose++
				continue
			}
			tight++
			is.compile()
			was.compare(rt, &is, changes)
		}
	})
	if loose == 0 || tight == 0 {
		t.Errorf("%d changes loosen and %d do not, want some of each", loose, tight)
	}
}

// compare fails if a decision of another world is less strict.
func (w *world) compare(rt *rapid.T, is *world, changes []access.Change) {
	for i := range w.Tools {
		for _, automation := range []string{"", "auto"} {
			for _, session := range []string{"", "s"} {
				for _, employee := range append(slices.Clone(worldEmployees), envelope.EmployeeID{3}) {
					before, after := w.decide(w.Tools[i], automation, session, employee), is.decide(is.Tools[i], automation, session, employee)
					if policy.Stricter(before, after) != after {
						rt.Fatalf("%s of automation %q, session %q and employee %s was %s and is %s; changes: %+v",
							w.Tools[i].Key, automation, session, employee, before, after, changes)
					}
				}
			}
		}
	}
}
