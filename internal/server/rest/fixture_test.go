package rest_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/internal/server/rest/route"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/encryption"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/server/openapi/openapitest"
	"github.com/countersign-dev/countersign/internal/server/rest"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// marker is part of payloads; no error and no log line may contain it.
const marker = "MARKER-4f1c"

// fixture is a server with its database.
type fixture struct {
	t        testing.TB
	db       *pgxpool.Pool
	url      string
	api      *rest.Server
	contract *openapitest.Contract
	logs     *logs
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

func newFixture(t testing.TB) *fixture {
	t.Helper()
	return newFixtureWith(t, dbtest.DB(t), rest.Config{})
}

func newFixtureWith(t testing.TB, db *pgxpool.Pool, cfg rest.Config) *fixture {
	t.Helper()
	contract := openapitest.Load(t)
	h := &fixture{t: t, db: db, contract: contract, logs: &logs{}}
	cfg.Log = slog.New(slog.NewTextHandler(h.logs, nil))
	var err error
	if cfg.Vault, err = connection.NewCipher(base64.StdEncoding.EncodeToString(make([]byte, 32))); err != nil {
		t.Fatal(err)
	}
	if cfg.MailKey, err = encryption.Parse(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, 32))); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.api.ServeHTTP(w, r) }))
	cfg.IssuerNetworks = safehttp.Loopback()
	if cfg.PublicURL == "" {
		cfg.PublicURL = "http://" + server.Listener.Addr().String()
	}
	cache := settings.NewCache()
	h.api, err = rest.New(rest.Core{
		DB: db, Catalog: cache, Intake: intake.New(db, cache, intake.Config{}), Approval: approval.New(db, cache, approval.Config{}),
	}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	server.Start()
	t.Cleanup(server.Close)
	t.Cleanup(h.api.Close)
	h.url = server.URL
	return h
}

// tenantFixture is a tenant with a source "mail" and a client for every role.
type tenantFixture struct {
	*fixture
	id                            envelope.TenantID
	agent, other, operator, admin *client
}

// mailTools are the tools of "mail": policy allows read and free, requires
// approval for write and denies danger.
var mailTools = []source.Tool{
	{Name: "read", InputSchema: json.RawMessage(`{"type":"object"}`), Hints: source.Hints{ReadOnly: true}},
	{Name: "write", InputSchema: json.RawMessage(`{"type":"object","properties":{"to":{"type":"string"},"n":{"type":"integer"}},"additionalProperties":false}`)},
	{Name: "danger", InputSchema: json.RawMessage(`{"type":"object"}`), Hints: source.Hints{Destructive: new(true)}},
}

// mailConfig is the configuration of the source mail.
var mailConfig = json.RawMessage(`{"transport":"http","url":"http://127.0.0.1:9/mcp"}`)

func (h *fixture) tenant(name string) *tenantFixture {
	h.t.Helper()
	f := &tenantFixture{fixture: h}
	ctx := h.t.Context()
	err := postgres.InTx(ctx, h.db, postgres.Admin(), func(tx pgx.Tx) error {
		var err error
		if f.id, err = identity.NewTenant(ctx, tx, name); err != nil {
			return err
		}
		// Tests propose all they need in the session of one agent, by far
		// faster than an agent may go.
		_, err = tx.Exec(ctx, "UPDATE tenants SET session_pending_max = 0, session_minute_max = 0 WHERE tenant_id = $1", f.id.String())
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		src := catalog.Source{ID: "mail", Kind: catalog.KindMCP, Config: mailConfig, Enabled: true}
		if err := catalog.PutSource(ctx, tx, f.id, src); err != nil {
			return err
		}
		if err := catalog.PutSource(ctx, tx, f.id, catalog.Source{ID: "countersign", Kind: catalog.KindBuiltin, Enabled: true}); err != nil {
			return err
		}
		return catalog.PutListing(ctx, tx, f.id, "mail", mailTools)
	})
	f.agent = f.holder(identity.Grant{Name: "agent", Role: identity.RoleAgent, Session: "s-one"})
	f.other = f.holder(identity.Grant{Name: "other", Role: identity.RoleAgent, Session: "s-two"})
	f.operator = f.holder(identity.Grant{Name: "operator", Role: identity.RoleOperator})
	f.admin = f.holder(identity.Grant{Name: "admin", Role: identity.RoleAdmin})
	return f
}

func (f *tenantFixture) inTx(fn func(ctx context.Context, tx pgx.Tx) error) {
	f.t.Helper()
	ctx := f.t.Context()
	if err := postgres.InTx(ctx, f.db, postgres.API(f.id), func(tx pgx.Tx) error { return fn(ctx, tx) }); err != nil {
		f.t.Fatal(err)
	}
}

func (f *tenantFixture) holder(g identity.Grant) *client {
	f.t.Helper()
	made, err := f.issue(g)
	if err != nil {
		f.t.Fatal(err)
	}
	return &client{fixture: f.fixture, token: made.Token.Text(), id: made.Principal.Token}
}

func (f *tenantFixture) issue(g identity.Grant) (made identity.Issued, err error) {
	return made, postgres.InTx(f.t.Context(), f.db, postgres.API(f.id), func(tx pgx.Tx) error {
		made, err = identity.Issue(f.t.Context(), tx, f.id, g, time.Now())
		return err
	})
}

// settle claims everything that is due and ends it with a status.
func (f *tenantFixture) settle(status envelope.Status, reason outbox.Reason) int {
	f.t.Helper()
	n, err := f.trySettle(f.t.Context(), status, reason)
	if err != nil {
		f.t.Fatal(err)
	}
	return n
}

func (f *tenantFixture) trySettle(ctx context.Context, status envelope.Status, reason outbox.Reason) (n int, err error) {
	return n, postgres.InTx(ctx, f.db, postgres.Worker(), func(tx pgx.Tx) error {
		due, err := outbox.DueBuckets(ctx, tx, 0, 100)
		if err != nil {
			return err
		}
		var wants []outbox.ClaimRequest
		for _, d := range due {
			wants = append(wants, outbox.ClaimRequest{Bucket: d.Bucket, From: d.From, Quota: 100})
		}
		got, err := outbox.Claim(ctx, tx, outbox.Mark{}, wants, time.Minute)
		if err != nil {
			return err
		}
		var batch []outbox.Settlement
		for _, it := range got {
			s := outbox.Settlement{Lease: it.Lease, Status: status, Attempt: it.Attempt + 1, DeadLetter: reason, Took: time.Millisecond, Result: json.RawMessage(`{"ok":true}`)}
			if reason != "" {
				s.Code, s.Message = "http_400", "the tool refused"
			}
			batch = append(batch, s)
		}
		settled, err := outbox.Settle(ctx, tx, outbox.Mark{}, "worker/test", batch)
		if err != nil {
			return err
		}
		n = len(settled)
		event := audit.Event{Tenant: f.id, Kind: audit.Settled, Actor: "worker/test"}
		for _, l := range settled {
			event.Items = append(event.Items, audit.Item{Action: l.Action, Status: status})
		}
		return audit.Write(ctx, tx, event)
	})
}

// client sends requests with a token and checks every answer against the contract.
type client struct {
	*fixture
	token string
	id    identity.TokenID
	// cookie is that of a session, which is shown in place of the token if not
	// empty.
	cookie string
}

// named returns the actor of the client in the audit log: its token belongs to
// no person.
func (c *client) named(name string) string {
	return string(envelope.NewActor(name, uuid.UUID(c.id), uuid.Nil))
}

// answer is a response.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// into reads the body.
func (a answer) into(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		t.Fatalf("decode %s: %v", a.body, err)
	}
}

// shown is the part of an action that tests compare.
type shown struct {
	Envelope struct {
		ActionID   string `json:"action_id"`
		ExternalID string `json:"external_id"`
		Approval   string
		SessionID  string `json:"session_id"`
		Result     struct {
			Status string
			Output json.RawMessage
		}
	}
	Phase    string
	Policy   struct{ Mode, Source string }
	Decision *struct{ By, Note string }
}

type shownProblem struct {
	Type, Detail, Instance string
	Status                 int
	Errors                 []envelope.FieldError
	Action                 *shown
}

func (a answer) action(t testing.TB) shown {
	t.Helper()
	var s shown
	a.into(t, &s)
	return s
}

func (a answer) problem(t testing.TB) shownProblem {
	t.Helper()
	var p shownProblem
	a.into(t, &p)
	return p
}

// send sends a request. A body that is a string is sent unchanged, any other
// as JSON; header alternates names and values.
func (c *client) send(method, path string, body any, header ...string) answer {
	c.t.Helper()
	a, err := c.trySend(c.t.Context(), method, path, body, header...)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

func (c *client) request(ctx context.Context, method, path string, body any, header ...string) (*http.Request, error) {
	var text io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		text = strings.NewReader(b)
	case csv:
		text = strings.NewReader(string(b))
	case form:
		text = strings.NewReader(string(b))
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			return nil, err
		}
		text = bytes.NewReader(raw)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.url+path, text)
	if err != nil {
		return nil, err
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.cookie != "" {
		r.Header.Set("Cookie", c.cookie)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	switch body.(type) {
	case nil:
	case csv:
		r.Header.Set("Content-Type", "text/csv")
	case form:
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	default:
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r, nil
}

func (c *client) trySend(ctx context.Context, method, path string, body any, header ...string) (answer, error) {
	r, err := c.request(ctx, method, path, body, header...)
	if err != nil {
		return answer{}, err
	}
	res, err := direct().Do(r)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return answer{}, err
	}
	a := answer{res.StatusCode, res.Header, raw}
	c.hold(r, a)
	return a, nil
}

// direct is a client that follows no redirects.
var direct = sync.OnceValue(func() *http.Client {
	return &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
})

// hold compares an answer with the contract.
func (c *client) hold(r *http.Request, a answer) {
	c.t.Helper()
	if a.status >= 400 && bytes.Contains(a.body, []byte(marker)) {
		c.t.Errorf("%s %s: the error repeats the payload: %s", r.Method, r.URL.Path, a.body)
	}
	if a.header.Get("X-Request-Id") == "" || a.header.Get("X-Content-Type-Options") != "nosniff" {
		c.t.Errorf("%s %s: headers are missing: %v", r.Method, r.URL.Path, a.header)
	}
	pattern := patternOf(r)
	if pattern == "" || bytes.Contains(a.body, []byte("unknown path; GET /api/v1/openapi.yaml")) {
		pattern = "GET /healthz" // its default is the problem that every path has
	}
	media, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	schema, err := c.contract.Answer(pattern, a.status, media)
	if err != nil {
		c.t.Errorf("%v: %s", err, a.body)
		return
	}
	if schema == nil {
		if len(a.body) > 0 {
			c.t.Errorf("%s: answer %d has a body", pattern, a.status)
		}
		return
	}
	var doc any = string(a.body)
	if strings.HasSuffix(media, "json") {
		if doc, err = jsonschema.UnmarshalJSON(bytes.NewReader(a.body)); err != nil {
			c.t.Errorf("%s: answer %d is no JSON: %s", pattern, a.status, a.body)
			return
		}
	}
	if err := schema.Validate(doc); err != nil {
		c.t.Errorf("%s: answer %d violates the contract: %v\n%s", pattern, a.status, err, a.body)
	}
}

// routes is a mux of the API's routes, made once for all tests.
var routes = sync.OnceValue(func() *http.ServeMux {
	mux := http.NewServeMux()
	for _, rt := range route.Access() {
		mux.HandleFunc(rt.Pattern, func(http.ResponseWriter, *http.Request) {})
	}
	return mux
})

// patternOf returns the pattern of the route that takes a request.
func patternOf(r *http.Request) string {
	_, pattern := routes().Handler(r)
	return pattern
}

// wants fails the test unless an answer has a status.
func (a answer) wants(t testing.TB, status int) answer {
	t.Helper()
	if a.status != status {
		t.Fatalf("status = %d, want %d: %s", a.status, status, a.body)
	}
	return a
}

// ifMatch is the header for an entity tag, as send takes it.
func ifMatch(tag string) []string { return []string{"If-Match", `"` + tag + `"`} }

// replace replaces the current document.
func (c *client) replace(path string, doc any) answer {
	c.t.Helper()
	now := c.send("GET", path, nil).wants(c.t, http.StatusOK)
	return c.send("PUT", path, doc, "If-Match", now.header.Get("ETag"))
}

type object = map[string]any

// csv is a body of that media type.
type csv string

// form is a body of that media type.
type form string

// proposal is one of a tool of "mail".
func proposal(tool string, args object) object {
	return object{"type": "mcp.exec", "external_id": uuid.NewString(), "tool": object{"source": "mail", "name": tool}, "args": args}
}

// propose submits and returns the action's id.
func (c *client) propose(tool string) string {
	c.t.Helper()
	return c.send("POST", "/api/v1/actions", proposal(tool, object{})).wants(c.t, http.StatusCreated).action(c.t).Envelope.ActionID
}

func path(id string, more ...string) string {
	return "/api/v1/actions/" + id + strings.Join(more, "")
}
