package rest_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/internal/server/rest/route"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// everyRole returns the roles, and the session in which each proposes.
func everyRole() map[identity.Role]string {
	return map[identity.Role]string{
		identity.RoleAgent: "s-one", identity.RoleViewer: "", identity.RoleOperator: "", identity.RoleAdmin: "", identity.RoleOwner: "",
	}
}

// person adds a viewer.
func (f *tenantFixture) person(name string) string {
	f.t.Helper()
	return f.somebody(name, identity.RoleViewer).String()
}

// somebody adds a person, who can own tokens.
func (f *tenantFixture) somebody(name string, role identity.Role) uuid.UUID {
	f.t.Helper()
	var id uuid.UUID
	f.inTx(func(ctx context.Context, tx pgx.Tx) (err error) {
		root := identity.Principal{Tenant: f.id, Role: identity.RoleOwner}
		id, err = identity.NewOperator(ctx, tx, root, identity.Operator{Name: name, RoleSet: role}, time.Now())
		return err
	})
	return id
}

// provider sets an issuer up.
func (f *tenantFixture) provider(id, issuer string) {
	f.t.Helper()
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		return identity.PutProvider(ctx, tx, f.id, identity.Provider{ID: id, Issuer: issuer, Audience: identity.OwnAudience(f.id)})
	})
}

// loosening reports whether the request that visits has for an operation
// loosens something.
func loosening(operation string) bool {
	return slices.Contains([]string{"deletePreference", "putSubscription", "deleteSource", "deleteQuietHours", "deleteEmployee", "putSettings", "rotateToken",
		// In an account without an operator.
		"setTriageTag", "removeTriageTag", "retryTriageTag", "retryAction"}, operation)
}

// Every role makes a request of every route, as itself and narrowed to every
// scope that there is, which must change nothing.
func TestRolesHaveTheRightsOfTheTable(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	anyone := &client{fixture: h}

	for role, session := range everyRole() {
		for _, scopes := range [][]identity.Scope{nil, identity.Scopes()} {
			f := h.tenant(fmt.Sprintf("%s-%d", role, len(scopes)))
			caller := f.holder(identity.Grant{Name: "walker", Role: role, Session: session, Scopes: scopes})
			visits := f.visits()
			for _, rt := range route.Access() {
				v, ok := visits[rt.Operation]
				if !ok {
					t.Errorf("no test makes a request of %s", rt.Operation)
					continue
				}
				want := v.want
				if rt.Roles != nil && !slices.Contains(rt.Roles, role) || loosening(rt.Operation) && role == identity.RoleOperator {
					want = http.StatusForbidden
				}
				if got := caller.peek(v); got != want {
					t.Errorf("%s as %s with %d scopes = %d, want %d", rt.Operation, role, len(scopes), got, want)
				}
				if rt.Roles == nil {
					continue
				}
				if got := anyone.peek(v); got != http.StatusUnauthorized {
					t.Errorf("%s without a token = %d, want 401", rt.Operation, got)
				}
			}
		}
	}
}

// Every route is called with a token that has every scope but its own, and
// with a token that has only that scope.
func TestScopesNarrowARole(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("scopes")
	without, with, both := map[identity.Scope]*client{}, map[identity.Scope]*client{}, map[identity.Scope]*client{}
	for _, s := range identity.Scopes() {
		others := slices.DeleteFunc(identity.Scopes(), func(o identity.Scope) bool { return o == s })
		without[s] = f.holder(identity.Grant{Name: "without", Role: identity.RoleOwner, Scopes: others})
		with[s] = f.holder(identity.Grant{Name: "with", Role: identity.RoleOwner, Scopes: []identity.Scope{s}})
		if s != identity.PolicyWrite {
			both[s] = f.holder(identity.Grant{Name: "both", Role: identity.RoleOwner, Scopes: []identity.Scope{s, identity.PolicyWrite}})
		}
	}

	visits := f.visits()
	for _, rt := range route.Access() {
		v, ok := visits[rt.Operation]
		if !ok || rt.Scope == "" {
			continue
		}
		if got := without[rt.Scope].peek(v); got != http.StatusForbidden {
			t.Errorf("%s without %s = %d, want 403", rt.Operation, rt.Scope, got)
		}
		if got := with[rt.Scope].peek(v); loosening(rt.Operation) && rt.Scope != identity.PolicyWrite {
			if got != http.StatusForbidden {
				t.Errorf("%s with only %s = %d, want 403, since it loosens", rt.Operation, rt.Scope, got)
			}
			got = both[rt.Scope].peek(v)
			if got != v.want {
				t.Errorf("%s with %s and policy:write = %d, want %d", rt.Operation, rt.Scope, got, v.want)
			}
		} else if got != v.want {
			t.Errorf("%s with only %s = %d, want %d", rt.Operation, rt.Scope, got, v.want)
		}
	}
}

// No form of a request lets an agent call the operations of people.
func TestAgentsReachNoRouteOfPeople(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("detours")
	id := f.agent.propose("write")
	approve := path(id, "/approve")

	for name, way := range map[string]struct{ method, path string }{
		"plain":             {"POST", approve},
		"a slash behind":    {"POST", approve + "/"},
		"two slashes":       {"POST", strings.Replace(approve, "/v1/", "/v1//", 1)},
		"a detour":          {"POST", path(id, "/wait/../approve")},
		"an escaped detour": {"POST", path(id, "/wait/%2e%2e/approve")},
		"an escaped slash":  {"POST", path(id, "%2Fapprove")},
		"escaped letters":   {"POST", path(id, "/%61pprove")},
		"capitals":          {"POST", path(id, "/Approve")},
		"another method":    {"PUT", approve},
		"a query":           {"POST", approve + "?role=owner"},
		"settings by HEAD":  {"HEAD", "/api/v1/settings"},
		"the audit log":     {"GET", "/api/v1/audit/events"},
		"operators by HEAD": {"HEAD", "/api/v1/operators"},
	} {
		r, err := f.agent.request(t.Context(), way.method, way.path, object{"note": "fine"}, "X-Http-Method-Override", "POST", "X-Role", "owner", "X-Forwarded-User", "root")
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode < 400 {
			t.Errorf("%s: %s %s as an agent = %d, want it refused", name, way.method, way.path, res.StatusCode)
		}
	}

	if got := f.operator.send("GET", path(id), nil).wants(t, 200).action(t).Envelope.Approval; got != "required" {
		t.Errorf("the action's approval is %q, want it still required", got)
	}
}

func TestMeListsTheCallersOperations(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("me")
	narrow := f.holder(identity.Grant{
		Name: "narrow", Role: identity.RoleAgent, Session: "s", Scopes: []identity.Scope{identity.ActionsRead}, Tools: []string{"mail:*"},
	})

	var got struct {
		Tenant, Name, Role string
		TokenID            string `json:"token_id"`
		SessionID          string `json:"session_id"`
		Scopes, Tools      []string
		Operations         []string
	}
	narrow.send("GET", "/api/v1/me", nil).wants(t, 200).into(t, &got)

	if got.Tenant != "me" || got.Name != "narrow" || got.Role != "agent" || got.TokenID != narrow.id.String() || got.SessionID != "s" ||
		!slices.Equal(got.Scopes, []string{"actions:read"}) || !slices.Equal(got.Tools, []string{"mail:*"}) {
		t.Errorf("me = %+v", got)
	}
	want := map[string]bool{}
	for _, rt := range route.Access() {
		if slices.Contains(rt.Roles, identity.RoleAgent) && (rt.Scope == "" || rt.Scope == identity.ActionsRead) {
			want[rt.Operation] = true
		}
	}
	if have := slices.Sorted(slices.Values(got.Operations)); !slices.Equal(have, slices.Sorted(maps.Keys(want))) {
		t.Errorf("me says it may %v, want %v", have, want)
	}
}
