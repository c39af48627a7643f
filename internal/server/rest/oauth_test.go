package rest_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/server/rest"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

const (
	verifier = "a-code-verifier-of-at-least-forty-three-characters"
	callback = "http://localhost:7777/callback"
)

var challenge = challengeOf(verifier)

func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// program is a program that was given the URL of the MCP server.
type program struct {
	*fixture
	id string
	// cookies are those of the browser that brought its requests.
	cookies []string
}

func newOAuthFixture(t testing.TB) *tenantFixture {
	t.Helper()
	return newFixtureWith(t, dbtest.DB(t), rest.Config{OAuth: true}).tenant("programs")
}

// ask sends a request without cookies, follows no redirect, and returns the answer.
func (h *fixture) ask(method, to string, header http.Header, body string) (int, http.Header, string) {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), method, to, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header = header
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(text)
}

func (h *fixture) register(redirects ...string) *program {
	h.t.Helper()
	body, _ := json.Marshal(map[string]any{"client_name": "A\u202egent", "redirect_uris": redirects, "application_type": "native"})
	status, _, text := h.ask("POST", h.url+"/oauth/register", http.Header{"Content-Type": {"application/json"}}, string(body))
	var made struct {
		ID     string `json:"client_id"`
		Name   string `json:"client_name"`
		Method string `json:"token_endpoint_auth_method"`
	}
	if err := json.Unmarshal([]byte(text), &made); err != nil || status != 201 || made.Name != "Agent" || made.Method != "none" || strings.Contains(text, "null") {
		h.t.Fatalf("register = %d %s", status, text)
	}
	return &program{fixture: h, id: made.ID}
}

// with returns the parameters of a request for a login, some replaced. An empty value
// leaves a parameter out.
func (p *program) with(pairs ...string) url.Values {
	q := url.Values{
		"client_id": {p.id}, "redirect_uri": {callback}, "response_type": {"code"}, "code_challenge": {challenge}, "code_challenge_method": {"S256"},
		"state": {"s&=1"}, "resource": {p.url + "/mcp"}, "scope": {"actions:propose actions:read catalog:read offline_access policy:write"},
	}
	for i := 0; i < len(pairs); i += 2 {
		if q.Set(pairs[i], pairs[i+1]); pairs[i+1] == "" {
			q.Del(pairs[i])
		}
	}
	return q
}

// authorize returns the request that the consent page shows.
func (p *program) authorize(pairs ...string) string {
	p.t.Helper()
	status, header, text := p.ask("GET", p.url+"/oauth/authorize?"+p.with(pairs...).Encode(), nil, "")
	request, ok := strings.CutPrefix(header.Get("Location"), p.url+"/connect?request=")
	if status != 303 || !ok {
		p.t.Fatalf("authorize = %d %s %s", status, header.Get("Location"), text)
	}
	cookie, _, _ := strings.Cut(header.Get("Set-Cookie"), ";")
	p.cookies = append(p.cookies, cookie)
	return request
}

// browser is the browser that brought the requests, with the session of a person.
func (p *program) browser(in *client) *client {
	return &client{fixture: in.fixture, cookie: strings.Join(append([]string{in.cookie}, p.cookies...), "; ")}
}

// consent has a person in a browser consent, and returns the parameters of the answer.
func (p *program) consent(in *client, request string) url.Values {
	p.t.Helper()
	var to wire.ConsentLocation
	p.browser(in).send("POST", "/auth/consent", object{"request": request, "agree": true, "name": "mail agent", "tools": []string{"mail:*"}, "expires_in": "7d"}).wants(p.t, 200).into(p.t, &to)
	u, err := url.Parse(to.Location)
	if err != nil || !strings.HasPrefix(to.Location, callback+"?") {
		p.t.Fatalf("location = %s", to.Location)
	}
	return u.Query()
}

type secrets struct {
	Access    string `json:"access_token"`
	Refresh   string `json:"refresh_token"`
	ExpiresIn int    `json:"expires_in"`
	Scope     string
	Error     string
}

func (p *program) fetch(pairs ...string) (int, secrets) {
	p.t.Helper()
	f := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		f.Set(pairs[i], pairs[i+1])
	}
	status, header, text := p.ask("POST", p.url+"/oauth/token", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, f.Encode())
	var s secrets
	if err := json.Unmarshal([]byte(text), &s); err != nil || header.Get("Cache-Control") != "no-store" {
		p.t.Fatalf("token = %d %s %v", status, text, header)
	}
	return status, s
}

func (p *program) redeem(code string, pairs ...string) (int, secrets) {
	return p.fetch(append([]string{"grant_type", "authorization_code", "client_id", p.id, "redirect_uri", callback, "code_verifier", verifier, "resource", p.url + "/mcp", "code", code}, pairs...)...)
}

func (p *program) refresh(token string, pairs ...string) (int, secrets) {
	return p.fetch(append([]string{"grant_type", "refresh_token", "client_id", p.id, "refresh_token", token}, pairs...)...)
}

// holder returns who shows an access token; ok is false if it is not valid.
func (p *program) holder(access string) (who identity.Principal, ok bool) {
	p.t.Helper()
	who, err := identity.NewAuthenticator(p.db).Authenticate(p.t.Context(), access, time.Now())
	return who, err == nil
}

func TestAProgramLogsInByTheURLAlone(t *testing.T) {
	t.Parallel()
	f := newOAuthFixture(t)
	in := f.login(object{"token": f.admin.token})

	for _, at := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} {
		status, header, text := f.ask("GET", f.url+at, nil, "")
		if status != 200 || header.Get("Access-Control-Allow-Origin") != "*" || !strings.Contains(text, `"resource":"`+f.url+`/mcp"`) || !strings.Contains(text, `"authorization_servers":["`+f.url+`"]`) || strings.Contains(text, "offline_access") {
			t.Errorf("GET %s = %d %s", at, status, text)
		}
	}
	_, _, text := f.ask("GET", f.url+"/.well-known/oauth-authorization-server", nil, "")
	if !strings.Contains(text, `"issuer":"`+f.url+`"`) || !strings.Contains(text, `"code_challenge_methods_supported":["S256"]`) || !strings.Contains(text, "offline_access") {
		t.Errorf("metadata = %s", text)
	}
	p := f.register(callback)
	request := p.authorize()
	var shown wire.ProgramRequest
	p.browser(in).send("POST", "/auth/program", object{"request": request}).wants(t, 200).into(t, &shown)
	if !shown.MayConsent || shown.Program != "Agent" || shown.VouchedBy != nil || shown.RedirectHost != "localhost" || !shown.Local || !slices.Equal(shown.Scopes, []string{"actions:propose", "actions:read", "catalog:read"}) {
		t.Errorf("request = %+v", shown)
	}
	answer := p.consent(in, request)
	if answer.Get("state") != "s&=1" || answer.Get("iss") != f.url {
		t.Errorf("answer = %v", answer)
	}
	status, made := p.redeem(answer.Get("code"))
	if status != 200 || made.ExpiresIn < 3590 || made.Scope != "actions:propose actions:read catalog:read" {
		t.Fatalf("token = %d %+v", status, made)
	}
	who, ok := p.holder(made.Access)
	if !ok || who.Role != identity.RoleAgent || who.Resource != f.url+"/mcp" || !slices.Equal(who.Tools, []string{"mail:*"}) || who.Name != "mail agent" {
		t.Errorf("holder = %+v", who)
	}
	// Its token is for /mcp alone, and listed like others.
	a := (&client{fixture: f.fixture, token: made.Access}).send("GET", "/api/v1/tools", nil)
	a.wants(t, 401)
	if list := string(f.admin.send("GET", "/api/v1/tokens", nil).wants(t, 200).body); !strings.Contains(list, `"mail agent"`) {
		t.Errorf("tokens = %s", list)
	}
	f.admin.send("DELETE", "/api/v1/tokens/"+who.Token.String(), nil).wants(t, 204)
	if status, _ := p.refresh(made.Refresh); status != 400 {
		t.Errorf("refresh after the end = %d, want 400", status)
	}
	for _, secret := range []string{answer.Get("code"), made.Access, made.Refresh, request} {
		if strings.Contains(f.logs.String(), secret) {
			t.Error("the log holds a code, a token or a request")
		}
	}
}

func TestOnlyPeopleInBrowsersConsent(t *testing.T) {
	t.Parallel()
	f := newOAuthFixture(t)
	p := f.register(callback)
	request := p.authorize()
	body := object{"request": request, "agree": true, "name": "x"}

	f.admin.send("POST", "/auth/consent", body).refused(t, 403, "no_session")
	f.agent.send("POST", "/auth/consent", body).wants(t, 403)
	operator := p.browser(f.login(object{"token": f.operator.token}))
	operator.send("POST", "/auth/consent", body).wants(t, 403)
	var shown wire.ProgramRequest
	operator.send("POST", "/auth/program", object{"request": request}).wants(t, 200).into(t, &shown)
	if shown.MayConsent || shown.WhyNot == "" {
		t.Errorf("request for an operator = %+v", shown)
	}
	in := p.browser(f.login(object{"token": f.admin.token}))
	in.send("POST", "/auth/consent", body, "Sec-Fetch-Site", "cross-site").refused(t, 403, "cross_site")
	in.send("POST", "/auth/consent", object{"request": "AAAA" + request, "agree": true, "name": "x"}).refused(t, 409, "login_expired")
	in.send("POST", "/auth/consent", object{"request": request, "agree": true}).wants(t, 400)
	var to wire.ConsentLocation
	in.send("POST", "/auth/consent", object{"request": request, "agree": false}).wants(t, 200).into(t, &to)
	if u, _ := url.Parse(to.Location); u.Query().Get("error") != "access_denied" || u.Query().Get("iss") != f.url || u.Query().Get("state") != "s&=1" {
		t.Errorf("denied = %s", to.Location)
	}
	if list := string(f.admin.send("GET", "/api/v1/tokens", nil).wants(t, 200).body); strings.Contains(list, `"name":"x"`) {
		t.Errorf("tokens = %s", list)
	}
}

// TestOnlyTheBrowserThatBeganAConsentAnswersIt has an attacker bring a request, and lead a
// victim to its page, or plant a cookie. A second browser with the program's address begins
// a request of its own.
func TestOnlyTheBrowserThatBeganAConsentAnswersIt(t *testing.T) {
	t.Parallel()
	f := newOAuthFixture(t)
	attacker := f.register(callback)
	first := attacker.authorize()
	second := attacker.authorize()
	victim := f.login(object{"token": f.admin.token})
	body := func(request string) object { return object{"request": request, "agree": true, "name": "x"} }

	victim.send("POST", "/auth/program", object{"request": first}).refused(t, 403, "login_expired")
	victim.send("POST", "/auth/consent", body(first)).refused(t, 403, "login_expired")
	victim.send("POST", "/auth/consent", object{"request": first, "agree": false}).refused(t, 403, "login_expired")
	name, value, _ := strings.Cut(attacker.cookies[0], "=")
	_, other, _ := strings.Cut(attacker.cookies[1], "=")
	for _, cookie := range []string{
		attacker.cookies[1],                      // of another request
		name + "=" + other,                       // of another request, under the name of this
		name + "=",                               // empty
		attacker.cookies[0] + "; " + name + "=x", // two of that name
		strings.Replace(name, "_connect_", "_", 1) + "=" + value, // under another name
	} {
		planted := &client{fixture: f.fixture, cookie: victim.cookie + "; " + cookie}
		planted.send("POST", "/auth/consent", body(first)).refused(t, 403, "login_expired")
	}

	own := f.register(callback)
	own.consent(victim, own.authorize())
	attacker.consent(victim, first)
	attacker.consent(victim, second) // each has its cookie
	third := own.authorize()
	answer := own.browser(victim).send("POST", "/auth/consent", body(third)).wants(t, 200)
	_, attributes := answer.cookieOf(t)
	if !strings.Contains(attributes, "Max-Age=0") {
		t.Errorf("the cookie stays after the answer: %s", attributes)
	}

	_, header, _ := f.ask("GET", f.url+"/oauth/authorize?"+own.with().Encode(), http.Header{"Cookie": {"cs_connect_a=1; cs_connect_b=1; cs_connect_c=1; cs_connect_d=1; cs_connect_e=1; cs=1"}}, "")
	set := header.Values("Set-Cookie")
	if len(set) != 6 || !strings.HasPrefix(set[0], "cs_connect_a=; ") || !strings.Contains(set[5], "; HttpOnly; SameSite=Lax") {
		t.Errorf("a browser with many requests gets %q", set)
	}
}

func TestRequestsOfProgramsAreChecked(t *testing.T) {
	t.Parallel()
	f := newOAuthFixture(t)
	p := f.register(callback, "https://app.example/cb?x=1", "cursor://anysphere.cursor-mcp/oauth/callback")

	// Errors about the program or its address go nowhere.
	for _, pairs := range [][]string{
		{"client_id", "cs_client_AAAA"}, {"client_id", ""}, {"client_id", "https://app.example/"},
		{"redirect_uri", ""}, {"redirect_uri", "http://localhost:7777/other"}, {"redirect_uri", "http://localhost:7777/callback/../evil"}, {"redirect_uri", "http://localhost:7777/callback#x"},
		{"redirect_uri", "http://localhost.evil.example/callback"}, {"redirect_uri", "http://user@localhost:7777/callback"}, {"redirect_uri", "https://localhost:7777/callback"},
		{"redirect_uri", "http://127.0.0.1:7777/callback"}, {"redirect_uri", "https://app.example/cb"}, {"redirect_uri", "https://app.example/cb?x=1&y"}, {"redirect_uri", "javascript:alert(1)"},
		{"redirect_uri", "http://localhost:7777/callback?x"},
	} {
		if status, header, text := f.ask("GET", f.url+"/oauth/authorize?"+p.with(pairs...).Encode(), nil, ""); status != 400 || header.Get("Location") != "" || strings.Contains(text, "evil") {
			t.Errorf("with %q: %d, Location %q, %s", pairs, status, header.Get("Location"), text)
		}
	}
	if status, header, _ := f.ask("GET", f.url+"/oauth/authorize?"+p.with().Encode()+"&redirect_uri=https://evil.example/", nil, ""); status != 400 || header.Get("Location") != "" {
		t.Errorf("two redirect addresses: %d %s", status, header.Get("Location"))
	}
	// All others go back to the program, with the issuer.
	for _, c := range [][]string{
		{"invalid_request", "code_challenge", ""}, {"invalid_request", "code_challenge_method", "plain"}, {"invalid_request", "code_challenge_method", ""}, {"invalid_request", "code_challenge", "short"},
		{"unsupported_response_type", "response_type", "token"}, {"invalid_target", "resource", "https://evil.example/mcp"}, {"invalid_target", "resource", f.url + "/mcp/"},
	} {
		_, header, _ := f.ask("GET", f.url+"/oauth/authorize?"+p.with(c[1:]...).Encode(), nil, "")
		u, err := url.Parse(header.Get("Location"))
		if err != nil || !strings.HasPrefix(u.String(), callback+"?") || u.Query().Get("error") != c[0] || u.Query().Get("iss") != f.url || u.Query().Get("state") != "s&=1" {
			t.Errorf("with %q: %s, want %s", c[1:], header.Get("Location"), c[0])
		}
	}
	// Any port of this machine, no resource and no scope are right.
	p.authorize("redirect_uri", "http://localhost:1/callback", "resource", "", "scope", "")
	p.authorize("redirect_uri", "cursor://anysphere.cursor-mcp/oauth/callback", "state", "")

	for body, want := range map[string]string{
		`{"redirect_uris":["javascript:alert(1)"]}`:         "invalid_redirect_uri",
		`{"redirect_uris":["http://app.example/cb"]}`:       "invalid_redirect_uri",
		`{"redirect_uris":["https://app.example/cb#frag"]}`: "invalid_redirect_uri",
		`{"redirect_uris":["https://*.example/cb"]}`:        "invalid_redirect_uri",
		`{"redirect_uris":[]}`:                              "invalid_redirect_uri",
		`{"redirect_uris":"x"}`:                             "invalid_client_metadata",
		`[`:                                                 "invalid_client_metadata",
	} {
		if status, _, text := f.ask("POST", f.url+"/oauth/register", http.Header{"Content-Type": {"application/json"}}, body); status != 400 || !strings.Contains(text, want) {
			t.Errorf("register %s = %d %s, want %s", body, status, text, want)
		}
	}
}

func TestACodeIsForOneUseOfOneProgram(t *testing.T) {
	t.Parallel()
	f := newOAuthFixture(t)
	in := f.login(object{"token": f.admin.token})
	p, other := f.register(callback), f.register(callback)
	code := p.consent(in, p.authorize()).Get("code")

	for _, pairs := range [][]string{
		{"client_id", other.id}, {"code_verifier", verifier + "x"}, {"code_verifier", ""}, {"redirect_uri", "http://localhost:1/callback"}, {"code", code + "x"}, {"code", ""},
	} {
		if status, s := p.redeem(code, pairs...); status != 400 || s.Error != "invalid_grant" {
			t.Errorf("with %q: %d %+v", pairs, status, s)
		}
	}
	if status, s := p.redeem(code, "resource", "https://evil.example/mcp"); status != 400 || s.Error != "invalid_target" {
		t.Errorf("for another resource: %d %+v", status, s)
	}
	status, made := p.redeem(code)
	if status != 200 {
		t.Fatalf("token = %d %+v", status, made)
	}
	// The second use may be a thief's, or the first was.
	if status, s := p.redeem(code); status != 400 || s.Error != "invalid_grant" {
		t.Errorf("second use = %d %+v", status, s)
	}
	if _, ok := p.holder(made.Access); ok {
		t.Error("the token is valid after a second use of its code")
	}
	// A code that nobody fetched ends, and its token with it.
	late := p.consent(in, p.authorize()).Get("code")
	f.exec("UPDATE program_logins SET code_expires_at = now() - interval '2 minutes' WHERE code_used_at IS NULL")
	if status, _ := p.redeem(late); status != 400 {
		t.Errorf("late use = %d", status)
	}
	p.consent(in, p.authorize())
	if n := strings.Count(string(f.admin.send("GET", "/api/v1/tokens", nil).wants(t, 200).body), `"mail agent"`); n != 1 {
		t.Errorf("%d agents are listed, want the last one", n)
	}
}

func TestRefreshTokensRotate(t *testing.T) {
	t.Parallel()
	f := newOAuthFixture(t)
	in := f.login(object{"token": f.admin.token})
	p, other := f.register(callback), f.register(callback)
	_, first := p.redeem(p.consent(in, p.authorize()).Get("code"))

	if status, s := other.refresh(first.Refresh); status != 400 || s.Error != "invalid_grant" {
		t.Errorf("by another program: %d %+v", status, s)
	}
	// Clients renew from several processes at once: all get the same secrets.
	var wg sync.WaitGroup
	got := make([]secrets, 8)
	for i := range got {
		wg.Go(func() { _, got[i] = p.refresh(first.Refresh) })
	}
	wg.Wait()
	for _, s := range got {
		if s.Access != got[0].Access || s.Refresh != got[0].Refresh || s.Access == "" {
			t.Errorf("parallel refreshes got %+v and %+v", s, got[0])
		}
	}
	next := got[0]
	for _, access := range []string{first.Access, next.Access} {
		if _, ok := p.holder(access); !ok {
			t.Error("a secret is not valid right after a refresh")
		}
	}
	// The first expires, at the latest a minute later.
	f.exec("UPDATE api_tokens SET previous_until = now() WHERE previous_until IS NOT NULL")
	if _, ok := p.holder(first.Access); ok {
		t.Error("the old secret is valid after its time")
	}
	f.exec("UPDATE api_tokens SET secret_until = now() WHERE secret_until IS NOT NULL")
	if _, ok := p.holder(next.Access); ok {
		t.Error("a secret is valid after its time")
	}
	status, last := p.refresh(next.Refresh, "resource", f.url+"/mcp")
	if who, ok := p.holder(last.Access); status != 200 || !ok || !slices.Equal(who.Tools, []string{"mail:*"}) {
		t.Fatalf("refresh = %d %+v", status, last)
	}
	// After the grace, a second use ends the login.
	f.exec("UPDATE refresh_tokens SET used_at = used_at - interval '31 seconds' WHERE used_at IS NOT NULL")
	if status, s := p.refresh(first.Refresh); status != 400 || s.Error != "invalid_grant" {
		t.Errorf("reuse = %d %+v", status, s)
	}
	if _, ok := p.holder(last.Access); ok {
		t.Error("the login is valid after a reuse")
	}
	if status, _ := p.refresh(last.Refresh); status != 400 {
		t.Errorf("refresh after a reuse = %d", status)
	}
}

func TestAnAgentEndsWithItsPersonAndItsProgram(t *testing.T) {
	t.Parallel()
	f := newOAuthFixture(t)
	person := f.somebody("Ana", identity.RoleAdmin)
	ana := f.holder(identity.Grant{Name: "ana", Role: identity.RoleAdmin, Operator: person})
	in, p := f.login(object{"token": ana.token}), f.register(callback)
	_, made := p.redeem(p.consent(in, p.authorize()).Get("code"))

	who, ok := p.holder(made.Access)
	if !ok || who.Operator != person {
		t.Fatalf("holder = %+v", who)
	}
	f.exec("UPDATE operators SET disabled_at = now()")
	if _, ok := p.holder(made.Access); ok {
		t.Error("the agent of a disabled person is valid")
	}
	if status, _ := p.refresh(made.Refresh); status != 400 {
		t.Errorf("refresh of a disabled person's agent = %d", status)
	}
	f.exec("UPDATE operators SET disabled_at = NULL")
	if status, _ := p.refresh(made.Refresh); status != 200 {
		t.Errorf("refresh of an enabled person's agent = %d", status)
	}
	form := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	for _, token := range []string{"nothing", f.agent.token, made.Refresh} {
		if status, _, text := f.ask("POST", f.url+"/oauth/revoke", form, url.Values{"token": {token}}.Encode()); status != 200 {
			t.Errorf("revoke = %d %s", status, text)
		}
	}
	if _, ok := p.holder(made.Access); ok {
		t.Error("the token is valid after its program ended it")
	}
	f.agent.send("GET", "/api/v1/me", nil).wants(t, 200) // no login of a program
}

func TestTooManyRequestsOfOneAddressAreLimited(t *testing.T) {
	t.Parallel()
	f := newOAuthFixture(t)
	p := f.register(callback)
	limited := false
	for range 200 {
		status, header, _ := f.ask("GET", f.url+"/oauth/authorize?"+p.with().Encode(), nil, "")
		limited = limited || status == 429 && header.Get("Retry-After") != ""
	}
	if !limited {
		t.Error("200 requests at once are answered")
	}
}
