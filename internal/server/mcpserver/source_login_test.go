package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
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

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/connection/login"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/server/mcpserver"
	"github.com/countersign-dev/countersign/internal/server/rest"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// loginFixture is a tenant whose sources log in: two replicas of the API, and as many
// workers as a test asks for.
type loginFixture struct {
	t        *testing.T
	db       *pgxpool.Pool
	tenant   envelope.TenantID
	admin    identity.Issued
	replicas [2]string
	cipher   connection.Cipher
	logs     *logs
}

func newLoginFixture(t *testing.T) *loginFixture {
	t.Helper()
	f := &loginFixture{t: t, db: dbtest.DB(t), logs: &logs{}}
	var err error
	if f.cipher, err = connection.NewCipher(base64.StdEncoding.EncodeToString(make([]byte, 32))); err != nil {
		t.Fatal(err)
	}
	err = postgres.InTx(t.Context(), f.db, postgres.Admin(), func(tx pgx.Tx) (err error) {
		f.tenant, err = identity.NewTenant(t.Context(), tx, "client")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	f.admin = f.token("ada")
	var first string
	for i := range f.replicas {
		cache := settings.NewCache()
		var server *rest.Server
		web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { server.ServeHTTP(w, r) }))
		if first == "" {
			first = "http://" + web.Listener.Addr().String()
		}
		server, err = rest.New(rest.Core{
			DB: f.db, Catalog: cache, Intake: intake.New(f.db, cache, intake.Config{}), Approval: approval.New(f.db, cache, approval.Config{}),
		}, rest.Config{Vault: f.cipher, SourceNetworks: safehttp.Loopback(), Log: slog.New(slog.NewTextHandler(f.logs, nil)), PublicURL: first})
		if err != nil {
			t.Fatal(err)
		}
		web.Start()
		t.Cleanup(func() {
			server.Close()
			web.Close()
		})
		f.replicas[i] = web.URL
	}
	return f
}

func (f *loginFixture) token(name string) (made identity.Issued) {
	f.t.Helper()
	err := postgres.InTx(f.t.Context(), f.db, postgres.API(f.tenant), func(tx pgx.Tx) (err error) {
		made, err = identity.Issue(f.t.Context(), tx, f.tenant, identity.Grant{Name: name, Role: identity.RoleAdmin}, time.Now())
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return made
}

// send sends a request to a replica and decodes the answer. It may run in a goroutine.
func (f *loginFixture) send(replica int, by identity.Issued, method, path string, body, into any) int {
	text, err := json.Marshal(body)
	if err != nil {
		f.t.Error(err)
		return 0
	}
	r, err := http.NewRequestWithContext(f.t.Context(), method, f.replicas[replica]+path, bytes.NewReader(text))
	if err != nil {
		f.t.Error(err)
		return 0
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + by.Token.Text()}}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		f.t.Error(err)
		return 0
	}
	defer answer.Body.Close()
	text, err = io.ReadAll(answer.Body)
	if err != nil {
		f.t.Error(err)
	}
	if into != nil && answer.StatusCode < 300 {
		if err := json.Unmarshal(text, into); err != nil {
			f.t.Errorf("%s %s: %v in %s", method, path, err, text)
		}
	} else if answer.StatusCode >= 400 {
		f.t.Logf("%s %s = %d %s", method, path, answer.StatusCode, text)
	}
	return answer.StatusCode
}

// source makes a source with an address.
func (f *loginFixture) source(id, address string) {
	f.t.Helper()
	if status := f.send(0, f.admin, "PUT", "/api/v1/sources/"+id, object{"kind": "mcp", "config": object{"transport": "http", "url": address}}, nil); status != 200 {
		f.t.Fatalf("PUT source = %d", status)
	}
}

func (f *loginFixture) shown(id string) (found wire.Source) {
	f.t.Helper()
	var page wire.Page[wire.Source]
	f.send(0, f.admin, "GET", "/api/v1/sources", nil, &page)
	for _, src := range page.Items {
		if src.ID == id {
			found = src
		}
	}
	return found
}

// begin begins a login at a replica.
func (f *loginFixture) begin(replica int, id string, in object) (begun wire.BegunSourceLogin) {
	f.t.Helper()
	if status := f.send(replica, f.admin, "POST", "/api/v1/sources/"+id+"/login", in, &begun); status != 200 {
		f.t.Fatalf("begin = %d", status)
	}
	return begun
}

// answer returns the line that the browser shows when it comes back to a replica.
func (f *loginFixture) answer(replica int, back *url.URL) string {
	f.t.Helper()
	r, err := http.NewRequestWithContext(f.t.Context(), http.MethodGet, f.replicas[replica]+back.RequestURI(), nil)
	if err != nil {
		f.t.Fatal(err)
	}
	page, err := http.DefaultClient.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer page.Body.Close()
	text, err := io.ReadAll(page.Body)
	if err != nil || page.StatusCode != 200 || !strings.HasPrefix(page.Header.Get("Content-Type"), "text/plain") {
		f.t.Fatalf("GET %s = %d %s", back.Path, page.StatusCode, text)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}

// workers returns as many connections to a source as there are workers, each of its own
// process.
func (f *loginFixture) workers(n int, id string) (all []source.Source) {
	f.t.Helper()
	for range n {
		logins := f.logins()
		pool := connection.NewPool(connection.Config{Cipher: f.cipher, Networks: safehttp.Loopback(), Tokens: logins.Of, Log: slog.New(slog.NewTextHandler(f.logs, nil))})
		f.t.Cleanup(pool.Close)
		src, err := pool.Get(f.settings(), id)
		if err != nil {
			f.t.Fatal(err)
		}
		all = append(all, src)
	}
	return all
}

func (f *loginFixture) logins() *login.Logins {
	return login.New(f.db, f.cipher, safehttp.Loopback(), slog.New(slog.NewTextHandler(f.logs, nil)))
}

func (f *loginFixture) settings() (current *settings.Settings) {
	f.t.Helper()
	err := postgres.InTx(f.t.Context(), f.db, postgres.Worker(), func(tx pgx.Tx) (err error) {
		current, err = settings.NewCache().Current(f.t.Context(), tx, f.tenant)
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return current
}

// count counts rows.
func count(t *testing.T, db *pgxpool.Pool, query string, args ...any) (n int) {
	t.Helper()
	if err := db.QueryRow(t.Context(), "SELECT count(*) FROM "+query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestSourcesLogInByTheURLAlone has a source of one installation log in to the MCP
// server of another: the login begins at one replica of the API and ends at the other.
// Workers call with the token, renew it once for all of them, and lose the login when it
// is ended there.
func TestSourcesLogInByTheURLAlone(t *testing.T) {
	t.Parallel()
	there := newFixture(t, mcpserver.Config{}).tenant("acme")
	f := newLoginFixture(t)
	f.source("acme", there.url)

	begun := f.begin(0, "acme", object{})
	back, err := there.person().consent(t.Context(), begun.URL)
	if err != nil {
		t.Fatal(err)
	}
	line := f.answer(1, back)
	if status := f.send(1, f.token("eve"), "POST", "/api/v1/sources/acme/login/finish", object{"answer": line}, nil); status != 404 {
		t.Errorf("somebody else finishes the login: %d", status)
	}
	var done wire.FinishedSourceLogin
	if status := f.send(1, f.admin, "POST", "/api/v1/sources/acme/login/finish", object{"answer": line}, &done); status != 200 || !done.Done {
		t.Fatalf("finish = %d %+v", status, done)
	}
	if status := f.send(0, f.admin, "POST", "/api/v1/sources/acme/login/finish", object{"answer": line}, nil); status != 404 {
		t.Errorf("a login finishes twice: %d", status)
	}
	if l := f.shown("acme").Login; l == nil || l.Issuer != strings.TrimSuffix(there.url, "/mcp") || l.LoginBy != "token:ada" && !strings.Contains(l.LoginBy, "ada") || l.LostAt != nil || l.ExpiresAt == nil {
		t.Errorf("login = %+v", l)
	}

	workers := f.workers(2, "acme")
	call := func(src source.Source) source.Outcome {
		return src.Execute(context.WithoutCancel(t.Context()), source.Call{Key: uuid.NewString(), Tool: nameRead, Effect: envelope.EffectOnce, Attempt: 1})
	}
	for _, src := range workers {
		if tools, err := src.List(t.Context()); err != nil || len(tools) == 0 {
			t.Fatalf("List() = %d tools, %v", len(tools), err)
		}
		if out := call(src); out.Kind != source.KindDone {
			t.Fatalf("Execute() = %+v", out)
		}
	}

	there.changeLogin("secret_until = now() - interval '1 second'")
	f.exec("UPDATE source_logins SET renewed_at = now() - interval '1 hour'")
	var calls sync.WaitGroup
	for i := range 10 {
		calls.Go(func() {
			if out := call(workers[i%2]); out.Kind != source.KindDone {
				t.Errorf("with an expired token: %+v", out)
			}
		})
	}
	calls.Wait()
	if n := count(t, there.db, "refresh_tokens WHERE used_at IS NOT NULL"); n != 1 {
		t.Errorf("the workers renewed %d times, want once", n)
	}

	f.exec("UPDATE source_logins SET renewed_at = now() - interval '1 hour'")
	there.changeLogin("revoked_at = now()")
	for _, src := range workers {
		if out := call(src); !out.Deferred || out.Code != source.CodeLoginLost {
			t.Errorf("after the end of the login: %+v", out)
		}
	}
	if l := f.shown("acme").Login; l == nil || l.LostAt == nil || l.LostReason == nil || !strings.Contains(*l.LostReason, "refresh token") {
		t.Errorf("login = %+v", l)
	}
	var waiting wire.InboxCounts
	if f.send(1, f.admin, "GET", "/api/v1/inbox/counts", nil, &waiting); len(waiting.LostLogins) != 1 || waiting.LostLogins[0] != "acme" {
		t.Errorf("the inbox has the lost logins %q", waiting.LostLogins)
	}
	if n := count(t, f.db, "events WHERE kind = 'configured' AND actor = 'source/acme' AND items::text LIKE '%login of source acme lost%'"); n != 1 {
		t.Errorf("%d events of the loss, want 1", n)
	}
	f.exec("UPDATE sources SET on_lost_login = 'fail'")
	if out := call(f.workers(1, "acme")[0]); out.Kind != source.KindRefused || out.Code != source.CodeLoginLost {
		t.Errorf("with the setting fail: %+v", out)
	}
	f.hasNoTokens()
}

// hasNoTokens searches the logs and every table of the client for secrets of an
// authorization server: they are encrypted.
func (f *loginFixture) hasNoTokens() {
	f.t.Helper()
	found := f.logs.String()
	for _, table := range []string{"events", "sources", "source_clients", "source_login_states", "source_logins", "tool_executions"} {
		var text string
		if err := f.db.QueryRow(f.t.Context(), "SELECT coalesce(string_agg(t::text, ''), '') FROM "+table+" t").Scan(&text); err != nil {
			f.t.Fatal(err)
		}
		found += text
	}
	for _, prefix := range []string{"cs_agent_", "cs_refresh_", "cs_code_", canary} {
		if strings.Contains(found, prefix) || strings.Contains(found, hex.EncodeToString([]byte(prefix))) {
			f.t.Errorf("logs or tables have a secret that begins with %q", prefix)
		}
	}
}

// canary is part of each secret of an authorization server of a test.
const canary = "CANARY-83bd"

func (f *loginFixture) exec(sql string) {
	f.t.Helper()
	if _, err := f.db.Exec(f.t.Context(), sql); err != nil {
		f.t.Fatal(err)
	}
}
