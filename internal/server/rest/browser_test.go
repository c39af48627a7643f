package rest_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/server/rest"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// cookieOf returns the cookie that an answer sets, as name=value, with its other
// attributes.
func (a answer) cookieOf(t testing.TB) (cookie, attributes string) {
	t.Helper()
	cookie, attributes, _ = strings.Cut(a.header.Get("Set-Cookie"), "; ")
	if cookie == "" {
		t.Fatalf("no cookie is set: %v", a.header)
	}
	return cookie, attributes
}

// login opens a session with a login code or a token, and returns the browser.
func (h *fixture) login(body object) *client {
	h.t.Helper()
	cookie, _ := (&client{fixture: h}).send("POST", "/auth/session", body).wants(h.t, 200).cookieOf(h.t)
	return &client{fixture: h, cookie: cookie}
}

// code makes a login code.
func (c *client) code() wire.LoginCode {
	c.t.Helper()
	var made wire.LoginCode
	c.send("POST", "/api/v1/login-codes", nil).wants(c.t, 201).into(c.t, &made)
	return made
}

// refused fails the test unless an answer is a problem with a status and a code.
func (a answer) refused(t testing.TB, status int, code string) {
	t.Helper()
	var p wire.Problem
	a.into(t, &p)
	if a.status != status || string(p.Code) != code {
		t.Errorf("answer = %d %s, want %d %s", a.status, a.body, status, code)
	}
}

func TestASessionActsAsItsToken(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("sessions")
	code := f.operator.code()
	if !strings.HasPrefix(code.URL, f.url+"/login#code=cs_code_") || !strings.HasSuffix(code.URL, code.Code) {
		t.Errorf("address = %s", code.URL)
	}

	for name, body := range map[string]object{"code": {"code": code.Code}, "token": {"token": f.operator.token}} {
		in := f.login(body)
		var me wire.Me
		in.send("GET", "/api/v1/me", nil).wants(t, 200).into(t, &me)
		if me.TokenID != f.operator.id.String() || me.Role != "operator" || me.Session == nil || !me.Session.IdleAt.Before(me.Session.ExpiresAt) {
			t.Errorf("by %s: me = %+v", name, me)
		}
		id := f.agent.propose("write")
		if a := in.send("POST", path(id, "/approve"), object{}).wants(t, 200).action(t); a.Decision.By != f.operator.named("operator") {
			t.Errorf("by %s: decided by %q, want as the token", name, a.Decision.By)
		}
		in.send("GET", "/api/v1/tokens", nil).wants(t, 403)
		in.send("POST", "/auth/logout", nil).wants(t, 204)
		in.send("GET", "/api/v1/me", nil).refused(t, 401, "session_ended")
	}
	for _, secret := range []string{code.Code, f.operator.token} {
		if strings.Contains(f.logs.String(), secret) {
			t.Error("the log holds a code or a token")
		}
	}
}

func TestTheCookieIsForThisServerAlone(t *testing.T) {
	t.Parallel()
	db := dbtest.DB(t)
	plain := newFixtureWith(t, db, rest.Config{}).tenant("cookies")
	behindTLS := newFixtureWith(t, db, rest.Config{PublicURL: "https://countersign.example.org"})
	open := object{"token": plain.operator.token}

	cookie, attributes := plain.operator.withoutToken().send("POST", "/auth/session", open).wants(t, 200).cookieOf(t)
	if !strings.HasPrefix(cookie, "cs=cs_session_") || attributes != "Path=/; HttpOnly; SameSite=Strict" {
		t.Errorf("cookie on this machine = %s; %s", cookie, attributes)
	}
	cookie, attributes = (&client{fixture: behindTLS}).send("POST", "/auth/session", open).wants(t, 200).cookieOf(t)
	if !strings.HasPrefix(cookie, "__Host-cs=cs_session_") || attributes != "Path=/; HttpOnly; Secure; SameSite=Strict" {
		t.Errorf("cookie over https = %s; %s", cookie, attributes)
	}
	renamed := &client{fixture: behindTLS, cookie: strings.TrimPrefix(cookie, "__Host-")}
	renamed.send("GET", "/api/v1/me", nil).wants(t, 401)
}

func (c *client) withoutToken() *client { return &client{fixture: c.fixture} }

func TestOtherSitesUseNoSession(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("sites")
	in := f.login(object{"token": f.operator.token})
	id := f.agent.propose("write")

	for name, header := range map[string][]string{
		"another site":              {"Sec-Fetch-Site", "cross-site"},
		"another host of this site": {"Sec-Fetch-Site", "same-site"},
		"another origin":            {"Sec-Fetch-Site", "", "Origin", "https://evil.example"},
		"no origin":                 {"Sec-Fetch-Site", "", "Origin", "null"},
	} {
		in.send("POST", path(id, "/approve"), object{}, header...).refused(t, 403, "cross_site")
		in.send("POST", "/auth/logout", nil, header...).refused(t, 403, "cross_site")
		in.send("POST", "/auth/session", object{"token": f.agent.token}, header...).refused(t, 403, "cross_site")
		if header[1] != "" {
			in.send("GET", "/api/v1/me", nil, header...).refused(t, 403, "cross_site")
		}
		if t.Failed() {
			t.Fatalf("by %s", name)
		}
	}
	for _, header := range [][]string{{"Sec-Fetch-Site", "none"}, {"Sec-Fetch-Site", ""}, {"Sec-Fetch-Site", "", "Origin", f.url}} {
		in.send("GET", "/api/v1/me", nil, header...).wants(t, 200)
	}
	in.send("POST", path(id, "/approve"), object{}).wants(t, 200)
}

func TestOneCredentialAtATime(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("both")
	in := f.login(object{"token": f.operator.token})

	in.send("GET", "/api/v1/me", nil, "Authorization", "Bearer "+f.admin.token).refused(t, 400, "two_credentials")
	in.send("GET", "/api/v1/me", nil, "Cookie", in.cookie+"; "+in.cookie).refused(t, 400, "two_credentials")
	f.admin.send("POST", "/auth/session", object{"token": f.operator.token}).refused(t, 400, "two_credentials")
	in.send("GET", "/api/v1/me", nil).wants(t, 200) // and is remembered
	in.withoutToken().send("GET", "/api/v1/me", nil, "Authorization", "Bearer "+strings.TrimPrefix(in.cookie, "cs=")).wants(t, 401)
	in.send("POST", "/api/v1/login-codes", nil).refused(t, 403, "no_token")
	f.operator.send("POST", "/auth/touch", nil).refused(t, 409, "no_session")
}

func TestALoginMakesASessionOfItsOwn(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("fixation")
	planted := f.login(object{"token": f.operator.token})

	cookie, _ := planted.send("POST", "/auth/session", object{"token": f.admin.token}).wants(t, 200).cookieOf(t)

	if cookie == planted.cookie {
		t.Fatal("the login took over the cookie that was there")
	}
	planted.send("GET", "/api/v1/me", nil).refused(t, 401, "session_ended")
	made := "cs=cs_session_" + strings.Repeat("A", 43)
	cookie, _ = (&client{fixture: f.fixture, cookie: made}).send("POST", "/auth/session", object{"token": f.admin.token}).wants(t, 200).cookieOf(t)
	if cookie == made {
		t.Error("the login took over a cookie that somebody made up")
	}
}

func TestACodeOpensOneSession(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("once")
	code := f.operator.code()

	var wg sync.WaitGroup
	opened := make(chan int, 8)
	for range cap(opened) {
		wg.Go(func() {
			a, err := f.operator.withoutToken().trySend(t.Context(), "POST", "/auth/session", object{"code": code.Code})
			if err != nil {
				t.Error(err)
			}
			opened <- a.status
		})
	}
	wg.Wait()
	close(opened)

	count := map[int]int{}
	for status := range opened {
		count[status]++
	}
	if count[http.StatusOK] != 1 || count[http.StatusUnauthorized] != 7 {
		t.Errorf("eight logins with one code = %v, want one", count)
	}
}

func TestRefusedSessions(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("none")
	anyone := f.operator.withoutToken()
	late := f.operator.code()
	if _, err := f.db.Exec(t.Context(), "UPDATE login_codes SET expires_at = now()"); err != nil {
		t.Fatal(err)
	}
	revoked := f.holder(identity.Grant{Name: "gone", Role: identity.RoleOperator})
	ended := revoked.code()
	f.admin.send("DELETE", "/api/v1/tokens/"+revoked.id.String(), nil).wants(t, 204)

	f.agent.send("POST", "/api/v1/login-codes", nil).wants(t, 403)
	anyone.send("POST", "/auth/session", object{"token": f.agent.token}).refused(t, 403, "agent_token")
	for name, body := range map[string]object{
		"a late code":           {"code": late.Code},
		"the code of a token":   {"code": ended.Code},
		"a revoked token":       {"token": revoked.token},
		"a token as a code":     {"code": f.operator.token},
		"a code as a token":     {"token": f.operator.code().Code},
		"what nobody gave":      {"code": "cs_code_" + strings.Repeat("A", 43)},
		"a token of an issuer":  {"token": "eyJhbGciOiJub25lIn0.e30."},
		"a text of other signs": {"token": "cs_owner_\u202e"},
	} {
		if a := anyone.send("POST", "/auth/session", body); a.status != 401 || a.header.Get("Set-Cookie") != "" {
			t.Errorf("a login with %s = %d %s", name, a.status, a.body)
		}
	}
	for _, body := range []object{{}, {"code": "a", "token": "b"}} {
		anyone.send("POST", "/auth/session", body).wants(t, 400)
	}
}

func TestPeopleSeeAndEndTheirSessions(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	f, elsewhere := h.tenant("mine"), h.tenant("elsewhere")
	first, second := f.login(object{"token": f.operator.token}), f.login(object{"code": f.operator.code().Code})
	other, stranger := f.login(object{"token": f.admin.token}), elsewhere.login(object{"token": elsewhere.admin.token})
	var mine, page wire.Page[wire.BrowserSession]

	second.send("GET", "/api/v1/me/sessions", nil, "User-Agent", "ignored").wants(t, 200).into(t, &mine)
	if len(mine.Items) != 2 || !mine.Items[0].Current || mine.Items[1].Current || mine.Items[0].Via != "code" || mine.Items[1].Via != "token" ||
		mine.Items[0].Address != "127.0.0.1" || mine.Items[0].Program != "Go-http-client/1.1" || time.Until(mine.Items[0].ExpiresAt) > identity.SessionMax {
		t.Fatalf("sessions = %+v", mine.Items)
	}
	f.operator.send("GET", "/api/v1/me/sessions?limit=1", nil).wants(t, 200).into(t, &page)
	f.operator.send("GET", "/api/v1/me/sessions?limit=1&cursor="+*page.NextCursor, nil).wants(t, 200).into(t, &page)
	if page.Items[0].ID != mine.Items[1].ID || page.NextCursor != nil {
		t.Errorf("second page = %+v", page)
	}
	for _, by := range []*client{other, stranger} {
		by.send("DELETE", "/api/v1/me/sessions/"+mine.Items[1].ID, nil).wants(t, 404)
	}
	second.send("DELETE", "/api/v1/me/sessions/"+mine.Items[1].ID, nil).wants(t, 204)

	first.send("GET", "/api/v1/me", nil).refused(t, 401, "session_ended")
	second.send("GET", "/api/v1/me", nil).wants(t, 200)
	f.operator.send("POST", "/api/v1/tokens/"+f.operator.id.String()+"/rotate", nil).wants(t, 403)
	f.admin.send("POST", "/api/v1/tokens/"+f.operator.id.String()+"/rotate", nil).wants(t, 200)
	second.send("GET", "/api/v1/me", nil).refused(t, 401, "session_ended")
}

func TestAdministratorsEndTheSessionsOfOthers(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	f, elsewhere := h.tenant("theirs"), h.tenant("elsewhere")
	owner := f.owner()
	in, own, above := f.login(object{"token": f.operator.token}), f.login(object{"token": f.admin.token}), f.login(object{"token": owner.token})
	elsewhere.login(object{"token": elsewhere.admin.token})
	var page wire.Page[wire.BrowserSession]
	a := own.send("GET", "/api/v1/operators/sessions", nil).wants(t, 200)
	a.into(t, &page)
	of := make(map[string]wire.BrowserSession)
	for _, s := range page.Items {
		of[s.Role] = s
	}
	if len(page.Items) != 3 || of["operator"].Token != f.operator.id.String() || of["operator"].Name == "" || of["operator"].Current || !of["admin"].Current {
		t.Fatalf("sessions = %+v", page.Items)
	}
	for _, secret := range []string{in.cookie, own.cookie, above.cookie, f.operator.token} {
		if strings.Contains(string(a.body), strings.TrimPrefix(secret, "cs=")) {
			t.Error("a secret shows in the list of sessions")
		}
	}
	end := func(s wire.BrowserSession) string { return "/api/v1/operators/sessions/" + s.ID }

	f.operator.send("GET", "/api/v1/operators/sessions", nil).wants(t, 403)
	f.operator.send("DELETE", end(of["operator"]), nil).wants(t, 403)
	own.send("DELETE", end(of["owner"]), nil).wants(t, 403)
	elsewhere.admin.send("DELETE", end(of["operator"]), nil).wants(t, 404)
	var answers [2]answer
	var errs [2]error
	var sending sync.WaitGroup
	for i, by := range []*client{own, owner} {
		sending.Go(func() { answers[i], errs[i] = by.trySend(t.Context(), "DELETE", end(of["operator"]), nil) })
	}
	sending.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	if a, b := answers[0].status, answers[1].status; a+b != 204+404 {
		t.Errorf("two end a session at the same time = %d and %d, want 204 once and 404", a, b)
	}

	in.send("GET", "/api/v1/me", nil).refused(t, 401, "session_ended")
	above.send("GET", "/api/v1/me", nil).wants(t, 200)
	own.send("DELETE", end(of["admin"]), nil).wants(t, 204)
	owner.send("DELETE", end(of["owner"]), nil).wants(t, 204)
	owner.send("GET", "/api/v1/operators/sessions", nil).wants(t, 200).into(t, &page)
	if len(page.Items) != 0 {
		t.Errorf("after all ended: %+v", page.Items)
	}
	var ends int
	if err := f.db.QueryRow(t.Context(), "SELECT count(1) FROM events WHERE tenant_id = $1 AND kind = 'session_ended'", f.id).Scan(&ends); err != nil || ends != 3 {
		t.Errorf("ends in the record = %d, %v, want 3", ends, err)
	}
}

func TestLoginOptions(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	anyone := &client{fixture: h}
	options := func(query string) wire.LoginOptions {
		t.Helper()
		var got wire.LoginOptions
		anyone.send("GET", "/auth/options"+query, nil).wants(t, 200).into(t, &got)
		return got
	}

	if got := options(""); got.Organisation != nil || got.IdleMinutes != 60 {
		t.Errorf("options of nobody = %+v", got)
	}
	h.tenant("acme")
	if got := options(""); got.Organisation == nil || *got.Organisation != "acme" {
		t.Errorf("options of the only organisation = %+v", got)
	}
	h.tenant("other")
	if got := options(""); got.Organisation != nil {
		t.Errorf("options of one of two = %+v", got)
	}
	known, unknown := options("?organisation=acme"), options("?organisation=nobody")
	if *known.Organisation != "acme" || *unknown.Organisation != "nobody" || len(known.Providers)+len(unknown.Providers) != 0 {
		t.Errorf("options = %+v and %+v", known, unknown)
	}
}

func TestStreamsEndWithTheSession(t *testing.T) {
	t.Parallel()
	f := newFixtureWith(t, dbtest.DB(t), rest.Config{Heartbeat: 5 * time.Millisecond}).tenant("streams")
	person := f.somebody("Ana", identity.RoleOperator)
	set := func(more object) {
		t.Helper()
		more["name"] = "Ana"
		f.admin.send("PUT", "/api/v1/operators/"+person.String(), more).wants(t, 200)
	}
	token := f.holder(identity.Grant{Name: "ana", Role: identity.RoleOperator, Operator: person}).token

	for name, end := range map[string]func(*client){
		"logout": func(in *client) { in.send("POST", "/auth/logout", nil).wants(t, 204) },
		"an administrator's end": func(in *client) {
			var mine wire.Page[wire.BrowserSession]
			in.send("GET", "/api/v1/me/sessions", nil).wants(t, 200).into(t, &mine)
			for _, s := range mine.Items {
				f.admin.send("DELETE", "/api/v1/operators/sessions/"+s.ID, nil).wants(t, 204)
			}
		},
		"demoted":  func(*client) { set(object{"role_set": "viewer"}) },
		"disabled": func(*client) { set(object{"role_set": "operator", "disabled": true}) },
	} {
		set(object{"role_set": "operator"})
		in := f.login(object{"token": token})
		l := in.listen("")

		end(in)

		_, err := l.next()
		for err == nil {
			_, err = l.next()
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("after %s the stream ended with %v", name, err)
		}
	}
}

func TestTouchKeepsASessionFromBeingIdle(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("touch")
	in := f.login(object{"token": f.operator.token})
	ends := func() wire.SessionEnds {
		t.Helper()
		var me wire.Me
		in.send("GET", "/api/v1/me", nil).wants(t, 200).into(t, &me)
		return *me.Session
	}
	set := func(what string) {
		t.Helper()
		if _, err := f.db.Exec(t.Context(), "UPDATE web_sessions SET "+what); err != nil {
			t.Fatal(err)
		}
	}
	set("idle_at = now() + interval '5 minutes'")
	f.api.Backend().Auth.Forget(f.operator.id)

	before := ends()
	f.agent.propose("read")
	if after := ends(); !after.IdleAt.Equal(before.IdleAt) || time.Until(before.IdleAt) > 5*time.Minute {
		t.Errorf("a request moved the end from %v to %v", before, after)
	}
	var touched wire.SessionEnds
	in.send("POST", "/auth/touch", nil).wants(t, 200).into(t, &touched)
	if now := ends(); touched != now || time.Until(now.IdleAt) < 59*time.Minute || !now.ExpiresAt.Equal(before.ExpiresAt) {
		t.Errorf("after a touch the session ends %+v, and the touch said %+v", now, touched)
	}
	set("expires_at = now() + interval '10 minutes'")
	in.send("POST", "/auth/touch", nil).wants(t, 200).into(t, &touched)
	if touched.IdleAt.After(touched.ExpiresAt) || time.Until(touched.ExpiresAt) > 10*time.Minute {
		t.Errorf("a touch moved the end to %+v", touched)
	}
	set("idle_at = now()")
	in.send("POST", "/auth/touch", nil).refused(t, 401, "session_ended")
}

// TestLoginCodeIsConfirmedBeforeItsUse: the person of a code can be shown without using the
// code up and without ending the browser's session.
func TestLoginCodeIsConfirmedBeforeItsUse(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("shown")
	var code struct{ Code string }
	f.operator.send("POST", "/api/v1/login-codes", nil).wants(t, 201).into(t, &code)
	browser := &client{fixture: f.fixture}
	for range 2 {
		a := browser.send("POST", "/auth/code", object{"code": code.Code}).wants(t, 200)
		var holder wire.LoginCodeHolder
		a.into(t, &holder)
		if want := (wire.LoginCodeHolder{Name: "operator", Role: "operator", Tenant: "shown"}); holder != want || len(a.header["Set-Cookie"]) != 0 {
			t.Errorf("the code is of %+v with cookies %v, want %+v and none", holder, a.header["Set-Cookie"], want)
		}
	}
	browser.send("POST", "/auth/code", object{"code": code.Code}, "Sec-Fetch-Site", "cross-site").wants(t, 403)
	browser.send("POST", "/auth/session", object{"code": code.Code}).wants(t, 200)
	browser.send("POST", "/auth/code", object{"code": code.Code}).wants(t, 401)
}

// TestALinkBeginsNoLogin: a page of another site, or a link in a mail, leads to the
// page to log in, where the person chooses.
func TestALinkBeginsNoLogin(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("linked")
	for _, site := range []string{"cross-site", "same-site", "none"} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", f.url+"/auth/login?organisation=linked&provider=evil&to=/inbox", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Sec-Fetch-Site", site)
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if at := res.Header.Get("Location"); res.StatusCode != 303 || at != "/login?to=%2Finbox" || len(res.Header["Set-Cookie"]) != 0 {
			t.Errorf("from %s: %d to %q with cookies %v, want the page to log in", site, res.StatusCode, at, res.Header["Set-Cookie"])
		}
	}
}
