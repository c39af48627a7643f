package login_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/connection/login"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/mcp"
	"github.com/countersign-dev/countersign/internal/source/oauth"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// server is an authorization server that rotates strictly: a refresh token works once.
type server struct {
	*httptest.Server
	mu sync.Mutex
	// valid is the current refresh token, lifetime that of access tokens in seconds.
	valid    string
	lifetime int
	issued   int
	// renewals and registrations count requests.
	renewals, registrations int
	// fails is an answer to requests for tokens instead: a status and a code.
	fails int
	code  string
	// before runs once, before the next answer to a request for tokens.
	before func()
	// revoked are the tokens that were revoked.
	revoked []string
	// approved is set when a person entered the code of the device.
	approved bool
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{lifetime: 3600}
	s.Server = httptest.NewServer(http.HandlerFunc(s.answer))
	t.Cleanup(s.Close)
	return s
}

func (s *server) answer(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	write := func(status int, v any) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	switch r.URL.Path {
	case "/.well-known/oauth-authorization-server":
		write(200, map[string]any{
			"issuer": s.URL, "authorization_endpoint": s.URL + "/a", "token_endpoint": s.URL + "/t", "registration_endpoint": s.URL + "/r",
			"revocation_endpoint": s.URL + "/v", "device_authorization_endpoint": s.URL + "/d", "code_challenge_methods_supported": []string{"S256"},
		})
	case "/r":
		s.mu.Lock()
		defer s.mu.Unlock()
		s.registrations++
		write(201, map[string]any{"client_id": fmt.Sprintf("client-%d", s.registrations), "client_secret": "CANARY-secret", "token_endpoint_auth_method": "client_secret_post"})
	case "/d":
		write(200, map[string]any{"device_code": "CANARY-device", "user_code": "WDJB-MJHT", "verification_uri": s.URL + "/enter", "expires_in": 600, "interval": 1})
	case "/v":
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.fails != 0 {
			write(s.fails, map[string]any{"error": s.code})
			return
		}
		s.revoked = append(s.revoked, r.FormValue("token_type_hint")+" "+r.FormValue("token")+" of "+r.FormValue("client_id"))
	case "/t":
		s.token(w, r, write)
	default:
		write(404, nil)
	}
}

func (s *server) token(_ http.ResponseWriter, r *http.Request, write func(int, any)) {
	s.mu.Lock()
	before := s.before
	s.before = nil
	s.mu.Unlock()
	if before != nil {
		before()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	refuse := func(code string) { write(400, map[string]any{"error": code}) }
	switch grant := r.FormValue("grant_type"); {
	case s.fails != 0:
		write(s.fails, map[string]any{"error": s.code})
		if grant == "refresh_token" {
			s.renewals++
		}
		return
	case grant == "refresh_token":
		s.renewals++
		if r.FormValue("refresh_token") != s.valid {
			refuse("invalid_grant")
			return
		}
	case grant == "authorization_code" && r.FormValue("code_verifier") == "":
		refuse("invalid_grant")
		return
	case grant == "urn:ietf:params:oauth:grant-type:device_code" && !s.approved:
		refuse("authorization_pending")
		return
	}
	s.issued++
	s.valid = fmt.Sprintf("CANARY-refresh-%d", s.issued)
	write(200, map[string]any{"access_token": fmt.Sprintf("CANARY-access-%d", s.issued), "token_type": "Bearer", "refresh_token": s.valid, "expires_in": s.lifetime})
}

func (s *server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

type logs struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// fixture is a tenant with a source that the server protects.
type fixture struct {
	t      *testing.T
	db     *pgxpool.Pool
	tenant envelope.TenantID
	server *server
	src    catalog.Source
	by     uuid.UUID
	logs   *logs
}

const options = "https://countersign.example"

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, db: dbtest.DB(t), server: newServer(t), by: uuid.New(), logs: &logs{}}
	config, err := json.Marshal(map[string]string{"transport": "http", "url": f.server.URL + "/mcp"})
	if err != nil {
		t.Fatal(err)
	}
	f.src = catalog.Source{ID: "crm", Kind: catalog.KindMCP, Config: config, Enabled: true}
	err = postgres.InTx(t.Context(), f.db, postgres.Admin(), func(tx pgx.Tx) (err error) {
		f.tenant, err = identity.NewTenant(t.Context(), tx, "acme")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	f.inTx(func(ctx context.Context, tx pgx.Tx) error { return catalog.PutSource(ctx, tx, f.tenant, f.src) })
	t.Cleanup(func() {
		if strings.Contains(f.logs.text.String(), "CANARY") {
			t.Error("the log has a secret")
		}
	})
	return f
}

func (f *fixture) inTx(fn func(ctx context.Context, tx pgx.Tx) error) {
	f.t.Helper()
	if err := postgres.InTx(f.t.Context(), f.db, postgres.API(f.tenant), func(tx pgx.Tx) error { return fn(f.t.Context(), tx) }); err != nil {
		f.t.Fatal(err)
	}
}

// process returns the Logins of another process.
func (f *fixture) process() *login.Logins {
	cipher, err := connection.NewCipher(base64.StdEncoding.EncodeToString(make([]byte, 32)))
	if err != nil {
		f.t.Fatal(err)
	}
	return login.New(f.db, cipher, safehttp.Loopback(), slog.New(slog.NewTextHandler(f.logs, nil)))
}

func (f *fixture) begin(o login.Options) login.Begun {
	f.t.Helper()
	o.Redirect = options + "/auth/source"
	begun, err := f.process().Begin(f.t.Context(), f.tenant, f.by, f.src, o, time.Now())
	if err != nil {
		f.t.Fatal(err)
	}
	return begun
}

// finish finishes a login in another process than the one that began it.
func (f *fixture) finish(answer url.Values) error {
	l := f.process()
	made, _, err := l.Finish(f.t.Context(), f.tenant, f.by, f.src, answer, time.Now())
	if err != nil {
		return err
	}
	return postgres.InTx(f.t.Context(), f.db, postgres.API(f.tenant), func(tx pgx.Tx) error {
		return l.Put(f.t.Context(), tx, f.tenant, made, "ada", true)
	})
}

func (f *fixture) logIn() {
	f.t.Helper()
	if err := f.finish(url.Values{"state": {f.begin(login.Options{}).State}, "code": {"c"}}); err != nil {
		f.t.Fatal(err)
	}
}

// tokens returns the tokens of a worker of its own.
func (f *fixture) tokens() mcp.Tokens { return f.process().Of(f.tenant, f.src.ID, f.server.URL+"/mcp") }

func (f *fixture) exec(sql string) {
	f.t.Helper()
	if _, err := f.db.Exec(f.t.Context(), sql); err != nil {
		f.t.Fatal(err)
	}
}

// lost returns the reason of a loss; empty for a valid login.
func (f *fixture) lost() (reason string) {
	f.t.Helper()
	if err := f.db.QueryRow(f.t.Context(), "SELECT coalesce(lost_reason, '') FROM source_logins").Scan(&reason); err != nil {
		f.t.Fatal(err)
	}
	return reason
}

func (f *fixture) count(query string) (n int) {
	f.t.Helper()
	if err := f.db.QueryRow(f.t.Context(), "SELECT count(*) FROM "+query).Scan(&n); err != nil {
		f.t.Fatal(err)
	}
	return n
}

// old makes the token one that was not issued just now.
func (f *fixture) old() {
	f.t.Helper()
	f.exec("UPDATE source_logins SET renewed_at = now() - interval '1 hour'")
}

func TestParallelRenewalsAreOneRequest(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.logIn()
	f.old()
	workers := []mcp.Tokens{f.tokens(), f.tokens(), f.tokens()}
	for _, w := range workers {
		if got, err := w.Token(t.Context(), ""); got != "CANARY-access-1" || err != nil {
			t.Fatalf("Token() = %q, %v", got, err)
		}
	}

	var calls sync.WaitGroup
	for i := range 30 {
		calls.Go(func() {
			if got, err := workers[i%3].Token(t.Context(), "CANARY-access-1"); got != "CANARY-access-2" || err != nil {
				t.Errorf("Token(rejected) = %q, %v", got, err)
			}
		})
	}
	calls.Wait()

	if f.server.renewals != 1 {
		t.Errorf("%d renewals, want 1", f.server.renewals)
	}
	// A token that was just issued is not renewed for a source that rejects it too.
	if got, err := workers[0].Token(t.Context(), "CANARY-access-2"); !errors.Is(err, source.ErrLoginLost) || f.server.renewals != 1 {
		t.Errorf("Token(rejected twice) = %q, %v after %d renewals", got, err, f.server.renewals)
	}
	if !strings.Contains(f.lost(), "just issued") {
		t.Errorf("lost: %q", f.lost())
	}
}

func TestTokensAreRenewedBeforeTheyEnd(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.logIn()
	if err := f.process().RenewDue(t.Context()); err != nil || f.server.renewals != 0 {
		t.Fatalf("RenewDue() = %v, %d renewals of a new token", err, f.server.renewals)
	}
	// A token whose time is over when it arrives is due at once.
	f.server.set(func() { f.server.lifetime = 1 })
	made, _, err := f.process().Finish(t.Context(), f.tenant, f.by, f.src, url.Values{"state": {f.begin(login.Options{}).State}, "code": {"c"}}, time.Now().Add(-time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		return f.process().Put(ctx, tx, f.tenant, made, "ada", true)
	})
	f.server.set(func() { f.server.lifetime = 3600 })

	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			if err := f.process().RenewDue(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	workers.Wait()

	if f.server.renewals != 1 || f.lost() != "" {
		t.Errorf("%d renewals by four workers, lost: %q", f.server.renewals, f.lost())
	}
	if got, err := f.tokens().Token(t.Context(), ""); got != "CANARY-access-3" || err != nil {
		t.Errorf("Token() = %q, %v", got, err)
	}
}

// TestAnInterruptedRenewalLosesTheLogin ends a worker between the answer of the server,
// which rotated, and its commit.
func TestAnInterruptedRenewalLosesTheLogin(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.logIn()
	f.old()
	f.server.set(func() { f.server.valid = "CANARY-refresh-lost" })
	f.exec("UPDATE source_logins SET renewal = gen_random_uuid(), renewing_until = now() - interval '1 second'")

	got, err := f.tokens().Token(t.Context(), "CANARY-access-1")

	if !errors.Is(err, source.ErrLoginLost) || !strings.Contains(f.lost(), "interrupted") {
		t.Errorf("Token() = %q, %v, lost: %q", got, err, f.lost())
	}
	if n := f.count("events WHERE items::text LIKE '%login of source crm lost%'"); n != 1 {
		t.Errorf("%d events, want 1", n)
	}
	for range 3 {
		if _, err := f.tokens().Token(t.Context(), ""); !errors.Is(err, source.ErrLoginLost) {
			t.Errorf("Token() = %v", err)
		}
	}
	if f.server.renewals != 1 {
		t.Errorf("%d renewals of a lost login", f.server.renewals-1)
	}

	f.logIn()
	if got, err := f.tokens().Token(t.Context(), ""); got != "CANARY-access-2" || err != nil || f.lost() != "" {
		t.Errorf("after another login: %q, %v", got, err)
	}
	if f.count("wakes WHERE waits_for = 'login_lost'") != 1 {
		t.Error("nothing wakes the actions that waited")
	}
}

func TestAServerThatIsDownLosesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.logIn()
	f.old()
	for status, code := range map[int]string{503: "", 429: "slow", 403: "<html>"} {
		f.server.set(func() { f.server.fails, f.server.code = status, code })
		if _, err := f.tokens().Token(t.Context(), "CANARY-access-1"); !errors.Is(err, source.ErrLoginUnavailable) || f.lost() != "" {
			t.Errorf("with status %d: %v, lost: %q", status, err, f.lost())
		}
	}
	f.server.set(func() { f.server.fails = 0 })

	if got, err := f.tokens().Token(t.Context(), "CANARY-access-1"); got != "CANARY-access-2" || err != nil {
		t.Errorf("Token() = %q, %v", got, err)
	}
}

// TestALoginDuringARenewalWins stores a login while the server answers a renewal of the
// one before.
func TestALoginDuringARenewalWins(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.logIn()
	f.old()
	f.server.set(func() { f.server.before = f.logIn })

	got, err := f.tokens().Token(t.Context(), "CANARY-access-1")

	if err != nil || got != "CANARY-access-2" || f.lost() != "" {
		t.Errorf("Token() = %q, %v, lost: %q", got, err, f.lost())
	}
}

// TestAClientIsKeptByItsIssuer registers once, when somebody has logged in, and again
// when the server does not know the client any more.
func TestAClientIsKeptByItsIssuer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.begin(login.Options{}) // nobody goes on with it
	f.logIn()
	f.logIn()
	if f.server.registrations != 2 {
		t.Errorf("%d registrations, want one for each login until the first ended", f.server.registrations)
	}
	f.old()
	f.server.set(func() { f.server.fails, f.server.code = 401, "invalid_client" })
	if _, err := f.tokens().Token(t.Context(), "CANARY-access-2"); !errors.Is(err, source.ErrLoginLost) {
		t.Errorf("Token() = %v", err)
	}
	f.server.set(func() { f.server.fails = 0 })
	f.logIn()
	if f.server.registrations != 3 {
		t.Errorf("%d registrations after the server forgot the client, want 3", f.server.registrations)
	}
	if err := f.finish(url.Values{"state": {f.begin(login.Options{ClientID: "mine", ClientSecret: "CANARY-mine"}).State}, "code": {"c"}}); err != nil {
		t.Error(err)
	}
	f.logIn()
	if f.server.registrations != 3 {
		t.Error("a client that a person registered is replaced")
	}
}

func TestAnswersOfLogins(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, test := range map[string]struct {
		answer url.Values
		want   error
	}{
		"another state":        {url.Values{"state": {"x"}, "code": {"c"}}, fault.NotFound},
		"an error":             {url.Values{"error": {"access_denied"}}, fault.Denied},
		"no code":              {url.Values{}, fault.Denied},
		"another issuer":       {url.Values{"code": {"c"}, "iss": {"https://evil.example"}}, fault.Denied},
		"a code twice":         {url.Values{"code": {"c", "d"}}, fault.Invalid},
		"the issuer":           {url.Values{"code": {"c"}, "iss": {f.server.URL}}, nil},
		"what a browser shows": {url.Values{"code": {"c"}, "session_state": {"x"}}, nil},
	} {
		answer := url.Values{"state": {f.begin(login.Options{}).State}}
		for k, v := range test.answer {
			answer[k] = v
		}
		pasted, err := login.ParseAnswer(" " + login.Answer(answer) + "\n")
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := f.finish(pasted); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
		if err := f.finish(pasted); !errors.Is(err, fault.NotFound) {
			t.Errorf("%s, again: %v", name, err)
		}
	}
	state := f.begin(login.Options{}).State
	f.exec("UPDATE source_login_states SET expires_at = now()")
	if err := f.finish(url.Values{"state": {state}, "code": {"c"}}); !errors.Is(err, fault.NotFound) {
		t.Errorf("after ten minutes: %v", err)
	}
	for _, text := range []string{"", "x", "%%%", base64.RawURLEncoding.EncodeToString([]byte("code=c")), "http://%zz"} {
		if _, err := login.ParseAnswer(text); !errors.Is(err, fault.Invalid) {
			t.Errorf("ParseAnswer(%q) = %v", text, err)
		}
	}
	if got, err := login.ParseAnswer("http://127.0.0.1:1/auth/source?state=s&code=c"); err != nil || got.Get("code") != "c" {
		t.Errorf("ParseAnswer(address) = %v, %v", got, err)
	}
}

// TestTokensGoToTheirSourceAlone changes the address of the source.
func TestTokensGoToTheirSourceAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	state := f.begin(login.Options{}).State
	f.logIn()

	if got, err := f.process().Of(f.tenant, f.src.ID, "https://evil.example/mcp").Token(t.Context(), ""); !errors.Is(err, source.ErrLoginLost) {
		t.Errorf("Token() for another address = %q, %v", got, err)
	}
	f.src.Config = json.RawMessage(`{"transport":"http","url":"https://evil.example/mcp"}`)
	if err := f.finish(url.Values{"state": {state}, "code": {"c"}}); !errors.Is(err, fault.Conflict) {
		t.Errorf("finish after the address changed: %v", err)
	}
}

// TestALoginThatLacksScopes records the scopes that a source demands, once for all
// workers, and asks for all of them at the next login. Scopes that were asked for are
// not asked for again: a source that demands for ever ends.
func TestALoginThatLacksScopes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.finish(url.Values{"state": {f.begin(login.Options{Redirect: "https://me.example/back", Scopes: []string{"read"}}).State}, "code": {"c"}})
	f.reload()
	lacks := func(token, tool string, scopes ...string) string {
		t.Helper()
		switch err := f.tokens().NeedScopes(t.Context(), token, tool, scopes); {
		case err == nil:
			return "refused"
		case errors.Is(err, source.ErrLoginLost):
			return strings.TrimSuffix(strings.TrimPrefix(err.Error(), "the login of the source lacks the scopes "), "; log in again: countersign source login")
		default:
			return err.Error()
		}
	}

	for _, test := range []struct{ token, tool, scopes, want string }{
		{"CANARY-access-1", "send", "read", "refused"},
		{"CANARY-access-1", "send", "read \"quoted\"", "refused"},
		{"CANARY-access-1", "send", strings.Repeat("x", 3000), "refused"},
		{"CANARY-access-0", "send", "send", source.ErrLoginUnavailable.Error()},
		{"CANARY-access-1", "send", "read send", "read send"},
		{"CANARY-access-1", "send", "send", "read send"},
		{"CANARY-access-1", "drop", "admin", "admin read send"},
	} {
		if got := lacks(test.token, test.tool, strings.Fields(test.scopes)...); got != test.want {
			t.Errorf("NeedScopes(%s, %.20s) = %q, want %q", test.tool, test.scopes, got, test.want)
		}
	}

	f.reload()
	if !f.src.WaitsForLogin("send") || !f.src.WaitsForLogin("drop") || f.src.WaitsForLogin("find") {
		t.Errorf("calls of %q wait", f.src.Login.NeededTools)
	}
	if n := f.count("events WHERE kind = 'configured' AND items::text LIKE '%lacks_scopes%'"); n != 2 {
		t.Errorf("%d events, want one for each tool", n)
	}
	next := f.begin(login.Options{Redirect: "https://me.example/back"})
	if at, err := url.Parse(next.URL); err != nil || at.Query().Get("scope") != "read admin send" {
		t.Errorf("the next login asks for %s", next.URL)
	}
	f.finish(url.Values{"state": {next.State}, "code": {"c"}})
	f.reload()
	if len(f.src.Login.NeededScopes) > 0 || f.src.WaitsForLogin("send") {
		t.Errorf("after the login: %+v", f.src.Login)
	}
	if f.count("wakes WHERE waits_for = 'login_lost'") != 1 {
		t.Error("the login wakes nothing")
	}
	if got := lacks("CANARY-access-2", "send", "send"); got != "refused" {
		t.Errorf("a source that demands for ever: %s", got)
	}
	if got := lacks("CANARY-access-2", "", "all"); got != "all" {
		t.Errorf("without a tool: %s", got)
	}
	if f.reload(); !f.src.WaitsForLogin("find") {
		t.Error("a call goes on without a scope that all need")
	}
	f.src.OnLostLogin = catalog.LostLoginFails
	if f.src.WaitsForLogin("find") {
		t.Error("a call that may fail waits")
	}
}

// TestARemovedLoginIsRevoked revokes both tokens at the authorization server. A failure
// of that does not keep the login.
func TestARemovedLoginIsRevoked(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.logIn()

	if done, err := removed(f); !done || err != nil {
		t.Errorf("Revoke() = %t, %v", done, err)
	}
	want := "refresh_token CANARY-refresh-1 of client-1, access_token CANARY-access-1 of client-1"
	if got := strings.Join(f.server.revoked, ", "); got != want {
		t.Errorf("revoked %s, want %s", got, want)
	}
	f.logIn()
	f.server.set(func() { f.server.fails, f.server.code = 503, "temporarily_unavailable" })
	if done, err := removed(f); !done || !errors.Is(err, oauth.ErrUnavailable) {
		t.Errorf("Revoke() = %t, %v of a server that is down", done, err)
	}
}

// removed removes the login, and revokes it.
func removed(f *fixture) (done bool, err error) {
	f.t.Helper()
	var secret []byte
	f.inTx(func(ctx context.Context, tx pgx.Tx) (err error) {
		secret, err = login.Remove(ctx, tx, f.tenant, f.src.ID, true)
		return err
	})
	if f.count("source_logins") != 0 {
		f.t.Error("the login is kept")
	}
	return f.process().Revoke(f.t.Context(), f.tenant, f.src.ID, secret)
}

// reload reads the source.
func (f *fixture) reload() {
	f.t.Helper()
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		all, err := catalog.Sources(ctx, tx, f.tenant)
		if err == nil {
			f.src = all[0]
		}
		return err
	})
}

func TestDevicesLogIn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	begun := f.begin(login.Options{Device: true})
	if begun.UserCode != "WDJB-MJHT" || begun.URL != f.server.URL+"/enter" || begun.Interval != time.Second {
		t.Errorf("begun = %+v", begun)
	}
	answer := url.Values{"state": {begun.State}}
	for range 2 {
		if _, wait, err := f.process().Finish(t.Context(), f.tenant, f.by, f.src, answer, time.Now()); wait != time.Second || err != nil {
			t.Fatalf("Finish() before the person decided = %s, %v", wait, err)
		}
	}
	if _, _, err := f.process().Finish(t.Context(), f.tenant, uuid.New(), f.src, answer, time.Now()); !errors.Is(err, fault.NotFound) {
		t.Errorf("somebody else finishes: %v", err)
	}
	f.server.set(func() { f.server.approved = true })

	if err := f.finish(answer); err != nil {
		t.Fatal(err)
	}
	if err := f.finish(answer); !errors.Is(err, fault.NotFound) {
		t.Errorf("twice: %v", err)
	}
	if got, err := f.tokens().Token(t.Context(), ""); got != "CANARY-access-1" || err != nil {
		t.Errorf("Token() = %q, %v", got, err)
	}
}
