package oauth_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source/oauth"
)

// world is a source and its authorization server, at one address. pages are the
// answers by path; {} in them stands for the address.
type world struct {
	*httptest.Server
	mu        sync.Mutex
	pages     map[string]string
	challenge string
	asked     []string
	forms     []url.Values
}

const (
	serverMetadata = `{"issuer":"{}","authorization_endpoint":"{}/a","token_endpoint":"{}/t","registration_endpoint":"{}/r","device_authorization_endpoint":"{}/d",
		"code_challenge_methods_supported":["S256"],"scopes_supported":["read","offline_access"],"authorization_response_iss_parameter_supported":true}`
	resourceMetadata = `{"resource":"{}/mcp","authorization_servers":["{}"],"scopes_supported":["read"]}`
)

func newWorld(t *testing.T, pages map[string]string) *world {
	t.Helper()
	w := &world{pages: pages}
	w.Server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if r.Method == http.MethodGet {
			w.asked = append(w.asked, r.URL.Path)
		}
		if r.Method == http.MethodPost && r.URL.Path != "/mcp" && r.ParseForm() == nil {
			w.forms = append(w.forms, r.Form)
		}
		page, ok := w.pages[r.URL.Path]
		switch status, rest, found := strings.Cut(page, " "); {
		case r.URL.Path == "/mcp":
			out.Header().Set("WWW-Authenticate", strings.ReplaceAll(w.challenge, "{}", w.URL))
			out.WriteHeader(http.StatusUnauthorized)
		case !ok:
			out.WriteHeader(http.StatusNotFound)
		case found && len(status) == 3:
			out.Header().Set("Content-Type", "application/json")
			out.Header().Set("Location", "/elsewhere")
			var code int
			fmt.Sscan(status, &code)
			out.WriteHeader(code)
			fmt.Fprint(out, rest)
		default:
			out.Header().Set("Content-Type", "application/json")
			fmt.Fprint(out, strings.ReplaceAll(page, "{}", w.URL))
		}
	}))
	t.Cleanup(w.Close)
	return w
}

const (
	pageResource = "/.well-known/oauth-protected-resource"
	pageServer   = "/.well-known/oauth-authorization-server"
	pageOpenID   = "/.well-known/openid-configuration"
)

func TestDiscover(t *testing.T) {
	t.Parallel()
	elsewhere := strings.ReplaceAll(serverMetadata, `"issuer":"{}"`, `"issuer":"{}/x/y"`)
	for name, test := range map[string]struct {
		challenge string
		pages     map[string]string
		scopes    []string
		// want is the scope, or with "!" a part of the error.
		want  string
		asked []string
	}{
		"metadata that the challenge names": {
			`Bearer resource_metadata="{}/meta", scope="write read"`, map[string]string{"/meta": resourceMetadata, pageServer: serverMetadata}, nil,
			"write read offline_access", []string{"/meta", pageServer},
		},
		"metadata at the path": {
			"", map[string]string{pageResource + "/mcp": resourceMetadata, pageServer: serverMetadata}, nil,
			"read offline_access", []string{pageResource + "/mcp", pageServer},
		},
		"metadata at the root": {
			`Basic realm="x"`, map[string]string{pageResource: strings.ReplaceAll(resourceMetadata, "/mcp", ""), pageOpenID: serverMetadata}, []string{"only"},
			"only offline_access", []string{pageResource + "/mcp", pageResource, pageServer, pageOpenID},
		},
		"an issuer with a path": {
			"", map[string]string{pageResource + "/mcp": strings.ReplaceAll(resourceMetadata, `["{}"]`, `["{}/x/y"]`), "/x/y" + pageOpenID: elsewhere}, nil,
			"read offline_access", []string{pageResource + "/mcp", pageServer + "/x/y", pageOpenID + "/x/y", "/x/y" + pageOpenID},
		},
		"no metadata": {"", nil, nil, "", []string{pageResource + "/mcp", pageResource, pageServer, pageOpenID}},
		"another resource": {
			"", map[string]string{pageResource + "/mcp": strings.ReplaceAll(resourceMetadata, "{}/mcp", "https://evil.example/mcp")}, nil, "!another resource", nil,
		},
		"a resource with the same beginning": {
			"", map[string]string{pageResource + "/mcp": strings.ReplaceAll(resourceMetadata, "{}/mcp", "{}/mc")}, nil, "!another resource", nil,
		},
		"another issuer": {
			"", map[string]string{pageResource + "/mcp": resourceMetadata, pageServer: elsewhere}, nil, "!another issuer", nil,
		},
		"no PKCE": {
			"", map[string]string{pageServer: strings.ReplaceAll(serverMetadata, "S256", "plain")}, nil, "!PKCE", nil,
		},
		"an endpoint without https": {
			"", map[string]string{pageServer: strings.ReplaceAll(serverMetadata, "{}/t", "http://evil.example/t")}, nil, "!without https", nil,
		},
		"a page of a script": {
			"", map[string]string{pageServer: strings.ReplaceAll(serverMetadata, "{}/a", "javascript:alert(1)")}, nil, "!without https", nil,
		},
		"metadata that redirects": {
			"", map[string]string{pageResource + "/mcp": "302 {}", pageResource: "302 {}", pageServer: "302 {}", "/elsewhere": serverMetadata}, nil, "", []string{pageResource + "/mcp", pageResource, pageServer, pageOpenID},
		},
		"metadata that never ends": {
			"", map[string]string{pageServer: `{"issuer":"` + strings.Repeat("x", 1<<20) + `"}`}, nil, "!invalid document", nil,
		},
		"a server that fails": {"", map[string]string{pageServer: "503 {}"}, nil, "!cannot be reached", nil},
		"metadata in an inner network": {
			`Bearer resource_metadata="https://10.0.0.1/meta"`, nil, nil, "!not public", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, test.pages)
			w.challenge = test.challenge

			got, err := oauth.New(safehttp.Loopback()).Discover(t.Context(), w.URL+"/mcp", test.scopes)

			if text, fails := strings.CutPrefix(test.want, "!"); fails {
				if f, ok := errors.AsType[*fault.Error](err); !ok || !strings.Contains(f.Text, text) {
					t.Errorf("Discover() = %+v, %v, want an error with %q", got, err, text)
				}
				return
			}
			if err != nil || got.Scope != test.want || !strings.HasPrefix(got.Resource, w.URL) || !strings.HasPrefix(got.TokenURL, w.URL+"/t") {
				t.Errorf("Discover() = %+v, %v, want the scope %q", got, err, test.want)
			}
			if diff := cmp.Diff(test.asked, w.asked); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// TestInnerAddressesAreRefused dials nothing on this machine unless its network is
// allowed.
func TestInnerAddressesAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{pageServer: serverMetadata})

	_, err := oauth.New([]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}).Discover(t.Context(), w.URL+"/mcp", nil)

	if !errors.Is(err, fault.Conflict) || len(w.asked) != 0 {
		t.Errorf("Discover() = %v after %v", err, w.asked)
	}
	for _, at := range []string{"http://source.example/mcp", "ftp://source.example", "https://user@source.example/mcp", "", "https:///mcp"} {
		if _, err := oauth.New(nil).Discover(t.Context(), at, nil); !errors.Is(err, fault.Conflict) {
			t.Errorf("Discover(%q) = %v", at, err)
		}
	}
}

func TestCheckIssuer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		announced bool
		named     string
		want      bool
	}{
		{true, "https://as.example", true}, {true, "", false}, {true, "https://as.example/", false}, {true, "https://AS.example", false},
		{false, "", true}, {false, "https://as.example", true}, {false, "https://evil.example", false},
	} {
		err := oauth.Server{Issuer: "https://as.example", NamesIssuer: test.announced}.CheckIssuer(test.named)
		if (err == nil) != test.want {
			t.Errorf("announced %t, CheckIssuer(%q) = %v", test.announced, test.named, err)
		}
	}
}

func TestTokensAreChecked(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	for name, test := range map[string]struct {
		page, code string
		down       bool
	}{
		"right":                  {`{"access_token":"a","token_type":"bearer","expires_in":60}`, "", false},
		"no type":                {`{"access_token":"a"}`, "other", false},
		"a header in the token":  {`{"access_token":"a\r\nx: y","token_type":"Bearer"}`, "other", false},
		"not JSON":               {`<html>`, "other", false},
		"refused":                {`400 {"error":"invalid_grant","error_description":"CANARY"}`, "invalid_grant", false},
		"refused in a long text": {`400 {"error":"` + strings.Repeat("x", 100) + `"}`, "other", false},
		"refused with a script":  {`400 {"error":"<script>"}`, "other", false},
		"busy":                   {"429 {}", "", true},
		"failing":                {"500 {}", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, map[string]string{"/t": test.page})
			s := oauth.Server{Issuer: w.URL, TokenURL: w.URL + "/t", Resource: w.URL + "/mcp"}

			got, err := oauth.New(safehttp.Loopback()).Refresh(t.Context(), s, oauth.Registration{ID: "c"}, oauth.Tokens{Refresh: "r", Scope: "s"}, now)

			refused, ok := errors.AsType[*oauth.Refused](err)
			switch {
			case test.down:
				if !errors.Is(err, oauth.ErrUnavailable) {
					t.Errorf("Refresh() = %v", err)
				}
			case test.code != "":
				if !ok || refused.Code != test.code || strings.Contains(err.Error(), "CANARY") {
					t.Errorf("Refresh() = %v, want the code %s", err, test.code)
				}
			default:
				want := oauth.Tokens{Access: "a", Refresh: "r", Scope: "s", ExpiresAt: now.Add(time.Minute)}
				if err != nil || got != want {
					t.Errorf("Refresh() = %+v, %v, want %+v", got, err, want)
				}
			}
			if len(w.forms) != 1 || w.forms[0].Get("resource") != w.URL+"/mcp" || w.forms[0].Get("client_id") != "c" {
				t.Errorf("forms = %v", w.forms)
			}
		})
	}
}

func TestAuthorizationURL(t *testing.T) {
	t.Parallel()
	s := oauth.Server{AuthorizeURL: "https://as.example/a?tenant=1", Resource: "https://source.example/mcp", Scope: "read offline_access"}

	at, err := url.Parse(s.AuthorizationURL(oauth.Registration{ID: "c", RedirectURI: "https://me.example/auth/source"}, "s", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"))

	want := url.Values{
		"tenant": {"1"}, "response_type": {"code"}, "client_id": {"c"}, "redirect_uri": {"https://me.example/auth/source"}, "state": {"s"}, "prompt": {"consent"},
		"resource": {"https://source.example/mcp"}, "scope": {"read offline_access"}, "code_challenge_method": {"S256"},
		"code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"},
	}
	if diff := cmp.Diff(want, at.Query()); err != nil || diff != "" {
		t.Errorf("query (-want +got):\n%s", diff)
	}
}

func TestServersOfMailHaveNoResource(t *testing.T) {
	t.Parallel()
	s := oauth.Server{Issuer: "https://as.example", AuthorizeURL: "https://as.example/a", TokenURL: "https://as.example/t", Scope: "mail", Offline: true}

	at, err := url.Parse(s.AuthorizationURL(oauth.Registration{ID: "c"}, "s", "v"))

	if err != nil || at.Query().Has("resource") || at.Query().Get("access_type") != "offline" || at.Query().Get("prompt") != "consent" {
		t.Errorf("AuthorizationURL = %s, %v, want one without resource that asks for a refresh token", at, err)
	}
}

func TestConfiguredServersAreChecked(t *testing.T) {
	t.Parallel()
	good := oauth.Server{Issuer: "https://as.example", AuthorizeURL: "https://as.example/a", TokenURL: "https://as.example/t"}
	for name, change := range map[string]func(*oauth.Server){
		"without an issuer":         func(s *oauth.Server) { s.Issuer = "" },
		"without a token_url":       func(s *oauth.Server) { s.TokenURL = "" },
		"without a page":            func(s *oauth.Server) { s.AuthorizeURL = "" },
		"tokens without https":      func(s *oauth.Server) { s.TokenURL = "http://as.example/t" },
		"a password in the address": func(s *oauth.Server) { s.DeviceURL = "https://a:b@as.example/d" },
	} {
		s := good
		if change(&s); !errors.Is(s.Check(), fault.Invalid) {
			t.Errorf("%s: Check() = %v, want an error", name, s.Check())
		}
	}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
}

func TestIssuerIsFoundByItsMetadata(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"/.well-known/oauth-authorization-server": serverMetadata})

	got, err := oauth.New(safehttp.Loopback()).Issuer(t.Context(), w.URL, []string{"mail"})

	if err != nil || got.TokenURL != w.URL+"/t" || got.DeviceURL != w.URL+"/d" || got.Scope != "mail offline_access" || got.Resource != "" {
		t.Errorf("Issuer = %+v, %v", got, err)
	}
	if _, err := oauth.New(nil).Issuer(t.Context(), "http://as.example", nil); !errors.Is(err, fault.Invalid) {
		t.Errorf("Issuer without https = %v, want an error", err)
	}
}
