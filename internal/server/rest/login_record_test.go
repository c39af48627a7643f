package rest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/identity/identitytest"
)

// loginEvent is an item of an event about logins.
type loginEvent struct {
	kind    string
	actor   envelope.Actor
	Subject string
	Code    string
	Detail  map[string]any
}

// logins returns the events about logins in the audit log, oldest first, and
// their text.
func (f *tenantFixture) logins() (all []loginEvent, text string) {
	f.t.Helper()
	rows, err := f.db.Query(f.t.Context(), `
		SELECT e.kind, e.actor, i::text FROM events e, jsonb_array_elements(e.items) WITH ORDINALITY i (i, n)
		WHERE e.tenant_id = $1 AND e.kind IN ('session_started', 'session_ended', 'login_refused') ORDER BY e.event_id, n`, f.id)
	if err != nil {
		f.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var e loginEvent
		var item string
		if err := rows.Scan(&e.kind, &e.actor, &item); err != nil {
			f.t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(item), &e); err != nil {
			f.t.Fatal(err)
		}
		all, text = append(all, e), text+item
	}
	return all, text
}

// happened returns events as their kind, code and actor.
func happened(all []loginEvent) (short []string) {
	for _, e := range all {
		name, _, _ := e.actor.Parts()
		short = append(short, e.kind+" "+e.Code+" by "+name)
	}
	return short
}

func TestTheAuditLogHasLogins(t *testing.T) {
	t.Parallel()
	f, issuer := newFixture(t).tenant("acme"), identitytest.New(t)
	f.webProvider(issuer, object{})
	issuer.LogIn(identitytest.Claims{"sub": "ana", "name": "Ana", "groups": "ops"})
	owner := f.owner()
	var secrets []string
	log := func(headers ...string) *client {
		in := f.begin("/", headers...)
		kept := in.finish().cookies()["cs"]
		secrets = append(secrets, kept.Value, in.back.Query().Get("code"), in.back.Query().Get("state"))
		return &client{fixture: f.fixture, cookie: "cs=" + kept.Value}
	}
	ana := log()
	ana = log("Cookie", ana.cookie) // replaces
	var me wire.Me
	ana.send("GET", "/api/v1/me", nil).wants(t, 200).into(t, &me)
	log()
	var mine wire.Page[wire.BrowserSession]
	ana.send("GET", "/api/v1/me/sessions", nil).wants(t, 200).into(t, &mine)
	ana.send("DELETE", "/api/v1/me/sessions/"+mine.Items[0].ID, nil).wants(t, 204)
	ana.send("POST", "/auth/logout", nil).wants(t, 204)
	ana.send("POST", "/auth/logout", nil).wants(t, 204) // is over, and no event
	log()
	owner.send("PUT", "/api/v1/operators/"+me.OperatorID, object{"name": "Ana", "issuer": issuer.URL(), "subject": "ana", "disabled": true}).wants(t, 200)
	f.begin("/").finish().refusedAs(t, "account_disabled")

	code := f.operator.code()
	f.login(object{"code": code.Code})
	f.agent.withoutToken().send("POST", "/auth/session", object{"token": f.agent.token}).wants(t, 403)
	late := f.operator.code()
	if _, err := f.db.Exec(t.Context(), "UPDATE login_codes SET expires_at = now()"); err != nil {
		t.Fatal(err)
	}
	f.agent.withoutToken().send("POST", "/auth/session", object{"code": late.Code}).wants(t, 401)
	owner.send("DELETE", "/api/v1/tokens/"+f.operator.id.String(), nil).wants(t, 204)
	f.agent.withoutToken().send("POST", "/auth/session", object{"token": f.operator.token}).wants(t, 401)
	nobodys := "cs_operator_" + strings.Repeat("A", 43) // of no tenant, so in no log
	f.agent.withoutToken().send("POST", "/auth/session", object{"token": nobodys}).wants(t, 401)

	all, text := f.logins()

	want := []string{
		"session_started oidc by Ana", "session_started oidc by Ana", "session_ended replaced by Ana", "session_started oidc by Ana",
		"session_ended ended by Ana", "session_ended logout by Ana", "session_started oidc by Ana", "session_ended disabled by owner",
		"login_refused account_disabled by login", "session_started code by operator", "login_refused agent_token by login",
		"login_refused invalid_credential by login", "session_ended token_revoked by owner", "login_refused invalid_credential by login",
	}
	if diff := cmp.Diff(want, happened(all)); diff != "" {
		t.Fatalf("the audit log has (-want +got):\n%s", diff)
	}
	if all[0].Subject != all[2].Subject || all[0].Subject == all[1].Subject || all[0].Detail["address"] != "127.0.0.1" {
		t.Errorf("the first login is %+v, and %+v ended", all[0], all[2])
	}
	if e := all[8]; e.Subject != "person "+me.OperatorID || e.Detail["subject"] != "ana" || e.Detail["provider"] != "acme" || e.Detail["via"] != "oidc" {
		t.Errorf("the login of a disabled person is %+v", e)
	}
	if e := all[13]; e.Subject != "token "+f.operator.id.String() || e.Detail["via"] != "token" {
		t.Errorf("the login with a revoked token is %+v", e)
	}
	for _, secret := range append(secrets, code.Code, late.Code, f.operator.token, f.agent.token) {
		if strings.Contains(text, secret) {
			t.Error("the audit log has a secret")
		}
	}
}

// TestManyRefusedLoginsAreFewEvents makes many refused logins at an issuer by
// unknown people, of whom there is no limit.
func TestManyRefusedLoginsAreFewEvents(t *testing.T) {
	t.Parallel()
	f, issuer := newFixture(t).tenant("acme"), identitytest.New(t)
	f.webProvider(issuer, object{})
	refuse := func(n int) {
		for i := range n {
			issuer.LogIn(identitytest.Claims{"sub": fmt.Sprintf("somebody %d", i)})
			f.begin("/").finish().refusedAs(t, "no_role")
		}
	}
	counts := func() (ns []float64) {
		all, _ := f.logins()
		for _, e := range all {
			ns = append(ns, e.Detail["logins"].(float64))
		}
		return ns
	}

	refuse(21)

	if diff := cmp.Diff([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20}, counts()); diff != "" {
		t.Errorf("the audit log has refusals (-want +got):\n%s", diff)
	}
	if _, err := f.db.Exec(t.Context(), "UPDATE refused_logins SET logins = 639"); err != nil {
		t.Fatal(err)
	}
	refuse(3)
	if got := counts(); len(got) != 12 || got[11] != 640 {
		t.Errorf("after 642 refusals the audit log has %v", got)
	}
	if _, err := f.db.Exec(t.Context(), "UPDATE refused_logins SET since = since - interval '1 hour'"); err != nil {
		t.Fatal(err)
	}
	refuse(1)
	if got := counts(); len(got) != 13 || got[12] != 1 {
		t.Errorf("in the next hour the audit log has %v", got)
	}
}
