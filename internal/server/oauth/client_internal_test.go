package oauth

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// unused has no logins.
type unused struct{ Tokens }

func (unused) ProgramIsUsed(context.Context, string) (bool, error) { return false, nil }

func newTestServer(t *testing.T, tokens Tokens) *Server {
	t.Helper()
	cipher, err := connection.NewCipher(base64.StdEncoding.EncodeToString(make([]byte, 32)))
	if err != nil {
		t.Fatal(err)
	}
	return New(tokens, Config{Base: "https://countersign.example", Cipher: cipher, Bind: func(http.ResponseWriter, *http.Request) string { return "browser" }})
}

func TestUnusedRegistrationsExpire(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, unused{})
	id := func(at time.Time) string {
		text, err := s.encrypt(clientPurpose, client{Redirects: []string{"http://localhost/"}, At: at})
		if err != nil {
			t.Fatal(err)
		}
		return clientPrefix + text
	}

	if _, err := s.client(t.Context(), id(time.Now())); err != nil {
		t.Errorf("a new registration: %v", err)
	}
	if _, err := s.client(t.Context(), id(time.Now().Add(-unusedFor-time.Minute))); err == nil {
		t.Error("a registration that nobody used for a day is valid")
	}
	// A request for a consent is no registration, although the key is the same.
	text, err := s.encrypt(pendingPurpose, client{At: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.client(t.Context(), clientPrefix+text); err == nil {
		t.Error("another value of the same key is a registration")
	}
}

// site serves metadata documents. Paths choose what it answers.
type site struct {
	*httptest.Server
	requests atomic.Int64
	down     atomic.Bool
}

func newSite(t *testing.T) *site {
	t.Helper()
	h := &site{}
	h.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.requests.Add(1)
		id := h.URL + r.URL.Path
		w.Header().Set("Cache-Control", "max-age=3600")
		switch {
		case h.down.Load():
			w.WriteHeader(http.StatusNotFound)
		case r.URL.Path == "/html":
			fmt.Fprint(w, "<!doctype html>")
		case r.URL.Path == "/large":
			fmt.Fprintf(w, `{"client_id":%q,"redirect_uris":["http://localhost/"],"x":%q}`, id, strings.Repeat("x", maxDocument))
		case r.URL.Path == "/endless":
			for r.Context().Err() == nil {
				if _, err := fmt.Fprint(w, strings.Repeat(" ", 1<<16)); err != nil {
					return
				}
			}
		case r.URL.Path == "/other":
			fmt.Fprintf(w, `{"client_id":%q,"redirect_uris":["http://localhost/"]}`, id+"s")
		case r.URL.Path == "/secret":
			fmt.Fprintf(w, `{"client_id":%q,"redirect_uris":["http://localhost/"],"token_endpoint_auth_method":"private_key_jwt"}`, id)
		case r.URL.Path == "/both":
			fmt.Fprintf(w, `{"client_id":%q,"redirect_uris":["http://localhost/"],"token_endpoint_auth_method":"private_key_jwt","token_endpoint_auth_methods_supported":["private_key_jwt","none"]}`, id)
		case r.URL.Path == "/away":
			http.Redirect(w, r, h.URL+"/good", http.StatusFound)
		default:
			fmt.Fprintf(w, `{"client_id":%q,"client_name":"Good","redirect_uris":["http://localhost/callback"],"extra":{"a":[1]}}`, id)
		}
	}))
	t.Cleanup(h.Close)
	return h
}

func TestMetadataDocuments(t *testing.T) {
	t.Parallel()
	h, s := newSite(t), newTestServer(t, unused{})
	s.documents = newDocuments(safehttp.NewClient(h.Client().Transport, time.Second))

	for _, path := range []string{"/good", "/both"} {
		c, err := s.client(t.Context(), h.URL+path)
		if err != nil || !c.redirects(c.Redirects[0]) || c.host() != strings.TrimPrefix(h.URL, "https://") {
			t.Errorf("%s = %+v, %v", path, c, err)
		}
	}
	for _, path := range []string{"/html", "/large", "/endless", "/other", "/secret", "/away", "/good#x", "/"} {
		if c, err := s.client(t.Context(), h.URL+path); !errors.As(err, new(refusal)) {
			t.Errorf("%s = %+v, %v, want a refusal", path, c, err)
		}
	}
	for _, id := range []string{"http://app.example/client", "https://user@app.example/client", "ftp://app.example/x", "https://"} {
		if _, err := s.client(t.Context(), id); err == nil {
			t.Errorf("%s is a program", id)
		}
	}
}

// issued keeps the redemption of a code.
type issued struct {
	unused
	by identity.Redemption
}

func (i *issued) RedeemProgramCode(_ context.Context, r identity.Redemption) (identity.ProgramTokens, error) {
	i.by = r
	return identity.ProgramTokens{ExpiresIn: time.Hour}, nil
}

// TestTheRequestsOfClaudeCodeGetAToken plays back the requests of Claude Code: its client id
// is the address of a document, and its redirect address has another port each time.
func TestTheRequestsOfClaudeCodeGetAToken(t *testing.T) {
	t.Parallel()
	tokens := &issued{}
	s := newTestServer(t, tokens)
	var id string
	h := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"client_id":%q,"client_name":"Claude Code","client_uri":"https://claude.ai","redirect_uris":["http://localhost/callback","http://127.0.0.1/callback"],
			"grant_types":["authorization_code","refresh_token"],"response_types":["code"],"token_endpoint_auth_method":"none"}`, id)
	}))
	defer h.Close()
	id = h.URL + "/oauth/claude-code-client-metadata"
	s.documents = newDocuments(safehttp.NewClient(h.Client().Transport, time.Second))
	ask := func(method, to, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, to, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w
	}

	for _, redirect := range []string{"http://localhost:54321/callback", "http://localhost:54322/callback"} {
		for _, at := range []string{metadataPath + resourcePath, serverPath} {
			if w := ask("GET", at, ""); w.Code != http.StatusOK || at == serverPath && !strings.Contains(w.Body.String(), `"client_id_metadata_document_supported":true`) {
				t.Fatalf("GET %s = %d %s", at, w.Code, w.Body)
			}
		}
		w := ask("GET", "/oauth/authorize?"+url.Values{
			"client_id": {id}, "redirect_uri": {redirect}, "response_type": {"code"}, "code_challenge": {strings.Repeat("a", 43)}, "code_challenge_method": {"S256"},
			"state": {"s"}, "resource": {s.Resource()}, "scope": {"actions:propose actions:read catalog:read offline_access"},
		}.Encode(), "")
		to, err := w.Result().Location()
		if err != nil {
			t.Fatalf("authorize = %d %s", w.Code, w.Body)
		}
		p, ok := s.Pending(to.Query().Get("request"), time.Now())
		if host, local := p.RedirectHost(); !ok || p.Program != "Claude Code" || p.Host != strings.TrimPrefix(h.URL, "https://") || host != "localhost" || !local {
			t.Errorf("request = %+v", p)
		}
		w = ask("POST", "/oauth/token", url.Values{
			"grant_type": {"authorization_code"}, "client_id": {id}, "redirect_uri": {redirect}, "code": {"c"}, "code_verifier": {"v"}, "resource": {s.Resource()},
		}.Encode())
		if want := (identity.Redemption{Code: "c", ClientID: id, RedirectURI: redirect, Resource: s.Resource(), Verifier: "v"}); w.Code != http.StatusOK || tokens.by != want {
			t.Errorf("token = %d %s by %+v", w.Code, w.Body, tokens.by)
		}
	}
	if w := ask("GET", "/oauth/authorize?"+url.Values{"client_id": {id}, "redirect_uri": {"http://localhost:1/other"}}.Encode(), ""); w.Code != http.StatusBadRequest {
		t.Errorf("another path = %d", w.Code)
	}
}

// TestDocumentsAreKept fetches a document once, and keeps the last one that was right
// while its server fails, for a day.
func TestDocumentsAreKept(t *testing.T) {
	t.Parallel()
	h := newSite(t)
	d, now := newDocuments(safehttp.NewClient(h.Client().Transport, time.Second)), time.Now()

	for range 3 {
		if _, err := d.get(t.Context(), h.URL+"/good", now); err != nil {
			t.Fatal(err)
		}
	}
	if n := h.requests.Load(); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
	h.down.Store(true)
	if _, err := d.get(t.Context(), h.URL+"/good", now.Add(2*time.Hour)); err != nil {
		t.Errorf("while the server fails: %v", err)
	}
	if _, err := d.get(t.Context(), h.URL+"/good", now.Add(25*time.Hour)); err == nil {
		t.Error("a document counts that nobody can fetch for a day")
	}
}

// TestDocumentsAreOutside fetches nothing from this machine or its network.
func TestDocumentsAreOutside(t *testing.T) {
	t.Parallel()
	h := newSite(t)
	outside := newTestServer(t, unused{})
	inside := safehttp.Guard{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}.Transport()
	inside.TLSClientConfig = h.Client().Transport.(*http.Transport).TLSClientConfig

	if _, err := outside.client(t.Context(), h.URL+"/good"); err == nil || h.requests.Load() != 0 {
		t.Errorf("from this machine: %v after %d requests", err, h.requests.Load())
	}
	if _, _, err := newDocuments(safehttp.NewClient(inside, time.Second)).fetch(t.Context(), h.URL+"/good"); err != nil {
		t.Errorf("where this machine is allowed: %v", err)
	}
}

func TestRedirectAddresses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"https://app.example/cb": true, "http://localhost:1/": true, "http://127.0.0.1/": true, "http://[::1]:9/x": true, "cursor://anysphere.cursor-mcp/oauth/callback": true,
		"com.example.app:/oauth": true, "http://app.example/": false, "http://127.0.0.1.evil.example/": false, "javascript:alert(1)": false, "data:text/html,x": false,
		"https:///x": false, "https://a@b.example/": false, "https://b.example/#x": false, "//evil.example": false, "/x": false, "": false, "https://b.example/a b": false,
		"https://b.example\\@evil.example/": false, "file:///etc/passwd": false, "https://*.example/": false,
	} {
		if got := mayRedirect(text); got != want {
			t.Errorf("mayRedirect(%q) = %t, want %t", text, got, want)
		}
	}
	c := client{Redirects: []string{"http://localhost/callback", "http://127.0.0.1:7777/x?y=1", "https://app.example:8443/cb"}}
	for text, want := range map[string]bool{
		"http://localhost:1/callback": true, "http://localhost/callback": true, "http://127.0.0.1:1/x?y=1": true, "https://app.example:8443/cb": true,
		"http://localhost:1/callback/": false, "http://127.0.0.1:1/callback": false, "http://127.0.0.1:1/x": false, "https://app.example/cb": false, "https://localhost/callback": false,
	} {
		if got := c.redirects(text); got != want {
			t.Errorf("redirects(%q) = %t, want %t", text, got, want)
		}
	}
}

// FuzzDecrypt decrypts texts from outside: only what the server encrypted is a registration.
func FuzzDecrypt(f *testing.F) {
	cipher, err := connection.NewCipher(base64.StdEncoding.EncodeToString(make([]byte, 32)))
	if err != nil {
		f.Fatal(err)
	}
	s := New(unused{}, Config{Base: "https://countersign.example", Cipher: cipher})
	made, err := s.encrypt(clientPurpose, client{Name: "a", Redirects: []string{"http://localhost/"}, At: time.Unix(1, 0)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(made)
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		var c client
		if s.decrypt(clientPurpose, text, &c) && c.Name != "a" {
			t.Errorf("decrypt(%q) = %+v", text, c)
		}
	})
}

func TestScopesAreNarrowed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"": 3, "actions:read": 1, "offline_access catalog:read policy:write": 1, "openid": 3} {
		if got := granted(text); len(got) != want {
			t.Errorf("granted(%q) = %v", text, got)
		}
		for _, scope := range granted(text) {
			if scope == identity.PolicyWrite {
				t.Errorf("granted(%q) has %s", text, scope)
			}
		}
	}
}
