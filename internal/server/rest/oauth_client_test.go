package rest_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/client/wire"
)

const (
	resourceMetadata = "/.well-known/oauth-protected-resource"
	serverMetadata   = "/.well-known/oauth-authorization-server"
)

// playedBack are the requests of a client that was given the URL of /mcp, as its
// documentation and its reports show them. Claude Code, which has a metadata document, is in
// package oauth.
type playedBack struct {
	client string
	// looks are the addresses that it looks up, in order. Those that are missing are
	// answered with 404, not with a page.
	looks []string
	// registers are the redirect addresses of its registration, answers those to
	// which it then has the browser sent.
	registers, answers []string
	// scope is the scope that it requests; "" if none.
	scope string
}

func played() []playedBack {
	const named = "actions:propose actions:read catalog:read"
	usual := []string{resourceMetadata + "/mcp", serverMetadata}
	return []playedBack{
		{
			"Cursor", usual,
			[]string{"cursor://anysphere.cursor-mcp/oauth/callback", "https://www.cursor.com/agents/mcp/oauth/callback", "http://localhost:8787/callback"},
			[]string{"cursor://anysphere.cursor-mcp/oauth/callback", "https://www.cursor.com/agents/mcp/oauth/callback", "http://localhost:8787/callback"}, named,
		},
		{
			"VS Code", usual,
			[]string{"https://insiders.vscode.dev/redirect", "https://vscode.dev/redirect", "http://127.0.0.1/", "http://127.0.0.1:33418/"},
			[]string{"https://vscode.dev/redirect", "http://127.0.0.1:33418/", "http://127.0.0.1:51234/"}, named,
		},
		{
			"Codex", usual,
			[]string{"http://127.0.0.1:49152/callback/5f4dcc3b5aa765d6"}, []string{"http://127.0.0.1:49152/callback/5f4dcc3b5aa765d6", "http://127.0.0.1:49153/callback/5f4dcc3b5aa765d6"}, "",
		},
		{
			"Gemini CLI", []string{resourceMetadata, serverMetadata},
			[]string{"http://localhost:7777/oauth/callback"}, []string{"http://localhost:7777/oauth/callback", "http://localhost:40123/oauth/callback"}, named + " offline_access",
		},
		{
			"claude.ai", []string{resourceMetadata + "/mcp", serverMetadata},
			[]string{"https://claude.ai/api/mcp/auth_callback", "https://claude.com/api/mcp/auth_callback"}, []string{"https://claude.ai/api/mcp/auth_callback"}, named + " offline_access",
		},
		{
			"ChatGPT", []string{resourceMetadata + "/mcp", serverMetadata},
			[]string{"https://chatgpt.com/connector/oauth/abc123", "https://chatgpt.com/connector_platform_oauth_redirect"}, []string{"https://chatgpt.com/connector/oauth/abc123"}, named,
		},
		{
			"a client of 2025-03-26", []string{serverMetadata, resourceMetadata}, []string{"http://localhost:3334/oauth/callback"}, []string{"http://localhost:3334/oauth/callback"}, "",
		},
	}
}

func TestTheRequestsOfKnownClientsGetAToken(t *testing.T) {
	t.Parallel()
	f := newOAuthFixture(t)
	in := f.login(object{"token": f.admin.token})
	for _, c := range played() {
		t.Run(c.client, func(t *testing.T) {
			found := make(map[string]any)
			for _, at := range c.looks {
				status, _, text := f.ask("GET", f.url+at, http.Header{"Mcp-Protocol-Version": {"2025-11-25"}}, "")
				if err := json.Unmarshal([]byte(text), &found); status != 200 || err != nil {
					t.Fatalf("GET %s = %d %s", at, status, text)
				}
			}
			if found["resource"] != f.url+"/mcp" || found["issuer"] != f.url {
				t.Fatalf("found %v", found)
			}
			body, _ := json.Marshal(map[string]any{
				"client_name": c.client, "redirect_uris": c.registers, "grant_types": []string{"authorization_code", "refresh_token"},
				"response_types": []string{"code"}, "token_endpoint_auth_method": "none", "application_type": "native", "scope": c.scope,
			})
			status, _, text := f.ask("POST", found["registration_endpoint"].(string), http.Header{"Content-Type": {"application/json"}}, string(body))
			var made struct {
				ID        string   `json:"client_id"`
				Redirects []string `json:"redirect_uris"`
			}
			if err := json.Unmarshal([]byte(text), &made); err != nil || status != 201 || !slices.Equal(made.Redirects, c.registers) || strings.Contains(text, "null") {
				t.Fatalf("register = %d %s", status, text)
			}
			p := &program{fixture: f.fixture, id: made.ID}
			for _, redirect := range c.answers {
				request := p.authorize("redirect_uri", redirect, "scope", c.scope)
				var shown wire.ProgramRequest
				p.browser(in).send("POST", "/auth/program", object{"request": request}).wants(t, 200).into(t, &shown)
				var to wire.ConsentLocation
				p.browser(in).send("POST", "/auth/consent", object{"request": request, "agree": true, "name": c.client}).wants(t, 200).into(t, &to)
				back, err := url.Parse(to.Location)
				if err != nil || !strings.HasPrefix(to.Location, redirect+"?") || back.Query().Get("iss") != found["issuer"] || shown.Program != c.client || shown.VouchedBy != nil {
					t.Fatalf("%s: the browser goes to %s after %+v", redirect, to.Location, shown)
				}
				status, got := p.redeem(back.Query().Get("code"), "redirect_uri", redirect)
				if who, ok := p.holder(got.Access); status != 200 || !ok || who.Resource != f.url+"/mcp" || got.Refresh == "" {
					t.Errorf("%s: token = %d %+v", redirect, status, got)
				}
				if status, again := p.refresh(got.Refresh, "resource", f.url+"/mcp"); status != 200 || again.Scope != got.Scope {
					t.Errorf("%s: refresh = %d %+v", redirect, status, again)
				}
			}
		})
	}
}

// The traps of such a server, and the tests that hold them:
//
//   - The resource is the pasted URL byte for byte; addresses are of the configuration, not
//     of the Host header: TestRequestsOfProgramsAreChecked, TestAddressesAreThoseOfTheConfiguration.
//   - A missing resource and scope are right: TestRequestsOfProgramsAreChecked,
//     mcpserver.TestConformanceOfTheAuthorizationServer.
//   - The first 401 names every scope; each method has the challenge, and pages can read it:
//     mcpserver.TestAnAnswer401LeadsToTheLogin.
//   - The method none is announced with the flag of metadata documents, and documents that
//     also list another are accepted: TestAddressesAreThoseOfTheConfiguration, oauth.TestMetadataDocuments.
//   - Any port of this machine, else the exact address: oauth.TestRedirectAddresses.
//   - Every address of a client registers, no member is null, requests are limited, and unused
//     registrations expire: TestTheRequestsOfKnownClientsGetAToken, TestTooManyRequestsOfOneAddressAreLimited,
//     oauth.TestUnusedRegistrationsExpire.
//   - A refresh token has a grace, and scopes never widen: TestRefreshTokensRotate, TestScopesDoNotWiden.
//   - Metadata documents are fetched from outside, without redirects, bounded and kept:
//     oauth.TestMetadataDocuments, oauth.TestDocumentsAreOutside, oauth.TestDocumentsAreKept.
//   - Each request needs a consent, by a session, from a page of this origin, which no other
//     page frames: TestOnlyPeopleInBrowsersConsent, TestEveryRequestNeedsAConsent.
//   - Streams end when the login's secret expires or is revoked, and a session is of one
//     login: mcpserver.TestStreamsEndWithTheLogin, mcpserver.TestSessionBelongsToItsToken.
//   - A code is of one program and one challenge, so that one of another login is of no use:
//     TestACodeIsForOneUseOfOneProgram, TestACodeOfAnotherLoginIsOfNoUse.
//   - Each answer names the issuer, errors too: TestRequestsOfProgramsAreChecked,
//     TestOnlyPeopleInBrowsersConsent, TestAProgramLogsInByTheURLAlone.

func TestAddressesAreThoseOfTheConfiguration(t *testing.T) {
	t.Parallel()
	f := newOAuthFixture(t)

	for _, at := range []string{resourceMetadata, resourceMetadata + "/mcp", serverMetadata} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.url+at, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "evil.example"
		r.Header.Set("X-Forwarded-Host", "evil.example")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var found map[string]any
		err = json.NewDecoder(answer.Body).Decode(&found)
		_ = answer.Body.Close()
		text, _ := json.Marshal(found)
		if err != nil || strings.Contains(string(text), "evil") || !strings.Contains(string(text), f.url) {
			t.Errorf("GET %s = %s, %v", at, text, err)
		}
		if at == serverMetadata && (found["client_id_metadata_document_supported"] != true || !strings.Contains(string(text), `"token_endpoint_auth_methods_supported":["none"]`)) {
			t.Errorf("metadata = %s", text)
		}
	}
	// Clients look there too, and must not take a page for metadata.
	for _, at := range []string{"/.well-known/openid-configuration", resourceMetadata + "/other", "/mcp/.well-known/openid-configuration", serverMetadata + "/mcp"} {
		if status, _, text := f.ask("GET", f.url+at, nil, ""); status == 200 {
			t.Errorf("GET %s = %d %s", at, status, text)
		}
	}
}

func TestScopesDoNotWiden(t *testing.T) {
	t.Parallel()
	f := newOAuthFixture(t)
	p, in := f.register(callback), f.login(object{"token": f.admin.token})
	_, got := p.redeem(p.consent(in, p.authorize("scope", "catalog:read")).Get("code"), "scope", "actions:propose")

	status, again := p.refresh(got.Refresh, "scope", "actions:propose catalog:read policy:write")

	if who, ok := p.holder(again.Access); status != 200 || !ok || got.Scope != "catalog:read" || again.Scope != "catalog:read" || len(who.Scopes) != 1 {
		t.Errorf("token = %+v, then %d %+v of %+v", got, status, again, who)
	}
}

// TestEveryRequestNeedsAConsent has a program that was consented to ask again: a program on
// the person's machine is whoever listens there.
func TestEveryRequestNeedsAConsent(t *testing.T) {
	t.Parallel()
	f := newOAuthFixture(t)
	p, in := f.register(callback), f.login(object{"token": f.admin.token})
	p.redeem(p.consent(in, p.authorize()).Get("code"))

	for _, cookie := range []string{"", in.cookie} {
		status, header, _ := f.ask("GET", f.url+"/oauth/authorize?"+p.with("prompt", "none").Encode(), http.Header{"Cookie": {cookie}}, "")
		if to := header.Get("Location"); status != 303 || !strings.HasPrefix(to, f.url+"/connect?") {
			t.Errorf("with the cookie %q: %d %s", cookie, status, to)
		}
	}
	body, _ := json.Marshal(object{"request": p.authorize(), "agree": true, "name": "x"})
	for _, header := range []http.Header{
		{"Content-Type": {"application/json"}, "Sec-Fetch-Site": {"same-origin"}},
		{"Content-Type": {"application/json"}, "Cookie": {p.browser(in).cookie}, "Origin": {"https://evil.example"}},
		{"Content-Type": {"application/x-www-form-urlencoded"}, "Cookie": {p.browser(in).cookie}, "Sec-Fetch-Site": {"same-origin"}},
	} {
		if status, _, text := f.ask("POST", f.url+"/auth/consent", header, string(body)); status < 400 {
			t.Errorf("consent with %v = %d %s", header, status, text)
		}
	}
	status, header, _ := f.ask("GET", f.url+"/connect", nil, "")
	if policy := header.Get("Content-Security-Policy"); !strings.Contains(policy, "frame-ancestors 'none'") {
		t.Errorf("the page of the consent = %d, %v", status, header)
	}
}

// TestACodeOfAnotherLoginIsOfNoUse injects the code of a person's login into another login of
// the same program, whose verifier the attacker has.
func TestACodeOfAnotherLoginIsOfNoUse(t *testing.T) {
	t.Parallel()
	f := newOAuthFixture(t)
	p, in := f.register(callback), f.login(object{"token": f.admin.token})
	const other = "another-code-verifier-of-forty-three-characters"
	own := p.consent(in, p.authorize("code_challenge", challengeOf(other))).Get("code")
	stolen := p.consent(in, p.authorize()).Get("code")

	if status, got := p.redeem(stolen, "code_verifier", other); status != 400 || got.Error != "invalid_grant" {
		t.Errorf("the code of another login = %d %+v", status, got)
	}
	if status, got := p.redeem(own); status != 400 || got.Error != "invalid_grant" {
		t.Errorf("the verifier of another login = %d %+v", status, got)
	}
	if status, _ := p.redeem(stolen); status != 200 {
		t.Errorf("the code with its own verifier = %d", status)
	}
}
