package mcpserver_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/server/mcpserver"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`

// answer is an HTTP response.
type answer struct {
	status int
	header http.Header
	body   string
}

// send sends a request unchanged; header alternates names and values.
func (h *fixture) send(method, token, body string, header ...string) answer {
	h.t.Helper()
	res := h.open(h.t.Context(), method, token, body, header...)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, string(text)}
}

// open is send without reading the answer.
func (h *fixture) open(ctx context.Context, method, token, body string, header ...string) *http.Response {
	h.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, h.url, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		} else {
			r.Header.Set(header[i], header[i+1])
		}
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	return res
}

// session opens a session and returns its id.
func (h *fixture) session(token string) string {
	h.t.Helper()
	a := h.send("POST", token, initialize)
	id := a.header.Get("Mcp-Session-Id")
	if a.status != http.StatusOK || id == "" {
		h.t.Fatalf("initialize = %d %s", a.status, a.body)
	}
	h.send("POST", token, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", id)
	return id
}

func TestTokenIsNeeded(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcpserver.Config{}).tenant("acme")
	id := f.session(f.agent.Token.Text())

	for name, token := range map[string]string{"none": "", "not one": marker, "unknown": "cs_agent_" + strings.Repeat("A", 43)} {
		for _, a := range []answer{
			f.send("POST", token, initialize), f.send("GET", token, "", "Mcp-Session-Id", id), f.send("DELETE", token, "", "Mcp-Session-Id", id),
			f.send("POST", token, `{}`, "Mcp-Protocol-Version", withoutSessions),
		} {
			if a.status != http.StatusUnauthorized || !strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Bearer") || strings.Contains(a.body, marker) {
				t.Errorf("token %s = %d %q %s", name, a.status, a.header.Get("WWW-Authenticate"), a.body)
			}
		}
	}
	in, err := identity.NewAuthenticator(f.db).OpenWithToken(t.Context(), f.operator.Token.Text(), identity.Visitor{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	secret := in.Secret.Text()
	for name, a := range map[string]answer{
		"a cookie":           f.send("POST", "", initialize, "Cookie", "cs="+secret),
		"a cookie of https":  f.send("POST", "", initialize, "Cookie", "__Host-cs="+secret),
		"a session's secret": f.send("POST", secret, initialize),
	} {
		if a.status != http.StatusUnauthorized {
			t.Errorf("%s = %d %s, want 401", name, a.status, a.body)
		}
	}
	if strings.Contains(f.logs.String(), marker) {
		t.Error("the log holds a token")
	}
	if _, err := f.tryConnect(marker, withSessions); err == nil || strings.Contains(err.Error(), marker) {
		t.Errorf("Connect() = %v", err)
	}
}

func TestSessionBelongsToItsToken(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcpserver.Config{}).tenant("acme")
	id := f.session(f.agent.Token.Text())
	const list = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`

	for _, who := range []string{f.other.Token.Text(), f.operator.Token.Text()} {
		for _, method := range []string{"POST", "GET", "DELETE"} {
			if a := f.send(method, who, list, "Mcp-Session-Id", id); a.status != http.StatusNotFound {
				t.Errorf("%s with another token = %d %s, want 404", method, a.status, a.body)
			}
		}
	}
	if a := f.send("POST", f.agent.Token.Text(), list, "Mcp-Session-Id", id); a.status != http.StatusOK {
		t.Errorf("the session's own token = %d %s", a.status, a.body)
	}
	if a := f.send("POST", f.agent.Token.Text(), list, "Mcp-Session-Id", "made-up"); a.status != http.StatusNotFound {
		t.Errorf("a session that is not there = %d, want 404", a.status)
	}
}

func TestOriginsOfOtherMachinesAreRejected(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcpserver.Config{}).tenant("acme")
	token := f.agent.Token.Text()

	for name, c := range map[string]struct {
		header []string
		want   int
	}{
		"no browser":                  {nil, http.StatusOK},
		"no browser, behind a proxy":  {[]string{"Host", "countersign.example"}, http.StatusOK},
		"a page of this machine":      {[]string{"Origin", "http://localhost:6274"}, http.StatusOK},
		"a page of another":           {[]string{"Origin", "https://evil.example"}, http.StatusForbidden},
		"a page without an origin":    {[]string{"Origin", "null"}, http.StatusForbidden},
		"a name bound to this one":    {[]string{"Origin", "http://evil.example", "Host", "evil.example"}, http.StatusForbidden},
		"such a name without origin":  {[]string{"Sec-Fetch-Site", "same-origin", "Host", "evil.example"}, http.StatusForbidden},
		"a name that begins like one": {[]string{"Origin", "http://localhost.evil.example"}, http.StatusForbidden},
	} {
		if a := f.send("POST", token, initialize, c.header...); a.status != c.want {
			t.Errorf("%s = %d %s, want %d", name, a.status, a.body, c.want)
		}
	}
}

func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcpserver.Config{}).tenant("acme")
	c := f.connect(f.agent, withSessions)

	if a := f.send("POST", f.agent.Token.Text(), strings.Repeat(" ", envelope.MaxBytes+64<<10+1)); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body = %d, want 413", a.status)
	}
	large := c.call(nameRead, object{"text": strings.Repeat(".", envelope.MaxBytes)}).wants(t, "invalid", true)
	if len(large.content.Errors) == 0 || large.content.Errors[0].Rule != envelope.RuleSize {
		t.Errorf("arguments larger than an envelope = %s", large.raw)
	}
}

const listTools = `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`

// inUse opens a call in a session that does not end, and returns how to leave
// it.
func (f *tenantFixture) inUse(token, id, to string) (leave func()) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(f.t.Context())
	res := f.open(ctx, "POST", token,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"`+nameWrite+`","arguments":{"to":"`+to+`"},"_meta":{"progressToken":1}}}`,
		"Mcp-Session-Id", id)
	if _, err := res.Body.Read(make([]byte, 10)); err != nil { // it is waiting now
		f.t.Fatal(err)
	}
	return func() {
		cancel()
		_ = res.Body.Close()
	}
}

// Clients that disconnect without closing do not lock their token out: opening
// one session too many ends the one that was idle the longest, never one with
// a call.
func TestSessionTooManyEndsTheLongestIdle(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcpserver.Config{Sessions: 3}).tenant("acme")
	token := f.agent.Token.Text()
	busy, idle, listening := f.session(token), f.session(token), f.session(token)
	defer f.inUse(token, busy, "ada")()
	stream := f.open(t.Context(), "GET", token, "", "Mcp-Session-Id", listening)
	defer func() { _ = stream.Body.Close() }()

	next := f.session(token)

	for _, c := range []struct {
		name, id string
		want     int
	}{{"busy", busy, 200}, {"idle", idle, 404}, {"listening", listening, 200}, {"next", next, 200}} {
		if a := f.send("POST", token, listTools, "Mcp-Session-Id", c.id); a.status != c.want {
			t.Errorf("the %s session = %d %s, want %d", c.name, a.status, a.body, c.want)
		}
	}
	defer f.inUse(token, listening, "bob")()
	defer f.inUse(token, next, "cem")()
	refused := f.send("POST", token, initialize)
	if refused.status != http.StatusTooManyRequests || refused.header.Get("Retry-After") == "" || refused.header.Get("RateLimit") != `"token-sessions";r=0;t=60` {
		t.Errorf("while all are used, another = %d, want 429", refused.status)
	}
	if a := f.send("POST", f.other.Token.Text(), initialize); a.status != http.StatusOK {
		t.Errorf("another token's session = %d", a.status)
	}
}

// A client of TypeScript leaves without DELETE; a hundred of them after each
// other are no reason to refuse the next.
func TestClientsThatLeaveDoNotLockTheirTokenOut(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcpserver.Config{Sessions: 2}).tenant("acme")

	for i := range 100 {
		if a := f.send("POST", f.agent.Token.Text(), initialize); a.status != http.StatusOK {
			t.Fatalf("session %d = %d %s", i, a.status, a.body)
		}
	}
}

func TestSessionsOfATenantAreBounded(t *testing.T) {
	t.Parallel()
	h := newFixture(t, mcpserver.Config{Sessions: 2, TenantSessions: 3})
	f, elsewhere := h.tenant("acme"), h.tenant("other")
	first, second := f.session(f.agent.Token.Text()), f.session(f.agent.Token.Text())
	others := elsewhere.session(elsewhere.agent.Token.Text())
	f.session(f.other.Token.Text())

	f.session(f.operator.Token.Text())

	if a := f.send("POST", f.agent.Token.Text(), listTools, "Mcp-Session-Id", first); a.status != http.StatusNotFound {
		t.Errorf("the tenant's longest idle session = %d, want 404", a.status)
	}
	if a := f.send("POST", f.agent.Token.Text(), listTools, "Mcp-Session-Id", second); a.status != http.StatusOK {
		t.Errorf("the next = %d, want 200", a.status)
	}
	if a := f.send("POST", elsewhere.agent.Token.Text(), listTools, "Mcp-Session-Id", others); a.status != http.StatusOK {
		t.Errorf("another tenant's session = %d, want 200", a.status)
	}
}

func TestIdleSessionsAreClosed(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcpserver.Config{Idle: 50 * time.Millisecond}).tenant("acme")
	token := f.agent.Token.Text()
	id := f.session(token)

	// A stream ends with its session, which is removed shortly after; a request in
	// between still finds it.
	var stream, gone answer
	for range 10 {
		stream = f.send("GET", token, "", "Mcp-Session-Id", id)
		gone = f.send("POST", token, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, "Mcp-Session-Id", id)
		if gone.status == http.StatusNotFound {
			return
		}
	}

	t.Errorf("stream = %d, then %d, want 404", stream.status, gone.status)
}

func TestDroppedConnectionStopsTheWait(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcpserver.Config{}).tenant("acme")
	token := f.agent.Token.Text()
	id := f.session(token)
	ctx, cancel := context.WithCancel(t.Context())

	res := f.open(ctx, "POST", token,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"`+nameWrite+`","arguments":{"to":"ada"},"_meta":{"progressToken":1}}}`,
		"Mcp-Session-Id", id)
	if _, err := res.Body.Read(make([]byte, 10)); err != nil { // it is waiting now
		t.Fatal(err)
	}
	cancel()
	_ = res.Body.Close()

	select {
	case <-f.stopped:
	case <-time.After(waitLimit):
		t.Fatal("the wait goes on")
	}
	if got := f.connect(f.agent, withSessions).call("countersign_status", object{"action_id": f.only().String()}); got.content.Status != "pending" {
		t.Errorf("the action is %s, want pending", got.raw)
	}
}

func TestClosingEndsWaitsAndSessions(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, version string) {
		f := newFixture(t, mcpserver.Config{}).tenant("acme")
		c := f.connect(f.agent, version)

		call := c.start(t.Context(), nameWrite, object{"to": "ada"})
		c.nextProgress()
		f.mcp.Close()
		got := c.end(call).wants(t, "pending", false)

		if got.content.Action != f.only().String() {
			t.Errorf("result = %s, want the action", got.raw)
		}
		if a := f.send("POST", f.agent.Token.Text(), initialize); a.status != http.StatusServiceUnavailable {
			t.Errorf("after Close a request is answered %d, want 503", a.status)
		}
		f.mcp.Close()
	})
}

func TestMessagesAreReadStrictly(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcpserver.Config{}).tenant("acme")
	c := f.connect(f.agent, withSessions)

	for name, body := range map[string]string{
		"a number":          strings.Replace(initialize, `"id":1`, `"id":1e999999`, 1),
		"a repeated member": strings.Replace(initialize, `"id":1`, `"id":1,"id":2`, 1),
		"its params":        strings.Replace(initialize, `"name":"raw"`, `"name":"raw","n":1e999999`, 1),
	} {
		if got := f.send("POST", f.agent.Token.Text(), body); got.status != http.StatusBadRequest {
			t.Errorf("%s = %d %s, want 400", name, got.status, got.body)
		}
	}
	c.call("countersign_wait", rawJSON(`{"action_id":"`+envelope.NewActionID().String()+`","seconds":1e999999}`)).wants(t, "invalid", true)
	c.call("countersign_search", rawJSON(`{"query":"a","query":"b"}`)).wants(t, "invalid", true)
}
