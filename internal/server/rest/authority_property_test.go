package rest_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// authoritySequences is the number of random sequences of calls. Raise it for
// a longer search.
const authoritySequences = 24

// authoritySources are the sources that steps create, change and delete: mail,
// which exists, and another one, perhaps at the same address.
var authoritySources = []string{"mail", "alias"}

// authorityStep is a call by one of the callers.
type authorityStep struct {
	// By is the index of who makes it; above is those who may loosen.
	By    int
	Above bool
	visit
}

const (
	authorityEmployee = "0199f0c1-0000-7000-8000-00000000a0a0"
	// authoritySession is the one in which the tool danger is not denied.
	authoritySession = "trusted"
)

func sampled[T any](t *rapid.T, from ...T) T { return rapid.SampledFrom(from).Draw(t, "of") }

// authorityCall returns a random call that changes configuration that policy
// depends on.
func authorityCall(t *rapid.T) authorityStep {
	tool := "/api/v1/tools/mail:" + sampled(t, "read", "write", "danger", "fresh")
	pattern := sampled(t, "mail:read", "mail:write", "mail:danger", "mail:*", "*:write", "alias:*", "*")
	mode := object{"mode": sampled(t, "allow", "require_approval", "deny")}
	employee := "/api/v1/employees/" + sampled(t, "default", authorityEmployee)
	id := sampled(t, authoritySources...)
	set := object{"quarantine": sampled(t, true, true, false), "enabled": sampled(t, true, true, false)}
	if risk := sampled(t, "", "", "read", "write", "danger"); risk != "" {
		set["default_risk"] = risk
	}
	if rapid.IntRange(0, 3).Draw(t, "credentials") == 0 {
		set["credentials"] = object{"header": object{"X-Account": "other"}}
	}
	put := visit{"PUT", "/api/v1/sources/" + id, mcpSource(sampled(t, "9", "9", "10"), set), 0}
	person := object{"name": "below", "role_set": sampled(t, "viewer", "operator", "admin"), "disabled": sampled(t, true, false)}
	pausing := sampled(t, object{"scope": "source", "subject": "mail", "reason": "x"}, object{"scope": "tenant", "reason": "x"}, object{"scope": "tool", "subject": "mail:write", "reason": "x"})
	overrides := object{}
	if risk := sampled(t, "", "read", "write", "danger"); risk != "" {
		overrides["risk"] = risk
	}
	if effect := sampled(t, "", "read", "idempotent", "once"); effect != "" {
		overrides["effect"] = effect
	}
	return authorityStep{By: rapid.IntRange(0, 100).Draw(t, "by"), Above: rapid.IntRange(0, 5).Draw(t, "above") == 0, visit: sampled(t,
		visit{"PUT", tool + "/overrides", overrides, 0},
		visit{"PUT", tool + "/overrides", overrides, 0},
		visit{"POST", "/api/v1/pauses", pausing, 0},
		visit{liftPause, pausing["scope"].(string), nil, 0},
		visit{"PUT", tool + "/rule", object{"recipients": sampled(t, []string{}, []string{"/to"}), "scopes": sampled(t, []string{}, []string{"mail:send"}, []string{"mail:send", "mail:all"})}, 0},
		visit{"PUT", "/api/v1/preferences/" + pattern, nil, 0},
		visit{"DELETE", "/api/v1/preferences/" + pattern, nil, 0},
		visit{"PUT", employee, object{"trust": sampled(t, "none", "low", "medium", "high"), "scopes": sampled(t, []string{}, []string{"mail:send"}, []string{"mail:*"})}, 0},
		visit{"DELETE", employee, nil, 0},
		put, put, put,
		visit{"DELETE", "/api/v1/sources/" + id, nil, 0},
		visit{listSource, id, nil, 0}, visit{listSource, id, nil, 0},
		visit{acceptSource, id, nil, 0}, visit{acceptSource, id, nil, 0},
		visit{setPerson, "", person, 0},
		visit{"PUT", "/api/v1/policy/modes/" + pattern, mode, 0},
		visit{"PUT", "/api/v1/policy/modes/" + pattern + "?automation_id=newsletter", mode, 0},
		visit{"DELETE", "/api/v1/policy/modes/" + pattern, nil, 0},
		visit{"PUT", "/api/v1/policy/rules/" + sampled(t, "one", "two"), object{"tool": pattern, "expression": "has(args.to)", "mode": sampled(t, "require_approval", "deny"), "enabled": sampled(t, true, false)}, 0},
		visit{"DELETE", "/api/v1/policy/rules/" + sampled(t, "one", "two"), nil, 0},
		visit{"PUT", "/api/v1/policy/sessions/s-one/" + pattern, object{"mode": mode["mode"], "expires_in": sampled(t, "1m", "1h")}, 0},
		visit{"PUT", "/api/v1/reviews/" + pattern, object{"approvals": 1}, 0},
		visit{"DELETE", "/api/v1/reviews/*", nil, 0},
		visit{"POST", "/api/v1/do-not-contact", object{"entries": []object{{"value": "ana@example.org", "expires_at": "2100-01-02T03:04:05Z"}}}, 0},
		visit{"POST", "/api/v1/do-not-contact/remove", object{"entries": []object{{"value": "ana@example.org"}}}, 0},
		visit{"POST", "/api/v1/policy/grants", object{"tool": "mail:write"}, 0},
		visit{"POST", "/api/v1/tokens", object{"name": "more", "role": sampled(t, "agent", "operator", "admin"), "automations": []string{"newsletter"}}, 0},
		visit{"POST", "/api/v1/tokens", object{"name": "more", "role": sampled(t, "operator", "admin"), "sessions": []string{authoritySession}}, 0},
		visit{"POST", "/api/v1/tokens", object{"name": "more", "role": "operator", "scopes": []string{"policy:write", "actions:propose", "approvals:decide"}}, 0},
		visit{"POST", "/api/v1/operators", object{"name": "more", "role_set": "admin"}, 0},
	)}
}

// The methods of steps that read something first: the pause of a scope is lifted, a
// source is listed by a worker or accepted in its current state, and a person is
// set.
const (
	liftPause    = "lift"
	listSource   = "list"
	acceptSource = "accept"
	setPerson    = "person"
)

// take makes the call of a step.
func (c *client) take(f *authorityTenant, step visit) answer {
	c.t.Helper()
	switch step.method {
	case liftPause:
		for _, p := range f.pauses() {
			if p.Scope == step.path {
				return c.send("DELETE", "/api/v1/pauses/"+p.ID, nil)
			}
		}
		return answer{status: http.StatusNotFound}
	case acceptSource:
		if src, ok := f.sources()[step.path]; ok {
			return c.send("POST", "/api/v1/sources/"+step.path+"/accept", nil, ifMatch(src.ETag)...)
		}
		return answer{status: http.StatusNotFound}
	case setPerson:
		return c.send("PUT", "/api/v1/operators/"+f.person.String(), step.body)
	}
	return c.send(step.method, step.path, step.body)
}

// list stores the tools of a source as a worker does.
func (f *authorityTenant) list(id string) {
	f.t.Helper()
	if _, ok := f.sources()[id]; ok {
		f.tenantFixture.list(id, f.tools...)
	}
}

// place returns the address to which calls of a source go, by the settings
// that steps change.
func (f *authorityTenant) place(id string) string {
	f.t.Helper()
	src, ok := f.sources()[id]
	return fmt.Sprint(ok, src.Config, src.HasCredentials)
}

// activePause is a pause as the API shows it.
type activePause struct {
	ID    string `json:"pause_id"`
	Scope string
	Kill  bool
}

func (f *authorityTenant) pauses() []activePause {
	f.t.Helper()
	var list struct{ Items []activePause }
	f.owner.send("GET", "/api/v1/pauses?active=true", nil).wants(f.t, 200).into(f.t, &list)
	return list.Items
}

// authorityTenant is a tenant, and those in it who may not loosen.
type authorityTenant struct {
	*tenantFixture
	owner *client
	below []*client
	// person is a person without policy:write, whom steps change.
	person uuid.UUID
	// tools are the tools that sources list.
	tools []source.Tool
}

// newAuthorityTenant sets a tenant up: the tool read has changed, fresh is new,
// two people must agree, the automation newsletter may do everything, the tool
// danger is for the session trusted, and the source is paused.
func newAuthorityTenant(h *fixture, name string) *authorityTenant {
	f := &authorityTenant{tenantFixture: h.tenant(name)}
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		if err := catalog.PutSource(ctx, tx, f.id, catalog.Source{ID: "mail", Kind: catalog.KindMCP, Config: mailConfig, Enabled: true, Quarantine: true}); err != nil {
			return err
		}
		changed := slices.Clone(mailTools)
		changed[0].Description = "Reads, and says so."
		f.tools = append(changed, source.Tool{Name: "fresh", InputSchema: mailTools[0].InputSchema})
		return catalog.PutListing(ctx, tx, f.id, "mail", f.tools)
	})
	rest := slices.DeleteFunc(identity.Scopes(), func(s identity.Scope) bool { return s == identity.PolicyWrite })
	f.person = f.somebody("below", identity.RoleAdmin)
	f.below = []*client{
		f.operator,
		f.holder(identity.Grant{Name: "admin", Role: identity.RoleAdmin, Scopes: rest, Operator: f.person}),
		f.holder(identity.Grant{Name: "owner", Role: identity.RoleOwner, Scopes: rest}),
		f.holder(identity.Grant{Name: "for other tools", Role: identity.RoleOwner, Tools: []string{"bank:*"}}),
		f.agent,
	}
	f.owner = f.tenantFixture.owner()
	f.owner.send("PUT", "/api/v1/reviews/*", object{"approvals": 2}).wants(h.t, 200)
	f.owner.send("PUT", "/api/v1/policy/modes/*?automation_id=newsletter", object{"mode": "allow"}).wants(h.t, 200)
	f.owner.send("PUT", "/api/v1/policy/modes/mail:danger", object{"mode": "require_approval"}).wants(h.t, 200)
	untrusted := object{"tool": "mail:danger", "expression": "envelope.session != '" + authoritySession + "'", "mode": "deny", "enabled": true}
	f.owner.send("PUT", "/api/v1/policy/rules/untrusted", untrusted).wants(h.t, 200)
	f.owner.send("PUT", "/api/v1/employees/"+authorityEmployee, object{"trust": "high", "scopes": []string{"*"}}).wants(h.t, 200)
	f.owner.send("POST", "/api/v1/do-not-contact", object{"entries": []object{{"value": "ana@example.org"}}}).wants(h.t, 200)
	f.owner.send("POST", "/api/v1/pauses", object{"scope": "source", "subject": "mail", "reason": "an incident"}).wants(h.t, 201)
	return f
}

// held returns how strictly proposals are held: 0 runs, 1 waits for people, 2
// is denied or refused.
func (c *client) held(proposals []object) []int {
	c.t.Helper()
	var many struct {
		Items []struct{ Result, Phase string }
	}
	c.send("POST", "/api/v1/actions/batch", object{"items": proposals}).wants(c.t, 200).into(c.t, &many)
	levels := make([]int, len(many.Items))
	for i, it := range many.Items {
		switch {
		case it.Result != "accepted":
			levels[i] = 2
		case it.Phase == "pending":
			levels[i] = 1
		}
	}
	return levels
}

// authorityProposals returns a call of every tool of every source for each of
// some fields.
func authorityProposals(fields ...object) (all []object) {
	for _, id := range authoritySources {
		for _, tool := range []string{"read", "write", "danger", "fresh"} {
			for _, more := range fields {
				p := proposal(tool, object{"to": "ana@example.org"})
				p["tool"] = object{"source": id, "name": tool}
				maps.Copy(p, more)
				all = append(all, p)
			}
		}
	}
	return all
}

// Callers without the right to loosen make calls in a tenant, in any order and
// between the calls of others who have it. A second tenant gets only the calls of
// the latter. For any proposal, nothing may run in the first that would wait or be
// denied in the second, or would go elsewhere; pauses of the second hold in the
// first, and one person's votes are never enough for two.
func TestLowerRolesCannotLoosenSettings(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	written := []object{
		{}, {"automation_id": "newsletter"}, {"employee_id": authorityEmployee}, {"session_id": authoritySession}, {"risk": "low"}, {"risk": "high"}, {"approval": "auto"},
	}
	sequence := rapid.SliceOfN(rapid.Custom(authorityCall), 6, 14)
	made := map[bool]int{}
	for seed := range authoritySequences {
		mixed, mirror := newAuthorityTenant(h, fmt.Sprintf("mixed-%d", seed)), newAuthorityTenant(h, fmt.Sprintf("mirror-%d", seed))
		waiting := mixed.agent.propose("write")
		var calls []string
		for _, step := range sequence.Example(seed) {
			if step.method == listSource {
				mixed.list(step.path)
				mirror.list(step.path)
				calls = append(calls, "listed: "+step.path)
				continue
			}
			if step.Above {
				if step.method == acceptSource && mixed.place(step.path) != mirror.place(step.path) {
					continue // who accepts a source lets it run
				}
				one, two := mixed.owner.take(mixed, step.visit), mirror.owner.take(mirror, step.visit)
				calls = append(calls, fmt.Sprintf("above: %s %s %v = %d, %d", step.method, step.path, step.body, one.status, two.status))
				continue
			}
			by := step.By % len(mixed.below)
			a := mixed.below[by].take(mixed, step.visit)
			made[a.status < http.StatusBadRequest]++
			calls = append(calls, fmt.Sprintf("below %d: %s %s %v = %d", by, step.method, step.path, step.body, a.status))
			if step.path == "/api/v1/tokens" && a.status == http.StatusCreated {
				var more shownToken
				a.into(t, &more)
				mixed.below = append(mixed.below, &client{fixture: h, token: more.Token, id: identity.TokenID(uuid.MustParse(more.ID))})
			}
		}
		for _, p := range mirror.pauses() {
			if !slices.ContainsFunc(mixed.pauses(), func(q activePause) bool { return q.Scope == p.Scope && (q.Kill || !p.Kill) }) {
				t.Errorf("sequence %d: the pause of the %s was lifted:\n%s", seed, p.Scope, join(calls))
			}
		}
		elsewhere := make(map[string]bool)
		for _, id := range authoritySources {
			mixed.list(id)
			mirror.list(id)
			elsewhere[id] = mixed.place(id) != mirror.place(id)
		}
		for name, pair := range map[string][2]*client{"an agent": {mixed.agent, mirror.agent}, "an operator": {mixed.operator, mirror.operator}} {
			got, plain := pair[0].held(authorityProposals(written...)), pair[1].held(authorityProposals(object{}))
			for i, level := range got {
				want, id := plain[i/len(written)], authoritySources[i*len(authoritySources)/len(got)]
				if elsewhere[id] {
					want = 2
				}
				if level < want {
					t.Errorf("sequence %d: what %s proposes at %s, call %d with %v, is held to %d, and would be to %d:\n%s",
						seed, name, id, i/len(written), written[i%len(written)], level, want, join(calls))
				}
			}
		}
		mixed.onePersonIsNotTwo(waiting, seed%2 == 0, calls)
	}
	if made[true] == 0 || made[false] == 0 {
		t.Errorf("calls that were made and refused = %v, want some of each", made)
	}
}

// onePersonIsNotTwo has one person approve an action, and edit it in between, with
// every token that the person can make.
func (f *authorityTenant) onePersonIsNotTwo(waiting string, edits bool, calls []string) {
	f.t.Helper()
	if got := f.owner.pendingAction(waiting); got.Phase != "pending" {
		f.t.Errorf("an action that two must agree to is %s before anybody has:\n%s", got.Phase, join(calls))
		return
	}
	admin := f.holder(identity.Grant{Name: "one person", Role: identity.RoleAdmin})
	tokens := []*client{admin}
	for range 2 {
		var more shownToken
		admin.send("POST", "/api/v1/tokens", object{"name": "more", "role": "operator"}).wants(f.t, 201).into(f.t, &more)
		tokens = append(tokens, &client{fixture: f.fixture, token: more.Token})
	}
	for i, c := range tokens {
		if i == 1 && edits {
			c.send("POST", path(waiting, "/edit"), object{"args": object{"n": 7}})
		}
		if tag := f.owner.pendingAction(waiting).Decision.ETag; tag != "" {
			c.send("POST", path(waiting, "/approve"), nil, ifMatch(tag)...)
		}
	}
	var review struct{ Items []struct{ Approvals int } }
	f.owner.send("GET", "/api/v1/reviews", nil).wants(f.t, 200).into(f.t, &review)
	two := slices.ContainsFunc(review.Items, func(r struct{ Approvals int }) bool { return r.Approvals > 1 })
	if got := f.owner.pendingAction(waiting); two && got.Phase != "pending" && got.Phase != "denied" {
		f.t.Errorf("an action that two must agree to is %s after one person's votes:\n%s", got.Phase, join(calls))
	}
}

func join(lines []string) (text string) {
	for _, l := range lines {
		text += "  " + l + "\n"
	}
	return text
}
