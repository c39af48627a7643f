package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/workflow"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// toolServer is an MCP server that creates and deletes things. A held call has
// its effect, but is not answered until it is released.
type toolServer struct {
	mu     sync.Mutex
	things map[string]bool
	calls  []string
	holds  map[string]*hold
}

type hold struct{ reached, release chan struct{} }

func (y *toolServer) hold(call string) *hold {
	h := &hold{make(chan struct{}), make(chan struct{})}
	y.holds[call] = h
	return h
}

func (y *toolServer) serve(t *testing.T) (url string) {
	s := mcp.NewServer(&mcp.Implementation{Name: "things", Version: "1"}, nil)
	schema := json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`)
	for _, tool := range []string{"make", "unmake", "refuse"} {
		s.AddTool(&mcp.Tool{Name: tool, InputSchema: schema}, y.call)
	}
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(server.Close)
	return server.URL
}

func (y *toolServer) call(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var args struct{ Name string }
	if err := json.Unmarshal(req.Params.Arguments, &args); err != nil {
		return nil, err
	}
	call := req.Params.Name + " " + args.Name
	y.mu.Lock()
	y.calls = append(y.calls, call)
	switch req.Params.Name {
	case "make":
		y.things[args.Name] = true
	case "unmake":
		delete(y.things, args.Name)
	}
	h := y.holds[call]
	delete(y.holds, call)
	y.mu.Unlock()
	if h != nil {
		close(h.reached)
		select {
		case <-h.release:
		case <-ctx.Done():
		}
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "ok"}}, IsError: req.Params.Name == "refuse"}, nil
}

// setUpTools creates a tenant with the server as its source. Creation has a
// reversal, and calls may be repeated.
func setUpTools(t *testing.T, pool *pgxpool.Pool, url string) envelope.TenantID {
	t.Helper()
	tenant := envelope.TenantID(uuid.Must(uuid.NewV7()))
	config, err := json.Marshal(connection.MCPConfig{Transport: "http", URL: url})
	if err != nil {
		t.Fatal(err)
	}
	in := func(fn func(ctx context.Context, tx pgx.Tx) error) {
		t.Helper()
		if err := postgres.InTx(t.Context(), pool, postgres.Admin(), func(tx pgx.Tx) error { return fn(t.Context(), tx) }); err != nil {
			t.Fatal(err)
		}
	}
	in(func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO tenants (tenant_id, name) VALUES ($1, 'saga')", tenant.String()); err != nil {
			return err
		}
		if err := settings.PutMode(ctx, tx, tenant, "", "*", envelope.ModeAllow, "test"); err != nil {
			return err
		}
		return catalog.PutSource(ctx, tx, tenant, catalog.Source{ID: "things", Kind: catalog.KindMCP, Config: config, Enabled: true})
	})
	log := slog.New(slog.DiscardHandler)
	live := connection.NewPool(connection.Config{Networks: safehttp.Loopback()})
	t.Cleanup(live.Close)
	if err := connection.NewRefresher(pool, settings.NewCache(), live, log).Refresh(t.Context(), tenant, "things"); err != nil {
		t.Fatal(err)
	}
	in(func(ctx context.Context, tx pgx.Tx) error {
		reversal := &catalog.Reversal{Tool: policy.Key{Source: "things", Action: "unmake"}, Args: json.RawMessage(`{"name":"$inputs/name"}`)}
		for tool, effect := range map[string]envelope.Effect{
			"make": envelope.EffectIdempotent, "unmake": envelope.EffectIdempotent, "refuse": envelope.EffectOnce,
		} {
			key := policy.Key{Source: "things", Action: tool}
			if err := catalog.ConfigureTool(ctx, tx, tenant, key, catalog.Overrides{Effect: effect}); err != nil {
				return err
			}
			if tool == "unmake" {
				continue
			}
			if err := catalog.DescribeTool(ctx, tx, tenant, key, catalog.Description{Reversal: reversal}); err != nil {
				return err
			}
		}
		return nil
	})
	return tenant
}

// fixture runs one worker process at a time.
type fixture struct {
	t        *testing.T
	ctx      context.Context
	url      string
	pool     *pgxpool.Pool
	listener *pgx.Conn
	worker   *exec.Cmd
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	st := &fixture{t: t, ctx: ctx, url: dbtest.URL(t)}
	var err error
	if st.pool, err = postgres.Open(ctx, postgres.Config{URL: st.url}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.pool.Close)
	if st.listener, err = pgx.Connect(ctx, st.url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.listener.Close(context.WithoutCancel(t.Context())) })
	for _, statement := range []string{
		"CREATE FUNCTION countersign_data.tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_notify('changed', ''); RETURN NULL; END $$",
		"CREATE TRIGGER tell AFTER DELETE ON outbox FOR EACH STATEMENT EXECUTE FUNCTION tell()",
		"CREATE TRIGGER tell AFTER UPDATE ON workflows FOR EACH STATEMENT EXECUTE FUNCTION tell()",
	} {
		if _, err := st.pool.Exec(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := st.listener.Exec(ctx, "LISTEN changed"); err != nil {
		t.Fatal(err)
	}
	return st
}

// until waits for a fact of the database.
func (st *fixture) until(query string, args ...any) {
	st.t.Helper()
	for {
		var is bool
		if err := st.pool.QueryRow(st.ctx, query, args...).Scan(&is); err != nil {
			st.t.Fatal(err)
		}
		if is {
			return
		}
		if _, err := st.listener.WaitForNotification(st.ctx); err != nil {
			st.t.Fatalf("waiting for %s: %v", query, err)
		}
	}
}

func (st *fixture) reaches(h *hold, what string) {
	st.t.Helper()
	select {
	case <-h.reached:
	case <-st.ctx.Done():
		st.t.Fatalf("nobody comes to %s", what)
	}
}

// kill ends the worker as the kernel does when memory is short.
func (st *fixture) kill() {
	st.t.Helper()
	if err := st.worker.Process.Kill(); err != nil {
		st.t.Fatal(err)
	}
	_ = st.worker.Wait() // the error reports the kill
}

// killBetweenSteps ends the held step, and kills the worker before any worker
// has advanced the workflow.
func (st *fixture) killBetweenSteps(id workflow.ID, h *hold) {
	st.t.Helper()
	tx, err := st.pool.Begin(st.ctx)
	if err != nil {
		st.t.Fatal(err)
	}
	defer func() {
		if err := tx.Rollback(context.WithoutCancel(st.ctx)); err != nil {
			st.t.Error(err)
		}
	}()
	if _, err := tx.Exec(st.ctx, "SELECT 1 FROM workflows WHERE workflow_id = $1 FOR UPDATE", id.String()); err != nil {
		st.t.Fatal(err)
	}
	close(h.release)
	st.until("SELECT NOT EXISTS (SELECT FROM outbox)")
	st.kill()
}

// TestAnAtomicBatchSurvivesKills kills each worker process: in the middle of a
// step, between two steps, in the middle of a reversal, and between two
// reversals. In the end every effect is reverted, and no step or reversal was
// proposed twice.
func TestAnAtomicBatchSurvivesKills(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	y := &toolServer{things: make(map[string]bool), holds: make(map[string]*hold)}
	making, made := y.hold("make b"), y.hold("make c")
	unmaking, unmade := y.hold("unmake c"), y.hold("unmake b")
	tenant := setUpTools(t, st.pool, y.serve(t))
	r := workflow.Request{Atomic: true, ExternalID: "saga"}
	for _, step := range [][2]string{{"make", "a"}, {"make", "b"}, {"make", "c"}, {"refuse", "d"}} {
		r.Steps = append(r.Steps, workflow.StepRequest{Tool: "things:" + step[0], Inputs: json.RawMessage(`{"name":"` + step[1] + `"}`)})
	}
	id, _, err := workflow.NewService(st.pool, settings.NewCache(), func() {}).Submit(t.Context(), intake.Submitter{Tenant: tenant, Name: "agent"}, r)
	if err != nil {
		t.Fatal(err)
	}

	st.worker = start(t, st.url)
	st.reaches(making, "the second step")
	st.kill()
	st.worker = start(t, st.url)
	st.reaches(made, "the third step")
	st.killBetweenSteps(id, made)
	st.worker = start(t, st.url)
	st.reaches(unmaking, "the first reversal")
	st.kill()
	st.worker = start(t, st.url)
	st.reaches(unmade, "the second reversal")
	st.killBetweenSteps(id, unmade)
	st.worker = start(t, st.url)
	st.until("SELECT state = 'reverted' FROM workflows WHERE workflow_id = $1", id.String())

	y.mu.Lock()
	defer y.mu.Unlock()
	want := []string{"make a", "make b", "make b", "make c", "refuse d", "unmake c", "unmake c", "unmake b", "unmake a"}
	if diff := cmp.Diff(want, y.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if len(y.things) > 0 {
		t.Errorf("what is left: %v", y.things)
	}
	var envelopes int
	if err := st.pool.QueryRow(t.Context(), "SELECT count(1) FROM actions WHERE workflow_id = $1", id.String()).Scan(&envelopes); err != nil || envelopes != 7 {
		t.Errorf("%d envelopes, %v; want 4 steps and 3 reversals", envelopes, err)
	}
}
