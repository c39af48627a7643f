package rest_test

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/server/rest"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

const recoveryPath = "/api/v1/recovery"

// heldFixture is the only tenant of a held database, with an approved action of class
// once and one that waits for a person.
func heldFixture(t *testing.T) *tenantFixture {
	t.Helper()
	f := newFixtureWith(t, dbtest.DB(t), rest.Config{}).tenant("acme")
	f.operator.send("POST", path(f.agent.propose("write"), "/approve"), nil).wants(t, 200)
	f.agent.propose("write")
	f.exec("UPDATE fence SET state = 'held', reason = 'copy', detail = 'this database is a copy', changed_at = now(), recovered_from = NULL")
	return f
}

func (c *client) recovery() (r wire.Recovery) {
	c.t.Helper()
	c.send("GET", recoveryPath, nil).wants(c.t, 200).into(c.t, &r)
	return r
}

func TestAnAdministratorRecoversTheDatabase(t *testing.T) {
	t.Parallel()
	f := heldFixture(t)
	f.agent.propose("read")
	seen := f.operator.recovery()
	if seen.State != "held" || seen.Reason != "copy" || seen.Unknown != 1 || seen.Approvals != 1 || seen.Repeatable != 1 || seen.People != 1 {
		t.Errorf("GET = %+v", seen)
	}
	match := ifMatch(seen.ETag)
	f.operator.send("POST", recoveryPath, object{}, match...).wants(t, 403)
	f.holder(identity.Grant{Name: "narrow", Role: identity.RoleAdmin, Scopes: []identity.Scope{identity.PolicyWrite}}).
		send("POST", recoveryPath, object{}, match...).wants(t, 403)
	f.admin.send("POST", recoveryPath, object{}).wants(t, 428)
	f.admin.send("POST", recoveryPath, object{}, ifMatch("other")...).wants(t, 412)

	var after wire.Recovery
	f.admin.send("POST", recoveryPath, object{"ask_for": "2d"}, match...).wants(t, 200).into(t, &after)

	if after.State != "open" || after.Database == seen.Database {
		t.Errorf("POST = %+v", after)
	}
	for query, want := range map[string]int{
		"SELECT count(1) FROM dead_letters WHERE reason = 'unknown' AND code = 'recovered'":                                    1,
		"SELECT count(1) FROM pauses WHERE scope = 'tenant' AND lifted_at IS NULL AND needs_policy_write":                      1,
		"SELECT count(1) FROM fence WHERE ask_until > now() + interval '47 hours'":                                             1,
		"SELECT count(1) FROM events WHERE actor LIKE 'admin%' AND items @> '[{\"code\": \"open\", \"note\": \"recovered\"}]'": 1,
	} {
		if got := f.count(query); got != want {
			t.Errorf("%s = %d, want %d", query, got, want)
		}
	}
	f.admin.send("POST", recoveryPath, object{}, ifMatch(f.admin.recovery().ETag)...).wants(t, 409)
}

func TestTwoPeopleRecoverTheDatabase(t *testing.T) {
	t.Parallel()
	f := heldFixture(t)
	f.admin.send("PUT", "/api/v1/reviews/mail:*", object{"approvals": 2}).wants(t, 200)
	person := f.somebody("Ana", identity.RoleAdmin)
	ana, again := f.holder(identity.Grant{Name: "ana", Role: identity.RoleAdmin, Operator: person}), f.holder(identity.Grant{Name: "ana-2", Role: identity.RoleAdmin, Operator: person})
	seen := ana.recovery()

	var asked, after wire.Recovery
	ana.send("POST", recoveryPath, object{}, ifMatch(seen.ETag)...).wants(t, 200).into(t, &asked)
	f.admin.send("POST", recoveryPath, object{}, ifMatch(seen.ETag)...).wants(t, 412)
	again.send("POST", recoveryPath, object{}, ifMatch(asked.ETag)...).wants(t, 403)
	if asked.State != "held" || asked.People != 2 || !strings.HasPrefix(string(asked.AskedBy), "ana") || f.admin.recovery().ETag != asked.ETag {
		t.Errorf("the first of two people: %+v", asked)
	}
	f.admin.send("POST", recoveryPath, object{}, ifMatch(asked.ETag)...).wants(t, 200).into(t, &after)

	if after.State != "open" {
		t.Errorf("the second of two people: %+v", after)
	}
	if n := f.count("SELECT count(1) FROM events WHERE actor LIKE 'ana%' AND items @> '[{\"note\": \"the recovery waits for a second person\"}]'"); n != 1 {
		t.Errorf("%d events of the first person", n)
	}
}

func TestATenantOfSeveralDoesNotRecoverAll(t *testing.T) {
	t.Parallel()
	f := heldFixture(t)
	other := f.fixture.tenant("other")
	other.agent.propose("read")

	seen := f.admin.recovery()
	problem := f.admin.send("POST", recoveryPath, object{}, ifMatch(seen.ETag)...).wants(t, 403).problem(t)

	if !strings.Contains(problem.Detail, "several tenants") || seen.Repeatable != 0 || f.count("SELECT count(1) FROM fence WHERE state = 'held'") != 1 {
		t.Errorf("POST = %q, after %+v", problem.Detail, seen)
	}
	if n := f.count("SELECT count(1) FROM (SELECT set_config('countersign.tenant_id', '" + f.id.String() + "', true)) s, recover_fence(NULL) r WHERE r IS NOT NULL"); n != 0 {
		t.Error("the function recovers the database of several tenants")
	}
}
