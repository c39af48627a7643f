package rest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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

// TestARecoveryShowsWhatIsKnownOfEachClass has an action of class once whose tool has a
// reconcile rule, one of class read, calls that workers reported, and noted heads.
func TestARecoveryShowsWhatIsKnownOfEachClass(t *testing.T) {
	t.Parallel()
	f := heldFixture(t)
	f.agent.propose("read")
	f.fixture.checkpoint()
	f.exec("UPDATE fence SET changed_at = now()")
	f.exec("UPDATE tools SET reconcile = '{}' WHERE name = 'write'")
	f.exec(`INSERT INTO lost_calls (tenant_id, action_id, external_id, source_id, tool_name, effect, outcome, code, provider_id, worker, called_at, known)
		SELECT '` + f.id.String() + `', gen_random_uuid(), '', 'mail', 'write', 'once', s.outcome, '', '', 'w', now(), s.known
		FROM (VALUES ('sent', true), ('sent', false), ('pending', false)) s (outcome, known)`)
	var hash string
	if err := f.db.QueryRow(t.Context(), "SELECT encode(hash, 'hex') FROM checkpoints WHERE checkpoint_no = 1").Scan(&hash); err != nil {
		t.Fatal(err)
	}
	get := func(query string) (r wire.Recovery) {
		f.operator.send("GET", recoveryPath+query, nil).wants(t, 200).into(t, &r)
		return r
	}

	without, present := get(""), get("?checkpoint_no=1&head="+hash)
	missing, different := get("?checkpoint_no=3&head="+hash), get("?checkpoint_no=1&head="+strings.Repeat("1", 64))

	once := wire.RecoveryClass{Effect: "once", Unknown: 1, Reconcilable: 1, Recorded: 1, Lost: 1}
	read := wire.RecoveryClass{Effect: "read", Continue: 1}
	if diff := cmp.Diff([]wire.RecoveryClass{once, {Effect: "keyed"}, {Effect: "idempotent"}, read}, without.Classes); diff != "" || without.NotedHead != nil {
		t.Errorf("without a head (-want +got):\n%s%v", diff, without.NotedHead)
	}
	once.OpenAtHead, read.OpenAtHead = 1, 1
	if diff := cmp.Diff([]wire.RecoveryClass{once, {Effect: "keyed"}, {Effect: "idempotent"}, read}, present.Classes); diff != "" {
		t.Errorf("with a head (-want +got):\n%s", diff)
	}
	if h := present.NotedHead; h.Result != "present" || h.Until == nil || h.Missing != 0 {
		t.Errorf("the head that is here: %+v", h)
	}
	if h := missing.NotedHead; h.Result != "missing" || h.Until != nil || h.Missing != 2 || missing.Classes[0].OpenAtHead != 0 {
		t.Errorf("a later head: %+v", h)
	}
	if h := different.NotedHead; h.Result != "different" || h.Until != nil {
		t.Errorf("another head: %+v", h)
	}
	if present.ETag != without.ETag {
		t.Error("the head changes the entity tag, which a recovery sends back")
	}
	for _, query := range []string{"?checkpoint_no=1", "?head=" + hash, "?checkpoint_no=0&head=" + hash, "?checkpoint_no=1&head=x"} {
		f.operator.send("GET", recoveryPath+query, nil).wants(t, 400)
	}
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
