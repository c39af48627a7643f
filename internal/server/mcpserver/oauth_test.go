package mcpserver_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/server/mcpserver"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// person is somebody in a browser who consents to every program.
type person struct {
	f      *tenantFixture
	cookie string
}

func (f *tenantFixture) person() person {
	f.t.Helper()
	admin := f.holder(identity.Grant{Name: "ada", Role: identity.RoleAdmin})
	p := person{f: f}
	header := p.post(f.t.Context(), "/auth/session", map[string]any{"token": admin.Token.Text()}, nil)
	p.cookie, _, _ = strings.Cut(header.Get("Set-Cookie"), ";")
	return p
}

func (p person) base() string { return strings.TrimSuffix(p.f.url, "/mcp") }

// post sends a request of a page. It may run in a goroutine, so that it does not end
// the test.
func (p person) post(ctx context.Context, to string, body, into any) http.Header {
	text, err := json.Marshal(body)
	if err != nil {
		p.f.t.Error(err)
		return nil
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.base()+to, bytes.NewReader(text))
	if err != nil {
		p.f.t.Error(err)
		return nil
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Cookie": {p.cookie}, "Sec-Fetch-Site": {"same-origin"}}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		p.f.t.Error(err)
		return nil
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		p.f.t.Errorf("POST %s = %d", to, answer.StatusCode)
	}
	if into != nil {
		if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
			p.f.t.Error(err)
		}
	}
	return answer.Header
}

// consent opens the address that a program asks for, and returns where the browser
// goes.
func (p person) consent(ctx context.Context, address string) (*url.URL, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	browser := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := browser.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	page, err := answer.Location()
	if err != nil || page.Path != "/connect" {
		return nil, fmt.Errorf("GET %s = %d: %w", address, answer.StatusCode, err)
	}
	var to wire.ConsentLocation
	bound, _, _ := strings.Cut(answer.Header.Get("Set-Cookie"), ";")
	p.cookie += "; " + bound // p is a copy
	p.post(ctx, "/auth/consent", map[string]any{"request": page.Query().Get("request"), "agree": true, "name": "program"}, &to)
	return url.Parse(to.Location)
}

func TestAnAnswer401LeadsToTheLogin(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcpserver.Config{}).tenant("acme")
	base := strings.TrimSuffix(f.url, "/mcp")

	for _, method := range []string{"GET", "POST", "DELETE"} {
		for token, want := range map[string]string{
			"":            `Bearer resource_metadata="` + base + `/.well-known/oauth-protected-resource/mcp", scope="actions:propose actions:read catalog:read"`,
			"cs_agent_no": `Bearer error="invalid_token", resource_metadata="` + base + `/.well-known/oauth-protected-resource/mcp", scope="actions:propose actions:read catalog:read"`,
		} {
			r, err := http.NewRequestWithContext(t.Context(), method, f.url, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Origin", "http://localhost:6274")
			if token != "" {
				r.Header.Set("Authorization", "Bearer "+token)
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			if answer.StatusCode != 401 || answer.Header.Get("WWW-Authenticate") != want {
				t.Errorf("%s with %q = %d, %s", method, token, answer.StatusCode, answer.Header.Get("WWW-Authenticate"))
			}
			if answer.Header.Get("Access-Control-Allow-Origin") != "http://localhost:6274" || answer.Header.Get("Access-Control-Expose-Headers") != "WWW-Authenticate, Mcp-Session-Id" {
				t.Errorf("%s: a page of this machine cannot read the answer: %v", method, answer.Header)
			}
		}
	}
}

func TestTheGoSDKLogsInByTheURLAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcpserver.Config{}).tenant("acme")
	ada := f.person()
	const callback = "http://localhost:9999/callback"
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		RedirectURL: callback, RequestRefreshToken: true,
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "probe", RedirectURIs: []string{callback}, GrantTypes: []string{"authorization_code", "refresh_token"},
		}},
		AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			u, err := ada.consent(ctx, args.URL)
			if err != nil {
				return nil, err
			}
			q := u.Query()
			return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}

	session, err := sdk.NewClient(&sdk.Implementation{Name: "probe", Version: "1"}, nil).Connect(t.Context(),
		&sdk.StreamableClientTransport{Endpoint: f.url, OAuthHandler: handler}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	tools, err := session.ListTools(t.Context(), nil)
	if err != nil || !slices.ContainsFunc(tools.Tools, func(tool *sdk.Tool) bool { return tool.Name == nameRead }) {
		t.Fatalf("tools = %+v, %v", tools, err)
	}
	if result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: nameRead}); err != nil || result.IsError {
		t.Errorf("call = %+v, %v", result, err)
	}
}

// TestClientsLogInByTheURLAlone runs both SDKs for TypeScript: they register, a person
// consents, they list and call, renew an expired secret, and are refused when the login is
// ended.
func TestClientsLogInByTheURLAlone(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"v1", "v2"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mcpserver.Config{}).tenant("acme")
			ada := f.person()
			command := script(t, "login.mjs")
			// The script asks for a browser with "open URL", and for the secret to expire or
			// the login to end with a word; it is answered with a line.
			probe := exec.CommandContext(t.Context(), command[0], append(command[1:], kind, f.url, nameRead)...)
			in, err := probe.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := probe.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			var failed bytes.Buffer
			probe.Stderr = &failed
			if err := probe.Start(); err != nil {
				t.Fatal(err)
			}
			var lines []string
			scanner := bufio.NewScanner(out)
			for scanner.Scan() {
				line := scanner.Text()
				switch verb, rest, _ := strings.Cut(line, " "); verb {
				case "open":
					to, err := ada.consent(t.Context(), rest)
					if err != nil {
						t.Error(err)
					}
					fmt.Fprintln(in, to)
				case "expire":
					f.changeLogin("secret_until = now() - interval '1 second'")
					fmt.Fprintln(in, "expired")
				case "end":
					f.changeLogin("revoked_at = now()")
					fmt.Fprintln(in, "ended")
				default:
					lines = append(lines, line)
				}
			}
			if err := probe.Wait(); err != nil {
				t.Fatalf("%v\n%s\n%s", err, strings.Join(lines, "\n"), failed.String())
			}
			if want := []string{"tools true", "called", "called after expiry", "refused after the end"}; !slices.Equal(lines, want) {
				t.Errorf("lines = %q, want %q", lines, want)
			}
		})
	}
}

// authorizeAddress is the address that a program writes for a person to open.
var authorizeAddress = regexp.MustCompile(`http\S+/oauth/authorize\?[^\s\x1b]+`)

// browser reads the output of a program that writes the address to open, consents to it
// and follows the answer to the program. read returns the output when the program has
// closed it.
func (p person) browser() (output io.WriteCloser, read func() string) {
	from, to := io.Pipe()
	var text strings.Builder
	var wg sync.WaitGroup
	wg.Go(func() {
		scanner := bufio.NewScanner(from)
		scanner.Buffer(nil, 1<<20)
		var opened string
		for scanner.Scan() {
			text.WriteString(scanner.Text() + "\n")
			address := authorizeAddress.FindString(scanner.Text())
			if address == "" || address == opened {
				continue
			}
			opened = address
			back, err := p.consent(p.f.t.Context(), address)
			if err != nil {
				p.f.t.Error(err)
				continue
			}
			r, err := http.NewRequestWithContext(p.f.t.Context(), http.MethodGet, back.String(), nil)
			if err != nil {
				p.f.t.Error(err)
				continue
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				p.f.t.Error(err)
				continue
			}
			_ = answer.Body.Close()
		}
	})
	return to, func() string {
		_ = to.Close()
		wg.Wait()
		return text.String()
	}
}

// TestMCPRemoteLogsInByTheURLAlone runs mcp-remote, which clients start that know no
// servers on the network.
func TestMCPRemoteLogsInByTheURLAlone(t *testing.T) {
	t.Parallel()
	command := script(t, "node_modules", "mcp-remote", "dist", "proxy.js")
	f := newFixture(t, mcpserver.Config{}).tenant("acme")
	output, read := f.person().browser()
	dir := t.TempDir()
	proxy := exec.CommandContext(t.Context(), command[0], command[1], f.url)
	// Its own attempt to open a browser finds no program.
	proxy.Env = []string{"PATH=" + dir, "HOME=" + dir, "MCP_REMOTE_CONFIG_DIR=" + dir}
	proxy.Stderr = output

	session, err := sdk.NewClient(&sdk.Implementation{Name: "probe", Version: "1"}, nil).Connect(t.Context(), &sdk.CommandTransport{Command: proxy}, nil)
	if err != nil {
		_ = proxy.Process.Kill()
		t.Fatalf("%v\n%s", err, read())
	}
	tools, err := session.ListTools(t.Context(), nil)
	if err != nil || !slices.ContainsFunc(tools.Tools, func(tool *sdk.Tool) bool { return tool.Name == nameRead }) {
		t.Errorf("tools = %+v, %v", tools, err)
	}
	if result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: nameRead}); err != nil || result.IsError {
		t.Errorf("call = %+v, %v", result, err)
	}
	if err := session.Close(); err != nil {
		t.Logf("mcp-remote ended with %v", err)
	}
	if text := read(); t.Failed() {
		t.Log(text)
	}
}

// register registers a program and returns its client id.
func (p person) register(redirect string) string {
	p.f.t.Helper()
	answer, err := http.Post(p.base()+"/oauth/register", "application/json", strings.NewReader(`{"redirect_uris":["`+redirect+`"]}`))
	if err != nil {
		p.f.t.Fatal(err)
	}
	defer answer.Body.Close()
	var made struct {
		ID string `json:"client_id"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&made); err != nil || made.ID == "" {
		p.f.t.Fatalf("register = %d, %v", answer.StatusCode, err)
	}
	return made.ID
}

// TestConformanceOfTheAuthorizationServer runs the scenarios of the conformance suite of
// MCP for authorization servers: the metadata, and a grant without scope and resource.
func TestConformanceOfTheAuthorizationServer(t *testing.T) {
	t.Parallel()
	command := script(t, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
	ada := newFixture(t, mcpserver.Config{}).tenant("acme").person()
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, number, err := net.SplitHostPort(port.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	output, read := ada.browser()
	suite := exec.CommandContext(t.Context(), command[0], "--import", script(t, "node20.mjs")[1], command[1], "authorization",
		"--url", ada.base(), "--client-id", ada.register("http://127.0.0.1/callback"), "--port", number)
	suite.Stdout, suite.Stderr = output, output
	_ = port.Close() // for the suite, which receives the code there

	err = suite.Run()

	text := read()
	if err != nil || !strings.Contains(text, "authorization-code-grant: 1 passed") || !strings.Contains(text, "Total: 3 passed, 0 failed") {
		t.Errorf("%v\n%s", err, text)
	}
}

// login has a program log in and returns its access token.
func (p person) login() string {
	p.f.t.Helper()
	const redirect, verifier = "http://localhost/callback", "a-code-verifier-of-at-least-forty-three-characters"
	id, sum := p.register(redirect), sha256.Sum256([]byte(verifier))
	back, err := p.consent(p.f.t.Context(), p.base()+"/oauth/authorize?"+url.Values{
		"client_id": {id}, "redirect_uri": {redirect}, "response_type": {"code"}, "code_challenge_method": {"S256"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])},
	}.Encode())
	if err != nil {
		p.f.t.Fatal(err)
	}
	answer, err := http.PostForm(p.base()+"/oauth/token", url.Values{
		"grant_type": {"authorization_code"}, "client_id": {id}, "redirect_uri": {redirect}, "code_verifier": {verifier}, "code": {back.Query().Get("code")},
	})
	if err != nil {
		p.f.t.Fatal(err)
	}
	defer answer.Body.Close()
	var made struct {
		Access string `json:"access_token"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&made); err != nil || made.Access == "" {
		p.f.t.Fatalf("token = %d, %v", answer.StatusCode, err)
	}
	return made.Access
}

// TestStreamsEndWithTheLogin opens a stream with a login whose secret then expires, or
// which is revoked. A new request is refused, and the session is of no use to another login.
func TestStreamsEndWithTheLogin(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{"the secret expires": "secret_until = now() - interval '1 second'", "the login is revoked": "revoked_at = now()"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mcpserver.Config{}).tenant("acme")
			ada := f.person()
			access := ada.login()
			id := f.session(access)
			stream := f.open(t.Context(), "GET", access, "", "Mcp-Session-Id", id)
			ended := make(chan struct{})
			go func() { // ends with the stream
				defer close(ended)
				_, _ = io.Copy(io.Discard, stream.Body)
				_ = stream.Body.Close()
			}()
			f.mcp.RecheckTokens(t.Context())
			if a := f.send("POST", access, listTools, "Mcp-Session-Id", id); a.status != http.StatusOK {
				t.Fatalf("before = %d %s", a.status, a.body)
			}
			select {
			case <-ended:
				t.Fatal("the stream of a valid login has ended")
			default:
			}

			f.changeLogin(change)
			f.mcp.RecheckTokens(t.Context())

			select {
			case <-ended:
			case <-time.After(waitLimit):
				t.Error("the stream goes on")
			}
			if a := f.send("POST", access, listTools, "Mcp-Session-Id", id); a.status != http.StatusUnauthorized || !strings.Contains(a.header.Get("WWW-Authenticate"), `error="invalid_token"`) {
				t.Errorf("afterwards = %d %s", a.status, a.body)
			}
			if a := f.send("POST", ada.login(), listTools, "Mcp-Session-Id", id); a.status != http.StatusNotFound {
				t.Errorf("the session with another login = %d %s", a.status, a.body)
			}
		})
	}
}

// changeLogin changes the token of the only login of a program, also where it is
// remembered.
func (f *tenantFixture) changeLogin(set string) {
	f.t.Helper()
	var id uuid.UUID
	if err := f.db.QueryRow(f.t.Context(), "UPDATE api_tokens SET "+set+" WHERE secret_until IS NOT NULL RETURNING token_id").Scan(&id); err != nil {
		f.t.Fatal(err)
	}
	f.mcp.Auth.Forget(identity.TokenID(id))
}
