package rest_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/listen"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/server/mcpserver"
	"github.com/countersign-dev/countersign/internal/server/rest"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/web"
)

// process is the API as the command serves it, on a pool that tenants share.
type process struct {
	*tenantFixture
	address string
	pool    *postgres.Shared
}

// process serves within limits, on two connections to the database for which
// requests wait so long.
func (f *tenantFixture) process(t *testing.T, limits listen.Limits, wait time.Duration) *process {
	t.Helper()
	pool, err := postgres.Open(t.Context(), postgres.Config{URL: f.db.Config().ConnString(), MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	p := &process{tenantFixture: f, pool: postgres.Share(pool, wait)}
	page, err := web.New()
	if err != nil {
		t.Fatal(err)
	}
	cache := settings.NewCache()
	server, err := rest.New(rest.Core{
		DB: p.pool, Catalog: cache, Intake: intake.New(p.pool, cache, intake.Config{}), Approval: approval.New(p.pool, cache, approval.Config{}),
	}, rest.Config{Page: page, Heartbeat: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	front := mcpserver.New(server.Backend(), mcpserver.Config{})
	server.Mount("/mcp", front)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.address = listener.Addr().String()
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { // received below
		served <- listen.Serve(ctx, listener, listen.Config{
			Handler: server, Limits: limits, Drain: time.Millisecond, Log: slog.New(slog.DiscardHandler),
			End: func() { front.Close(); server.Close() },
		})
	}()
	t.Cleanup(func() {
		stop()
		<-served // with an error if the test has failed and left something open
	})
	return p
}

// begin sends the header of a request and the beginning of its body.
func (p *process) begin(head string, headers ...string) net.Conn {
	p.t.Helper()
	c, err := new(net.Dialer).DialContext(p.t.Context(), "tcp", p.address)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = c.Close() })
	// A response that is due within a second may take long on a busy machine.
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		p.t.Fatal(err)
	}
	headers = append([]string{head + " HTTP/1.1", "Host: " + p.address, "Content-Type: application/json", "Content-Length: 100000"}, headers...)
	if _, err := io.WriteString(c, strings.Join(headers, "\r\n")+"\r\n\r\n{"); err != nil {
		p.t.Fatal(err)
	}
	return c
}

// wants reads a response that closes the connection, up to the end.
func (p *process) wants(c net.Conn, name string, status int) {
	p.t.Helper()
	from := bufio.NewReader(c)
	answer, err := http.ReadResponse(from, nil)
	if err != nil {
		p.t.Errorf("%s: %v, want an answer", name, err)
		return
	}
	if answer.StatusCode != status || !answer.Close {
		p.t.Errorf("%s = %d, closes %t, want %d that closes the connection", name, answer.StatusCode, answer.Close, status)
	}
	if _, err := io.Copy(io.Discard, from); err != nil && !strings.Contains(err.Error(), "reset") {
		p.t.Errorf("%s: %v, want that the connection is closed", name, err)
	}
}

// A body that does not come keeps no connection, with a token or without one. An
// answer that needs no body does not wait for it: Read is longer than the test.
func TestMissingBody(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("silence")
	p := f.process(t, listen.Limits{Read: time.Hour}, 0)
	agent, wrong := "Authorization: Bearer "+p.agent.token, "Authorization: Bearer cs_agent_"+strings.Repeat("A", 43)
	for name, early := range map[string]struct {
		head, header string
		status       int
	}{
		"without a token":          {"POST /api/v1/actions", "X-None: none", http.StatusUnauthorized},
		"with a wrong token":       {"POST /api/v1/actions", wrong, http.StatusUnauthorized},
		"without the right":        {"POST /api/v1/tokens", agent, http.StatusForbidden},
		"with a wrong query":       {"POST /api/v1/actions?wait=x", agent, http.StatusBadRequest},
		"at no path":               {"POST /api/v1/nothing", "X-None: none", http.StatusNotFound},
		"of another method":        {"PATCH /api/v1/actions", agent, http.StatusMethodNotAllowed},
		"over MCP without a token": {"POST /mcp", "X-None: none", http.StatusUnauthorized},
		"for the page":             {"GET /", "Accept: text/html", http.StatusOK},
		"for a probe":              {"GET /healthz", "X-None: none", http.StatusOK},
		"that nobody reads":        {"GET /api/v1/actions", agent, http.StatusOK},
	} {
		p.wants(p.begin(early.head, early.header), name, early.status)
	}

	q := f.process(t, listen.Limits{Read: 200 * time.Millisecond}, 0)
	for name, late := range map[string]net.Conn{
		"a proposal":     q.begin("POST /api/v1/actions", agent),
		"a batch":        q.begin("POST /api/v1/actions/batch", agent),
		"a call":         q.begin("POST /mcp", agent, "Accept: application/json, text/event-stream"),
		"a login":        q.begin("POST /auth/session", "Origin: http://"+q.address),
		"a Slack button": q.begin("POST /api/v1/slack/interactions/" + q.id.String() + ".any"),
	} {
		q.wants(late, name, http.StatusBadRequest)
	}
}

// A caller's connections are limited; one more is refused as busy.
func TestACallersConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	tenant := newFixture(t).tenant("silence")
	for _, path := range []string{"/api/v1/events", "/mcp"} {
		// A process of its own: a rejected connection counts until it is closed.
		p := tenant.process(t, listen.Limits{AddressConnections: 1, CallerConnections: 1}, 0)
		of := p.holder(identity.Grant{Name: path, Role: identity.RoleAgent, Session: "s-" + path[1:4]})
		follow := func() *http.Response {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.address+path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+of.token)
			r.Header.Set("Accept", "text/event-stream")
			r.Header.Set("Mcp-Protocol-Version", "2025-06-18")
			answer, err := (&http.Transport{}).RoundTrip(r) // a connection of its own
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = answer.Body.Close() })
			return answer
		}
		first, second := follow(), follow()

		if first.StatusCode == http.StatusServiceUnavailable || second.StatusCode != http.StatusServiceUnavailable || second.Header.Get("Retry-After") == "" {
			t.Errorf("%s = %d, then %d with Retry-After %q, want 503 with it", path, first.StatusCode, second.StatusCode, second.Header.Get("Retry-After"))
		}
	}
}

// A pool without a free connection is soon reported as busy, with any users of
// the connections.
func TestAnExhaustedPoolIsBusy(t *testing.T) {
	t.Parallel()
	p := newFixture(t).tenant("silence").process(t, listen.Limits{}, 300*time.Millisecond)
	hold := func(begin func(fn func()) error) (letGo func()) {
		held, over, ended := make(chan struct{}, 2), make(chan struct{}), make(chan error, 2)
		for range 2 {
			go func() { // received by letGo
				ended <- begin(func() { held <- struct{}{}; <-over })
			}()
		}
		<-held
		<-held
		return func() {
			close(over)
			for range 2 {
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
		}
	}
	for _, name := range []string{"by others", "by tenants"} { // the first makes the connections
		var db postgres.Begins = p.pool
		if name == "by others" {
			db = p.pool.Pool
		}
		letGo := hold(func(fn func()) error {
			return postgres.InTx(t.Context(), db, postgres.API(p.id), func(pgx.Tx) error { fn(); return nil })
		})
		for _, at := range []string{"GET /api/v1/actions", "GET /api/v1/tools", "GET /readyz"} {
			status, after := p.ask(at)
			if status != http.StatusServiceUnavailable || after == "" {
				t.Errorf("%s, used up %s = %d with Retry-After %q, want 503 with it", at, name, status, after)
			}
		}
		letGo()

		if status, _ := p.ask("GET /api/v1/actions"); status != http.StatusOK {
			t.Errorf("after the pool was used up %s = %d, want 200", name, status)
		}
	}
}

// ask returns the status and the Retry-After of a response.
func (p *process) ask(at string) (status int, after string) {
	p.t.Helper()
	method, path, _ := strings.Cut(at, " ")
	r, err := http.NewRequestWithContext(p.t.Context(), method, "http://"+p.address+path, http.NoBody)
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+p.agent.token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode, answer.Header.Get("Retry-After")
}
