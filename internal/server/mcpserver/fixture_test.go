package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/server/mcpserver"
	"github.com/countersign-dev/countersign/internal/server/rest"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
	"github.com/countersign-dev/countersign/internal/telemetry"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/worker"
)

// waitLimit bounds the time that a test waits for an event.
const waitLimit = time.Minute

// marker is part of tokens and payloads; no error and no log line may contain
// it.
const marker = "MARKER-4f1c"

// The versions of the protocol that the tests run in: one with
// sessions, one without.
const (
	withSessions    = "2025-11-25"
	withoutSessions = "2026-07-28"
)

// fixture is the API with the MCP server mounted, a worker, and a source of tools
// that the test controls.
type fixture struct {
	t         *testing.T
	db        *pgxpool.Pool
	url       string
	mcp       *mcpserver.Server
	approvals *approval.Service
	src       *sourcetest.Source
	logs      *logs
	// stopped receives a value for every wait that ends.
	stopped chan struct{}
}

// logs collects log lines.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// boxTools returns the tools of the source "box": policy allows read, requires
// approval for write, and denies danger.
func boxTools(description string) []source.Tool {
	return []source.Tool{
		{Name: "read", Title: "Read", Description: description, InputSchema: json.RawMessage(`{"type":"object"}`), Hints: source.Hints{ReadOnly: true}},
		{
			Name: "box.write", Description: description, Effect: envelope.EffectOnce,
			InputSchema:  json.RawMessage(`{"type":"object","properties":{"to":{"type":"string"},"n":{"type":"integer"}},"additionalProperties":false}`),
			OutputSchema: json.RawMessage(`{"type":"object","required":["n"]}`),
		},
		{Name: "danger", InputSchema: json.RawMessage(`{"type":"object"}`), Hints: source.Hints{Destructive: new(true)}},
	}
}

// The names under which they are offered.
const (
	nameRead   = "box__read"
	nameWrite  = "box__box--write"
	nameDanger = "box__danger"
)

func newFixture(t *testing.T, cfg mcpserver.Config) *fixture {
	t.Helper()
	return newFixtureOn(t, cfg, nil)
}

// newFixtureOn opens a fixture whose worker calls sources through live; nil means
// the fake source.
func newFixtureOn(t *testing.T, cfg mcpserver.Config, live *connection.Pool) *fixture {
	t.Helper()
	return newFixtureIn(t, dbtest.DB(t), cfg, live)
}

// newFixtureIn opens a fixture in a database.
func newFixtureIn(t *testing.T, db *pgxpool.Pool, cfg mcpserver.Config, live *connection.Pool) *fixture {
	t.Helper()
	h := &fixture{t: t, db: db, src: sourcetest.NewSource(boxTools("as listed")...), logs: &logs{}, stopped: make(chan struct{}, 1000)}
	if live == nil {
		live = connection.NewPool(connection.Config{Open: func(envelope.TenantID, catalog.Source) (source.Source, error) { return h.src, nil }})
	}
	log := slog.New(slog.NewTextHandler(h.logs, nil))
	metrics, err := telemetry.NewMetrics(noop.Meter{})
	if err != nil {
		t.Fatal(err)
	}
	cache := settings.NewCache()
	pipeline := worker.NewPipeline(db, cache, live, worker.PipelineConfig{
		ID: "w1", Concurrency: 20, Lease: time.Minute, Poll: 20 * time.Millisecond, Grace: waitLimit,
		Retry: outbox.Retry{Base: time.Millisecond, Cap: 2 * time.Millisecond}, Metrics: metrics,
	})
	proposals := intake.New(db, cache, intake.Config{Wake: pipeline.Poll})
	h.approvals = approval.New(db, cache, approval.Config{Wake: pipeline.Poll})
	var server *rest.Server
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { server.ServeHTTP(w, r) }))
	server, err = rest.New(rest.Core{DB: db, Catalog: cache, Intake: proposals, Approval: h.approvals}, rest.Config{
		IssuerNetworks: safehttp.Loopback(), Log: log, Poll: 10 * time.Millisecond, PublicURL: "http://" + web.Listener.Addr().String(), OAuth: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	h.mcp = mcpserver.New(server.Backend(), cfg)
	h.mcp.OnWaitEnd(func() { h.stopped <- struct{}{} })
	server.Mount("/mcp", h.mcp)
	web.Start()
	h.url = web.URL + "/mcp"
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- pipeline.Run(ctx) }() // waited for by the clean-up
	t.Cleanup(func() {
		h.mcp.Close()
		server.Close()
		web.Close()
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the worker ended with %v", err)
		}
		live.Close()
	})
	return h
}

// tenantFixture is a tenant with the source "box".
type tenantFixture struct {
	*fixture
	id                     envelope.TenantID
	agent, other, operator identity.Issued
}

func (h *fixture) tenant(name string) *tenantFixture {
	h.t.Helper()
	f := &tenantFixture{fixture: h}
	ctx := h.t.Context()
	err := postgres.InTx(ctx, h.db, postgres.Admin(), func(tx pgx.Tx) (err error) {
		f.id, err = identity.NewTenant(ctx, tx, name)
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		if err := catalog.PutSource(ctx, tx, f.id, catalog.Source{ID: "box", Kind: catalog.KindBuiltin, Enabled: true}); err != nil {
			return err
		}
		return catalog.PutListing(ctx, tx, f.id, "box", boxTools("as listed"))
	})
	f.agent = f.holder(identity.Grant{Name: "agent", Role: identity.RoleAgent, Session: "s-one"})
	f.other = f.holder(identity.Grant{Name: "other", Role: identity.RoleAgent, Session: "s-two"})
	f.operator = f.holder(identity.Grant{Name: "olga", Role: identity.RoleOperator})
	return f
}

func (f *tenantFixture) inTx(fn func(ctx context.Context, tx pgx.Tx) error) {
	f.t.Helper()
	ctx := f.t.Context()
	if err := postgres.InTx(ctx, f.db, postgres.API(f.id), func(tx pgx.Tx) error { return fn(ctx, tx) }); err != nil {
		f.t.Fatal(err)
	}
}

func (f *tenantFixture) holder(g identity.Grant) (made identity.Issued) {
	f.t.Helper()
	f.inTx(func(ctx context.Context, tx pgx.Tx) (err error) {
		made, err = identity.Issue(ctx, tx, f.id, g, time.Now())
		return err
	})
	return made
}

// decider returns the operator as an approval.Decider.
func (f *tenantFixture) decider() approval.Decider {
	return approval.Decider{Tenant: f.id, Token: uuid.UUID(f.operator.Principal.Token), Name: f.operator.Principal.Name}
}

func (f *tenantFixture) grant(id envelope.ActionID) {
	f.t.Helper()
	if _, err := f.approvals.Approve(f.t.Context(), f.decider(), id, approval.Approval{}); err != nil {
		f.t.Fatal(err)
	}
}

// actions are the ids of all envelopes of the tenant, oldest first.
func (f *tenantFixture) actions() []envelope.ActionID {
	f.t.Helper()
	rows, err := f.db.Query(f.t.Context(), "SELECT action_id FROM actions WHERE tenant_id = $1 ORDER BY action_id", uuid.UUID(f.id))
	if err != nil {
		f.t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		f.t.Fatal(err)
	}
	all := make([]envelope.ActionID, len(found))
	for i, id := range found {
		all[i] = envelope.ActionID(id)
	}
	return all
}

// only is the one envelope that there is.
func (f *tenantFixture) only() envelope.ActionID {
	f.t.Helper()
	all := f.actions()
	if len(all) != 1 {
		f.t.Fatalf("there are %d envelopes, want 1", len(all))
	}
	return all[0]
}

// bearer sends a token with every request.
type bearer struct {
	token string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}

// client is the SDK's client, connected with a token.
type client struct {
	*sdk.ClientSession
	t        *testing.T
	progress chan *sdk.ProgressNotificationParams
	changed  chan struct{}
}

func (h *fixture) connect(who identity.Issued, version string) *client {
	h.t.Helper()
	c, err := h.tryConnect(who.Token.Text(), version)
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

func (h *fixture) tryConnect(token, version string) (*client, error) {
	return h.tryConnectWith(token, version, false)
}

// tryConnectWith is tryConnect for a client that opens no stream for notices if it is
// quiet. A client opens such a stream again by itself.
func (h *fixture) tryConnectWith(token, version string, quiet bool) (*client, error) {
	c := &client{t: h.t, progress: make(chan *sdk.ProgressNotificationParams, 1000), changed: make(chan struct{}, 1000)}
	inner := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { c.progress <- r.Params },
		ToolListChangedHandler:      func(context.Context, *sdk.ToolListChangedRequest) { c.changed <- struct{}{} },
	})
	transport := http.DefaultTransport.(*http.Transport).Clone()
	h.t.Cleanup(transport.CloseIdleConnections)
	session, err := inner.Connect(h.t.Context(), &sdk.StreamableClientTransport{
		Endpoint: h.url, HTTPClient: &http.Client{Transport: bearer{token, transport}}, DisableStandaloneSSE: quiet,
	}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		return nil, err
	}
	c.ClientSession = session
	h.t.Cleanup(func() { _ = session.Close() })
	return c, nil
}

type object = map[string]any

// start makes a call with progress, and returns a channel for its end.
func (c *client) start(ctx context.Context, tool string, args any) <-chan ended {
	params := &sdk.CallToolParams{Name: tool, Arguments: args, Meta: sdk.Meta{}}
	params.SetProgressToken(uuid.NewString())
	out := make(chan ended, 1)
	go func() { // ends with the call
		res, err := c.CallTool(ctx, params)
		out <- ended{res, err}
	}()
	return out
}

// ended is the end of a call.
type ended struct {
	res *sdk.CallToolResult
	err error
}

// end waits for a call's end.
func (c *client) end(call <-chan ended) result {
	c.t.Helper()
	select {
	case e := <-call:
		if e.err != nil {
			c.t.Fatalf("CallTool() = %v", e.err)
		}
		return read(c.t, e.res)
	case <-time.After(waitLimit):
		c.t.Fatal("the call does not end")
		return result{}
	}
}

// nextProgress waits for a progress notification.
func (c *client) nextProgress() *sdk.ProgressNotificationParams {
	c.t.Helper()
	select {
	case p := <-c.progress:
		return p
	case <-time.After(waitLimit):
		c.t.Fatal("no progress came")
		return nil
	}
}

// call makes a call and waits for its end.
func (c *client) call(tool string, args any) result {
	c.t.Helper()
	return c.callWith(tool, args, nil)
}

func (c *client) callWith(tool string, args any, meta sdk.Meta) result {
	c.t.Helper()
	res, err := c.CallTool(c.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args, Meta: meta})
	if err != nil {
		c.t.Fatalf("CallTool(%s) = %v", tool, err)
	}
	return read(c.t, res)
}

// result is the part of a result that tests compare.
type result struct {
	text    string
	isError bool
	raw     string
	// content is the structured content where it is this package's own.
	content struct {
		Status string
		Action string `json:"action_id"`
		Code   string
		Reason string
		Layers []struct{ Layer, Said string }
		Wait   struct {
			Tool, REST string
			Arguments  struct {
				Action string `json:"action_id"`
			}
		}
		Headline string
		Waiting  struct{ For string }
		Errors   []envelope.FieldError
	}
	note struct {
		Action            string `json:"action_id"`
		Status            string
		Truncated, Joined bool
	}
}

func read(t *testing.T, res *sdk.CallToolResult) result {
	t.Helper()
	r := result{isError: res.IsError}
	for _, c := range res.Content {
		if text, ok := c.(*sdk.TextContent); ok {
			r.text += text.Text
		}
	}
	raw, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	r.raw = string(raw)
	if structured, err := json.Marshal(res.StructuredContent); err != nil || json.Unmarshal(structured, &r.content) != nil && res.StructuredContent != nil {
		t.Fatalf("structured content %s: %v", structured, err)
	}
	if note, ok := res.Meta[mcpserver.MetaAction]; ok {
		text, err := json.Marshal(note)
		if err != nil || json.Unmarshal(text, &r.note) != nil {
			t.Fatalf("note %s: %v", text, err)
		}
	}
	return r
}

// wants fails the test unless the result has a status.
func (r result) wants(t *testing.T, status string, isError bool) result {
	t.Helper()
	if r.content.Status != status || r.isError != isError {
		t.Fatalf("status = %q, isError %v, want %q, %v: %s", r.content.Status, r.isError, status, isError, r.raw)
	}
	return r
}

func (r result) id(t *testing.T) (id envelope.ActionID) {
	t.Helper()
	if err := id.UnmarshalText([]byte(r.content.Action)); err != nil {
		t.Fatalf("the result names no action: %s", r.raw)
	}
	return id
}
