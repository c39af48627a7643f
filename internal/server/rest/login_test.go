package rest_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/server/rest"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/identity/identitytest"
)

// webProvider sets an issuer up at which people log in in a browser.
func (f *tenantFixture) webProvider(issuer *identitytest.Issuer, more object) {
	f.t.Helper()
	p := object{"issuer": issuer.URL(), "label": "Acme", "web_client_id": "web", "role_claim": "groups", "roles": object{"ops": "operator"}}
	for name, value := range more {
		if p[name] = value; value == nil {
			delete(p, name)
		}
	}
	f.owner().send("PUT", "/api/v1/identity-providers/acme", p).wants(f.t, 200)
}

// cookies returns the cookies that a response sets, by name; "" for one that
// it deletes.
func (a answer) cookies() map[string]*http.Cookie {
	all := map[string]*http.Cookie{}
	for _, c := range (&http.Response{Header: a.header}).Cookies() {
		all[c.Name] = c
	}
	return all
}

// attempt is a login that a browser has begun.
type attempt struct {
	*fixture
	// cookie is that of the login, and back the address that the issuer sends the
	// browser to.
	cookie string
	back   *url.URL
}

// begin begins a login, and has the person agree at the issuer.
func (f *tenantFixture) begin(to string, headers ...string) attempt {
	f.t.Helper()
	a := (&client{fixture: f.fixture}).send("GET", "/auth/login?organisation=acme&provider=acme&to="+url.QueryEscape(to), nil, append([]string{"Sec-Fetch-Site", "same-origin"}, headers...)...).wants(f.t, 302)
	kept := a.cookies()["cs-login"]
	if kept == nil || !kept.HttpOnly || kept.SameSite != http.SameSiteLaxMode || kept.MaxAge != 600 || kept.Path != "/" {
		f.t.Fatalf("cookie of a login = %v", kept)
	}
	at, err := url.Parse(a.header.Get("Location"))
	if err != nil {
		f.t.Fatal(err)
	}
	if q := at.Query(); q.Get("code_challenge_method") != "S256" || q.Get("redirect_uri") != f.url+"/auth/callback" || q.Get("scope") != "openid email profile" || q.Get("nonce") == "" {
		f.t.Errorf("the issuer is asked %v", q)
	}
	res, err := direct().Get(at.String())
	if err != nil {
		f.t.Fatal(err)
	}
	_ = res.Body.Close()
	back, err := res.Location()
	if err != nil {
		f.t.Fatal(err)
	}
	return attempt{f.fixture, "cs-login=" + kept.Value, back}
}

// finish returns the browser to the API, with some parameters changed.
func (in attempt) finish(changed ...string) answer {
	in.t.Helper()
	query := in.back.Query()
	for i := 0; i < len(changed); i += 2 {
		query.Set(changed[i], changed[i+1])
	}
	return (&client{fixture: in.fixture}).send("GET", in.back.Path+"?"+query.Encode(), nil, "Cookie", in.cookie, "Sec-Fetch-Site", "cross-site")
}

// refusedAs fails the test unless a login ended at the page to log in, with a
// code, and without a session.
func (a answer) refusedAs(t testing.TB, code string) {
	t.Helper()
	if at := a.header.Get("Location"); a.status != 303 || at != "/login?problem="+code || a.cookies()["cs"] != nil {
		t.Errorf("a login = %d %s %v, want the problem %s", a.status, at, a.header["Set-Cookie"], code)
	}
}

func TestPeopleLogInAtAnIssuer(t *testing.T) {
	t.Parallel()
	f, issuer := newFixture(t).tenant("acme"), identitytest.New(t)
	f.webProvider(issuer, object{})
	issuer.LogIn(identitytest.Claims{"sub": "ana", "name": "Ana Lima", "groups": []string{"ops"}})
	var options wire.LoginOptions
	f.agent.withoutToken().send("GET", "/auth/options?organisation=acme", nil).wants(t, 200).into(t, &options)
	if len(options.Providers) != 1 || options.Providers[0] != (wire.LoginProvider{Name: "acme", Label: "Acme", LoginURL: "/auth/login?organisation=acme&provider=acme"}) {
		t.Errorf("options = %+v", options)
	}

	login := f.begin("/actions?phase=pending#x")
	a := login.finish("session_state", "of the issuer")

	kept := a.cookies()
	if a.status != 303 || a.header.Get("Location") != "/actions?phase=pending#x" || kept["cs"] == nil || kept["cs-login"].MaxAge >= 0 {
		t.Fatalf("login = %d %v", a.status, a.header)
	}
	in := &client{fixture: f.fixture, cookie: "cs=" + kept["cs"].Value}
	var me wire.Me
	in.send("GET", "/api/v1/me", nil).wants(t, 200).into(t, &me)
	if me.Name != "Ana Lima" || me.Role != "operator" || me.TokenID != "" || me.OperatorID == "" || me.Session == nil {
		t.Errorf("me = %+v", me)
	}
	id := f.agent.propose("write")
	in.send("POST", path(id, "/approve"), object{}).wants(t, 200)
	var mine wire.Page[wire.BrowserSession]
	in.send("GET", "/api/v1/me/sessions", nil).wants(t, 200).into(t, &mine)
	if len(mine.Items) != 1 || mine.Items[0].Via != "oidc" {
		t.Errorf("sessions = %+v", mine.Items)
	}

	f.admin.send("PUT", "/api/v1/operators/"+me.OperatorID, object{"name": "Ana Lima", "issuer": issuer.URL(), "subject": "ana", "role_set": "viewer"}).wants(t, 200)
	in.send("POST", path(f.agent.propose("write"), "/approve"), object{}).refused(t, 403, "role")
	f.admin.send("PUT", "/api/v1/operators/"+me.OperatorID, object{"name": "Ana Lima", "issuer": issuer.URL(), "subject": "ana", "disabled": true}).wants(t, 200)
	in.send("GET", "/api/v1/me", nil).refused(t, 401, "session_ended")
	f.begin("/").finish().refusedAs(t, "account_disabled")
	for _, secret := range []string{login.back.Query().Get("code"), login.back.Query().Get("state"), kept["cs"].Value, strings.TrimPrefix(login.cookie, "cs-login=")} {
		if strings.Contains(f.logs.String(), secret) {
			t.Errorf("the log holds a secret of a login")
		}
	}
}

func TestSessionsOfAnIssuerEndWithIt(t *testing.T) {
	t.Parallel()
	f, issuer := newFixture(t).tenant("acme"), identitytest.New(t)
	f.webProvider(issuer, object{})
	issuer.LogIn(identitytest.Claims{"sub": "ana", "groups": "ops"})
	log := func() *client {
		return &client{fixture: f.fixture, cookie: "cs=" + f.begin("/").finish().cookies()["cs"].Value}
	}
	var me wire.Me
	in := log()
	in.send("GET", "/api/v1/me", nil).wants(t, 200).into(t, &me)
	for _, disabled := range []bool{true, false} {
		f.owner().send("PUT", "/api/v1/operators/"+me.OperatorID, object{"name": "Ana", "role_set": "operator", "issuer": issuer.URL(), "subject": "ana", "disabled": disabled}).wants(t, 200)
	}
	in.send("GET", "/api/v1/me", nil).refused(t, 401, "session_ended") // enabled again, and still over
	in = log()
	code := (&client{fixture: f.fixture, token: issuer.Token(identity.OwnAudience(f.id), time.Now(), identitytest.Claims{"groups": "ops"})}).code()
	elsewhere := newFixtureWith(t, f.db, rest.Config{}) // has no sessions

	f.owner().send("PUT", "/api/v1/operators/"+me.OperatorID, object{"name": "Ana", "role_set": "operator", "issuer": issuer.URL(), "subject": "another"}).wants(t, 200)
	in.send("GET", "/api/v1/me", nil).refused(t, 401, "session_ended")
	(&client{fixture: f.fixture}).send("POST", "/auth/session", object{"code": code.Code}).wants(t, 401)

	in = log()
	(&client{fixture: elsewhere, cookie: in.cookie}).send("GET", "/api/v1/me", nil).wants(t, 200)
	f.owner().send("DELETE", "/api/v1/identity-providers/acme", nil).wants(t, 204)
	(&client{fixture: newFixtureWith(t, f.db, rest.Config{}), cookie: in.cookie}).send("GET", "/api/v1/me", nil).refused(t, 401, "session_ended")
}

func TestIssuerLoginEndsThePreviousSession(t *testing.T) {
	t.Parallel()
	f, issuer := newFixture(t).tenant("acme"), identitytest.New(t)
	f.webProvider(issuer, object{})
	issuer.LogIn(identitytest.Claims{"sub": "ana", "groups": "ops"})
	before := f.login(object{"token": f.operator.token})

	begun := f.begin("/", "Cookie", before.cookie)
	before.send("GET", "/api/v1/me", nil).wants(t, 200) // until the login is done
	begun.finish().wants(t, 303)                        // with the login cookie only, as browsers do

	before.send("GET", "/api/v1/me", nil).refused(t, 401, "session_ended")
}

func TestRefusedLogins(t *testing.T) {
	t.Parallel()
	f, issuer := newFixture(t).tenant("acme"), identitytest.New(t)
	f.webProvider(issuer, object{})
	good := identitytest.Claims{"sub": "ana", "groups": []string{"ops"}}
	issuer.LogIn(good)
	other := f.begin("/")

	used := f.begin("/")
	used.finish().wants(t, 303)
	used.finish().refusedAs(t, "login_refused") // the code was used up
	withoutCookie := f.begin("/")
	withoutCookie.cookie = "cs-login=x"
	withoutCookie.finish().refusedAs(t, "login_expired")
	anothers := f.begin("/")
	anothers.cookie = other.cookie
	anothers.finish().refusedAs(t, "login_expired")
	f.begin("/").finish("state", "made-up").refusedAs(t, "login_expired")
	f.begin("/").finish("state", "").refusedAs(t, "login_expired")
	f.begin("/").finish("iss", "https://evil.example").refusedAs(t, "login_refused")
	f.begin("/").finish("error", "access_denied").refusedAs(t, "login_refused")
	f.begin("/").finish("code", "made-up").refusedAs(t, "login_refused")
	// Of another login: the code matches neither the verifier nor the nonce.
	f.begin("/").finish("code", other.back.Query().Get("code")).refusedAs(t, "login_refused")

	for name, forced := range map[string]identitytest.Claims{
		"of another login":       {"nonce": "another"},
		"for another client":     {"aud": "another"},
		"of another issuer":      {"iss": "https://evil.example"},
		"that has expired":       {"exp": 1},
		"given to somebody else": {"azp": "another"},
	} {
		issuer.Force(forced)
		if a := f.begin("/").finish(); a.header.Get("Location") != "/login?problem=login_refused" || a.cookies()["cs"] != nil {
			t.Errorf("a token %s = %d %v", name, a.status, a.header)
		}
	}
	issuer.Force(nil)
	issuer.LogIn(identitytest.Claims{"sub": "bo"})
	f.begin("/").finish().refusedAs(t, "no_role")
	f.webProvider(issuer, object{"allowed_domains": []string{"acme.com"}})
	issuer.LogIn(good)
	f.begin("/").finish().refusedAs(t, "no_domain")

	anyone := f.agent.withoutToken()
	anyone.send("GET", "/auth/login?organisation=nobody&provider=acme", nil).refusedAs(t, "not_found")
	anyone.send("GET", "/auth/login?organisation=acme&provider=nobody", nil).refusedAs(t, "not_found")
	f.webProvider(issuer, object{"web_client_id": nil})
	anyone.send("GET", "/auth/login?organisation=acme&provider=acme", nil).refusedAs(t, "not_found")
}

func TestLoginRedirectsToThisServerOnly(t *testing.T) {
	t.Parallel()
	f, issuer := newFixture(t).tenant("acme"), identitytest.New(t)
	f.webProvider(issuer, object{"default_role": "viewer"})

	for to, want := range map[string]string{
		"/inbox/1?x=/y#z": "/inbox/1?x=/y#z", "": "/", "inbox": "/", "https://evil.example": "/", "//evil.example": "/", "/\\evil.example": "/",
		"/\t/evil.example": "/", "/\n/evil.example": "/", "javascript:alert(1)": "/", "https:evil": "/", "///evil.example": "/", "/%zz": "/",
	} {
		if at := f.begin(to).finish().wants(t, 303).header.Get("Location"); at != want {
			t.Errorf("a login for %q leads to %q, want %q", to, at, want)
		}
	}
}

func TestAConfidentialClientShowsItsSecret(t *testing.T) {
	t.Parallel()
	f, issuer := newFixture(t).tenant("acme"), identitytest.New(t)
	const secret = "hunter2-web"
	issuer.Confide(secret)
	issuer.LogIn(identitytest.Claims{"sub": "ana", "groups": "ops"})

	f.webProvider(issuer, object{})
	f.begin("/").finish().refusedAs(t, "login_refused")
	f.webProvider(issuer, object{"web_client_secret": secret})
	if a := f.begin("/").finish(); a.cookies()["cs"] == nil {
		t.Errorf("a login with the secret = %d %v", a.status, a.header)
	}
	f.webProvider(issuer, object{"label": "Other"}) // which keeps the secret
	if a := f.begin("/").finish(); a.cookies()["cs"] == nil {
		t.Errorf("a login with the kept secret = %d %v", a.status, a.header)
	}
	list := f.owner().send("GET", "/api/v1/identity-providers", nil).wants(t, 200)
	if !contains(list.body, `"has_web_client_secret":true`) || contains(list.body, secret) {
		t.Errorf("providers = %s", list.body)
	}
	moved := object{"issuer": "https://evil.example", "web_client_id": "web"}
	f.owner().send("PUT", "/api/v1/identity-providers/acme", moved).wants(t, 400)
	var stored string
	if err := f.db.QueryRow(t.Context(), "SELECT p::text || coalesce((SELECT string_agg(e::text, '') FROM events e), '') FROM identity_providers p").Scan(&stored); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(stored+f.logs.String(), secret) {
		t.Error("the secret is stored, recorded or logged")
	}
	f.webProvider(issuer, object{"web_client_secret": ""})
	f.begin("/").finish().refusedAs(t, "login_refused")
}

func TestLoginAtAnUnavailableIssuer(t *testing.T) {
	t.Parallel()
	f, issuer := newFixture(t).tenant("acme"), identitytest.New(t)
	f.webProvider(issuer, object{})
	issuer.SetDown(true)
	start := "/auth/login?organisation=acme&provider=acme"

	f.agent.withoutToken().send("GET", start, nil).refusedAs(t, "issuer_unavailable")

	issuer.SetDown(false)
	f.agent.withoutToken().send("GET", start, nil).refusedAs(t, "issuer_unavailable") // it is not requested each time
}

// TestPersonWithoutATokenIsNamedAsProposer reads a proposal of such a person
// in all places that name proposers.
func TestPersonWithoutATokenIsNamedAsProposer(t *testing.T) {
	t.Parallel()
	f, issuer := newFixture(t).tenant("acme"), identitytest.New(t)
	f.webProvider(issuer, object{})
	issuer.LogIn(identitytest.Claims{"sub": "ana", "name": "Ana Lima", "groups": []string{"ops"}})
	ana := &client{fixture: f.fixture, cookie: "cs=" + f.begin("/").finish().cookies()["cs"].Value}
	id := ana.propose("write")

	var inbox wire.Page[wire.InboxItem]
	f.operator.send("GET", "/api/v1/inbox", nil).wants(t, 200).into(t, &inbox)
	var whole shownHistory
	f.operator.send("GET", path(id, "/history"), nil).wants(t, 200).into(t, &whole)

	var log wire.Page[wire.Execution]
	f.operator.send("GET", "/api/v1/executions", nil).wants(t, 200).into(t, &log)

	by := envelope.Actor(whole.Items[0].Actor)
	if name, _, _ := by.Parts(); name != "Ana Lima" || len(inbox.Items) != 1 || inbox.Items[0].ProposedBy != by {
		t.Errorf("history says %q, and the inbox %+v", by, inbox.Items)
	}
	if len(log.Items) != 1 || log.Items[0].User == nil || log.Items[0].User.Name != "Ana Lima" {
		t.Errorf("the log says %+v", log.Items)
	}
}
