package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
	"github.com/countersign-dev/countersign/internal/telemetry"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/worker"
)

// txTimeout bounds the time that a test waits for an event. Events are read once every
// older transaction of the server has ended, also those of tests of other packages.
const txTimeout = 3 * time.Minute

// The tools of a fixture's source, by their effect class.
const (
	toolRead  = "act.read"
	toolKeyed = "act.keyed"
	toolOnce  = "act.once"
)

// fixture is a tenant with one source, in a database of its own.
type fixture struct {
	t      *testing.T
	url    string
	db     *pgxpool.Pool
	tenant envelope.TenantID
	src    *sourcetest.Source
	in     *intake.Intake
	heard  *pgx.Conn
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	db := dbtest.DBWith(t, told)
	y := &fixture{
		t: t, url: db.Config().ConnString(), db: db,
		tenant: envelope.TenantID(uuid.Must(uuid.NewV7())), src: sourcetest.NewSource(tools("as listed")...),
		in: intake.New(db, settings.NewCache(), intake.Config{}),
	}
	y.exec("INSERT INTO tenants (tenant_id, name) VALUES ($1, 'fixture')", y.tenant.String())
	y.configure(func(ctx context.Context, tx pgx.Tx) error {
		if err := catalog.PutSource(ctx, tx, y.tenant, catalog.Source{ID: "fake", Kind: catalog.KindMCP, Enabled: true, Config: json.RawMessage(`{"url":"https://mcp.example/"}`)}); err != nil {
			return err
		}
		if err := catalog.PutListing(ctx, tx, y.tenant, "fake", tools("as listed")); err != nil {
			return err
		}
		return settings.PutMode(ctx, tx, y.tenant, "", "*", envelope.ModeAllow, "test")
	})
	y.listen()
	return y
}

func tools(description string) []source.Tool {
	var all []source.Tool
	for name, effect := range map[string]envelope.Effect{
		toolRead: envelope.EffectRead, toolKeyed: envelope.EffectKeyed, toolOnce: envelope.EffectOnce,
	} {
		all = append(all, source.Tool{Name: name, Description: description, InputSchema: json.RawMessage(`{"type":"object"}`), Effect: effect})
	}
	return all
}

// told adds notifications of every change of the tables that tests wait for.
const told = `
CREATE FUNCTION countersign_data.tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_notify('changed', ''); RETURN NULL; END $$;
DO $$
DECLARE name text;
BEGIN
	FOREACH name IN ARRAY '{actions,breakers,checkpoints,dead_letters,events,outbox,pauses,retention_checks,session_modes,tool_executions,workflows}'::text[] LOOP
		EXECUTE format('CREATE TRIGGER tell AFTER INSERT OR UPDATE OR DELETE ON %I FOR EACH STATEMENT EXECUTE FUNCTION tell()', name);
	END LOOP;
END $$`

// listen subscribes to the notifications.
func (y *fixture) listen() {
	y.t.Helper()
	conn, err := pgx.Connect(y.t.Context(), y.url)
	if err != nil {
		y.t.Fatal(err)
	}
	y.heard = conn
	y.t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(y.t.Context())) })
	if _, err := conn.Exec(y.t.Context(), "LISTEN changed"); err != nil {
		y.t.Fatal(err)
	}
}

// until waits for a query to be true, asking after each change.
func (y *fixture) until(sql string, args ...any) {
	y.t.Helper()
	ctx, cancel := context.WithTimeout(y.t.Context(), txTimeout)
	defer cancel()
	for !one[bool](y, sql, args...) {
		if _, err := y.heard.WaitForNotification(ctx); err != nil {
			y.t.Fatalf("waited %v for: %s", txTimeout, sql)
		}
	}
}

// empty waits until nothing is on the schedule.
func (y *fixture) empty() {
	y.t.Helper()
	y.until("SELECT NOT EXISTS (SELECT 1 FROM outbox)")
}

func (y *fixture) exec(sql string, args ...any) {
	y.t.Helper()
	if _, err := y.db.Exec(y.t.Context(), sql, args...); err != nil {
		y.t.Fatalf("%s: %v", sql, err)
	}
}

func one[T any](y *fixture, sql string, args ...any) T {
	y.t.Helper()
	var v T
	if err := y.db.QueryRow(y.t.Context(), sql, args...).Scan(&v); err != nil {
		y.t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func (y *fixture) configure(fn func(ctx context.Context, tx pgx.Tx) error) {
	y.t.Helper()
	if err := postgres.InTx(y.t.Context(), y.db, postgres.API(y.tenant), func(tx pgx.Tx) error { return fn(y.t.Context(), tx) }); err != nil {
		y.t.Fatal(err)
	}
}

// submit proposes n calls of a tool.
func (y *fixture) submit(tool string, n int) []envelope.ActionID {
	y.t.Helper()
	return y.submitIn(y.t.Context(), tool, n)
}

func (y *fixture) submitIn(ctx context.Context, tool string, n int) []envelope.ActionID {
	y.t.Helper()
	proposals := make([]*envelope.Proposal, n)
	for i := range proposals {
		proposals[i] = &envelope.Proposal{Type: envelope.TypeExec, Tool: envelope.Tool{Name: tool, Source: "fake"}, Args: json.RawMessage(`{}`)}
	}
	answers, err := y.in.Accept(ctx, intake.Submitter{Tenant: y.tenant, Name: "agent", Names: identity.EveryName()}, proposals)
	if err != nil {
		y.t.Fatal(err)
	}
	ids := make([]envelope.ActionID, n)
	for i, a := range answers {
		if a.Err != nil {
			y.t.Fatal(a.Err)
		}
		ids[i] = a.Action
	}
	return ids
}

// config is for quick tests; every field may be changed.
func config(id string) worker.PipelineConfig {
	metrics, err := telemetry.NewMetrics(noop.Meter{})
	if err != nil {
		panic(err)
	}
	return worker.PipelineConfig{
		ID: id, Concurrency: 50, Lease: time.Minute, Poll: 20 * time.Millisecond, Grace: txTimeout,
		Retry: outbox.Retry{Base: time.Millisecond, Cap: 2 * time.Millisecond}, Metrics: metrics,
	}
}

// pipeline returns a worker whose calls go to src.
func (y *fixture) pipeline(db *pgxpool.Pool, src source.Source, cfg worker.PipelineConfig) *worker.Pipeline {
	return worker.NewPipeline(db, settings.NewCache(), y.live(src), cfg)
}

func (y *fixture) live(src source.Source) *connection.Pool {
	return connection.NewPool(connection.Config{Open: func(envelope.TenantID, catalog.Source) (source.Source, error) { return src, nil }})
}

// runs is anything that works until its context is over.
type runs interface {
	Run(ctx context.Context) error
}

// run starts a worker. The function that it returns stops it and waits; the
// end of the test does too.
func (y *fixture) run(w runs) (stop func()) {
	y.t.Helper()
	cancel, wait := y.start(w)
	return func() {
		cancel()
		wait()
	}
}

// start runs w in a goroutine. cancel stops it, and wait waits for its end.
func (y *fixture) start(w runs) (cancel, wait func()) {
	y.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(y.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }() // waited for by wait
	wait = sync.OnceFunc(func() {
		select {
		case err := <-ended:
			if err != nil {
				y.t.Errorf("Run = %v", err)
			}
		case <-time.After(txTimeout):
			y.t.Errorf("Run does not end")
		}
	})
	y.t.Cleanup(func() {
		cancel()
		wait()
	})
	return cancel, wait
}

// work runs one worker until nothing is on the schedule, and stops it.
func (y *fixture) work() {
	y.t.Helper()
	stop := y.run(y.pipeline(y.db, y.src, config("w1")))
	y.empty()
	stop()
}

func (y *fixture) view(id envelope.ActionID) outbox.View {
	y.t.Helper()
	var views []outbox.View
	y.configure(func(ctx context.Context, tx pgx.Tx) (err error) {
		views, err = outbox.Get(ctx, tx, y.tenant, id)
		return err
	})
	if len(views) != 1 {
		y.t.Fatalf("Get(%s) has %d envelopes", id, len(views))
	}
	return views[0]
}

// history returns the attempts of an action in short: "1 pending unreachable".
func (y *fixture) history(id envelope.ActionID) []string {
	y.t.Helper()
	var lines []string
	y.configure(func(ctx context.Context, tx pgx.Tx) error {
		rows, err := outbox.Attempts(ctx, tx, y.tenant, id)
		for _, r := range rows {
			line := fmt.Sprintf("%d %s", r.Attempt, r.Status)
			if r.Code != "" {
				line += " " + r.Code
			}
			lines = append(lines, line)
		}
		return err
	})
	return lines
}

// barrier holds calls: each reports its arrival, and ends when released.
type barrier struct {
	arrived chan source.Call
	open    chan struct{}
}

func newBarrier() *barrier {
	return &barrier{arrived: make(chan source.Call, 1000), open: make(chan struct{})}
}

// hold is a step for executortest.Source.On.
func (g *barrier) hold(_ context.Context, call source.Call) sourcetest.Step {
	g.arrived <- call
	step := sourcetest.Done("")
	step.Wait = g.open
	return step
}

// wait returns the next call that arrives.
func (g *barrier) wait(t *testing.T) source.Call {
	t.Helper()
	select {
	case call := <-g.arrived:
		return call
	case <-time.After(txTimeout):
		t.Fatal("no call arrived")
		return source.Call{}
	}
}

// key is the fake source's key of an envelope.
func (y *fixture) key(id envelope.ActionID) string {
	return outbox.Lease{Tenant: y.tenant, Action: id}.Key()
}

func (y *fixture) effects(id envelope.ActionID) int { return y.src.Effects(y.key(id)) }
