package worker_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/search"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/pause"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/worker/background"
)

// node is a part of a plan as auto_explain writes it.
type node struct {
	Type      string  `json:"Node Type"`
	Relation  string  `json:"Relation Name"`
	Rows      float64 `json:"Actual Rows"`
	Loops     float64 `json:"Actual Loops"`
	Filtered  float64 `json:"Rows Removed by Filter"`
	Rechecked float64 `json:"Rows Removed by Index Recheck"`
	Joined    float64 `json:"Rows Removed by Join Filter"`
	Plans     []node  `json:"Plans"`
}

// explained is a statement that was executed, with its plan.
type explained struct {
	Query string `json:"Query Text"`
	Plan  node   `json:"Plan"`
}

// TestHotStatementsReadOnlyWhatTheyReturn runs the statements of an envelope
// with the worst statistics, with a short and with a long backlog, and checks
// the plans that PostgreSQL used.
func TestHotStatementsReadOnlyWhatTheyReturn(t *testing.T) {
	t.Parallel()
	for _, behind := range []int{0, 50_000} {
		t.Run(fmt.Sprintf("%d behind", behind), func(t *testing.T) {
			t.Parallel()
			y := newPlanFixture(t)
			// An outbox that had more rows: its statistics have few rows in many pages.
			y.fill(10, 300)
			y.exec("DELETE FROM outbox WHERE ctid < (SELECT ctid FROM outbox ORDER BY ctid DESC OFFSET 2 LIMIT 1)")
			y.exec("VACUUM outbox")
			y.analyse()
			db, plans := y.explainer()
			defer db.Close()
			y.checkPlansOn(db, plans, "small tables")
			y.fill(10_000, behind)

			y.checkPlansOn(db, plans, "plans for small tables")
			y.checkPlans("stale statistics")
			y.analyse()
			y.checkPlans("fresh statistics")
			y.forget()
			y.checkPlans("no statistics")
		})
	}
	t.Run("new database", func(t *testing.T) {
		t.Parallel()
		y := newPlanFixture(t)
		// The index on external ids has one level more than that on ids.
		y.fill(10, 100)
		y.forget()
		db, plans := y.explainer()
		defer db.Close()
		y.checkPlansOn(db, plans, "first plans")
		y.fill(1000, 0)

		y.checkPlansOn(db, plans, "first plans in larger tables")
	})
}

// newPlanFixture returns a fixture whose hot tables are never analysed by themselves.
func newPlanFixture(t *testing.T) *fixture {
	t.Helper()
	y := newFixture(t)
	y.exec("DROP FUNCTION tell CASCADE")
	for _, table := range y.hot() {
		y.exec("ALTER TABLE " + table + " SET (autovacuum_enabled = off)")
	}
	return y
}

// forget deletes the statistics of the hot tables.
func (y *fixture) forget() {
	for _, table := range y.hot() {
		y.exec("DELETE FROM pg_statistic WHERE starelid = $1::text::regclass", table)
		y.exec("UPDATE pg_class SET reltuples = -1, relpages = 0, relallvisible = 0 WHERE oid IN ($1::text::regclass) OR oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = $1::text::regclass)", table)
	}
}

// hot are the tables that must never be read as a whole, with partitions.
func (y *fixture) hot() []string {
	tables := []string{"actions", "outbox", "dead_letters"}
	rows, err := y.db.Query(y.t.Context(), "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'tool_executions'::regclass")
	if err != nil {
		y.t.Fatal(err)
	}
	partitions, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		y.t.Fatal(err)
	}
	return append(tables, partitions...)
}

func (y *fixture) analyse() {
	for _, table := range y.hot() {
		y.exec("ANALYZE " + table)
	}
}

// fill adds envelopes that have ended, and some that have been due for long.
func (y *fixture) fill(past, behind int) {
	y.t.Helper()
	const action = `INSERT INTO actions (tenant_id, action_id, external_id, content_digest, source_id, tool_name, args, risk, effect, decision_id, config_version,
			tool_digest, approval_state, bucket_id, max_attempts)
		SELECT $1, gen_random_uuid(), encode(sha256(gen_random_uuid()::text::bytea), 'hex') || ':000000000001', '', 'fake', 'act.once', '{}', 'low', 'once', $1, 1, '', 'auto', $3, 5 FROM generate_series(1, $2) RETURNING action_id`
	y.exec("INSERT INTO buckets (tenant_id, name) VALUES ($1, 'default') ON CONFLICT DO NOTHING", y.tenant.String())
	bucket := one[int64](y, "SELECT bucket_id FROM buckets WHERE name = 'default'")
	y.exec(`WITH past AS (`+action+`) INSERT INTO tool_executions (tenant_id, action_id, attempt, status, finished_at)
		SELECT $1, action_id, 1, 'sent', now() FROM past`, y.tenant.String(), past, bucket)
	y.exec(`WITH waiting AS (`+action+`) INSERT INTO outbox (tenant_id, action_id, bucket_id, next_attempt_at, max_attempts)
		SELECT $1, action_id, $3, now() - interval '1 hour' + row_number() OVER () * interval '1 millisecond', 5 FROM waiting`, y.tenant.String(), behind, bucket)
}

// checkPlans is checkPlansOn for new connections, which plan every statement.
func (y *fixture) checkPlans(when string) {
	y.t.Helper()
	db, plans := y.explainer()
	defer db.Close()
	y.checkPlansOn(db, plans, when)
}

// checkPlansOn runs a batch of envelopes and checks each plan.
func (y *fixture) checkPlansOn(db *pgxpool.Pool, plans *[]explained, when string) {
	y.t.Helper()
	const batch = 200
	in := intake.New(db, settings.NewCache(), intake.Config{})
	proposals := make([]*envelope.Proposal, batch)
	for i := range proposals {
		proposals[i] = &envelope.Proposal{
			Type: envelope.TypeExec, ExternalID: uuid.NewString(), Tool: envelope.Tool{Name: toolOnce, Source: "fake"}, Args: json.RawMessage(`{}`),
		}
	}
	step := func(name string, returned int, fn func(ctx context.Context) error) {
		y.t.Helper()
		*plans = nil
		if err := fn(y.t.Context()); err != nil {
			y.t.Fatalf("%s: %v", name, err)
		}
		looked := false
		for _, e := range *plans {
			looked = e.check(y.t, when+", "+name, returned) || looked
		}
		if !looked {
			y.t.Errorf("%s, %s: no statement was seen on the hot tables", when, name)
		}
	}
	inWorker := func(fn func(ctx context.Context, tx pgx.Tx) error) func(context.Context) error {
		return func(ctx context.Context) error {
			return postgres.InTx(ctx, db, postgres.Worker().Planned(), func(tx pgx.Tx) error { return fn(ctx, tx) })
		}
	}

	var called envelope.ActionID
	step("accept a call", 1, func(ctx context.Context) error {
		by := intake.Submitter{Tenant: y.tenant, Name: "agent", Base: "mcp:" + uuid.NewString() + ":"}
		answers, err := in.Accept(ctx, by, []*envelope.Proposal{{Type: envelope.TypeExec, Tool: envelope.Tool{Name: toolOnce, Source: "fake"}, Args: json.RawMessage(`{}`)}})
		if err == nil {
			called, err = answers[0].Action, answers[0].Err
		}
		return err
	})
	reader := outbox.NewReader(db)
	read := func(ctx context.Context) error {
		_, found, err := reader.Get(ctx, y.tenant, called)
		if err == nil && !found {
			err = errors.New("the action was not found")
		}
		return err
	}
	step("read a call", 1, read)
	for _, name := range []string{"accept", "accept again"} {
		step(name, batch, func(ctx context.Context) error {
			_, err := in.Accept(ctx, intake.Submitter{Tenant: y.tenant, Name: "agent"}, proposals)
			return err
		})
	}
	// Events count as committed before all transactions that are open, and the index is due.
	y.exec("UPDATE events SET txid = '1'")
	y.exec("UPDATE action_word_cursors SET next_at = now()")
	step("index", batch, func(ctx context.Context) error {
		more, err := search.Step(ctx, db)
		if err == nil && !more {
			err = errors.New("nothing was indexed")
		}
		return err
	})
	var due []outbox.DueBucket
	step("look", 1, inWorker(func(ctx context.Context, tx pgx.Tx) (err error) {
		due, err = outbox.DueBuckets(ctx, tx, 0, 256)
		return err
	}))
	if len(due) != 1 || due[0].DueIn > 0 {
		y.t.Fatalf("Look = %+v, want one bucket that is due", due)
	}
	y.exec("UPDATE outbox SET awaited = action_id::text < '8'")
	const passing = 20
	step("claim awaited", passing, func(ctx context.Context) error {
		rolledBack := errors.New("rolled back")
		err := inWorker(func(ctx context.Context, tx pgx.Tx) error {
			passed, err := outbox.Claim(ctx, tx, outbox.Mark{}, []outbox.ClaimRequest{{Bucket: due[0].Bucket, From: due[0].From, AwaitedFrom: due[0].From, Quota: passing}}, time.Minute)
			if err == nil && len(passed) < passing-2 {
				err = fmt.Errorf("claimed %d, want %d but for 2 that are due in both orders", len(passed), passing)
			}
			return cmp.Or(err, rolledBack)
		})(ctx)
		if errors.Is(err, rolledBack) {
			return nil
		}
		return err
	})
	var items []outbox.Item
	step("claim", batch, inWorker(func(ctx context.Context, tx pgx.Tx) (err error) {
		items, err = outbox.Claim(ctx, tx, outbox.Mark{}, []outbox.ClaimRequest{{Bucket: due[0].Bucket, From: due[0].From, Quota: batch}}, time.Minute)
		return err
	}))
	if len(items) != batch {
		y.t.Fatalf("Claim has %d items, want %d", len(items), batch)
	}
	leases := make([]outbox.Lease, batch)
	const part = batch / 4
	var final, back []outbox.Settlement
	var returned []outbox.ApprovalReturn
	for i, it := range items {
		leases[i] = it.Lease
		switch {
		case i < batch-2*part:
			final = append(final, outbox.Settlement{Lease: it.Lease, Status: envelope.StatusFailed, Attempt: 1, DeadLetter: outbox.Refused, Code: "rejected"})
		case i < batch-part:
			back = append(back, outbox.Settlement{Lease: it.Lease, Status: envelope.StatusPending, Attempt: 1, Delay: 2 * time.Hour})
		default:
			returned = append(returned, outbox.ApprovalReturn{Lease: it.Lease, ToolDigest: []byte{}, Needed: 1, Wait: time.Hour})
		}
	}
	step("return to approval", part, inWorker(func(ctx context.Context, tx pgx.Tx) error {
		moved, err := outbox.ReturnToApproval(ctx, tx, returned)
		if len(moved) != part {
			y.t.Errorf("%d returned to approval, want %d", len(moved), part)
		}
		return err
	}))
	leases = leases[:batch-part]
	step("start", len(leases), inWorker(func(ctx context.Context, tx pgx.Tx) error {
		_, err := outbox.Start(ctx, tx, outbox.Mark{}, leases, time.Minute)
		return err
	}))
	step("renew", len(leases), inWorker(func(ctx context.Context, tx pgx.Tx) error {
		_, err := outbox.Renew(ctx, tx, leases, time.Minute)
		return err
	}))
	for name, settlements := range map[string][]outbox.Settlement{"settle for good": final, "settle back": back} {
		step(name, len(settlements), inWorker(func(ctx context.Context, tx pgx.Tx) error {
			settled, err := outbox.Settle(ctx, tx, outbox.Mark{}, "w1", settlements)
			if len(settled) != len(settlements) {
				y.t.Errorf("%s: %d settled, want %d", name, len(settled), len(settlements))
			}
			return err
		}))
	}
	if one[int](y, "SELECT count(*) FROM outbox") < 10_000 { // sweeps read all of them
		y.checkSweeps(in, step, func(ctx context.Context) error { return background.Sweep(ctx, db, func() {}) })
	}
	y.exec("DELETE FROM outbox WHERE action_id = $1", called)
	y.exec("INSERT INTO tool_executions (tenant_id, action_id, attempt, status, finished_at) VALUES ($1, $2, 1, 'sent', now())", y.tenant, called)
	step("read an ended action", 1, read)
}

// checkSweeps checks the plans of a kill and of the end of a pause, both of an employee
// with some of the outbox's actions.
func (y *fixture) checkSweeps(in *intake.Intake, step func(string, int, func(context.Context) error), sweep func(context.Context) error) {
	y.t.Helper()
	const each = 100
	for _, kill := range []bool{true, false} {
		of := pause.Target{Scope: pause.Employee, Subject: newEmployee().String()}
		proposals := make([]*envelope.Proposal, each)
		for i := range proposals {
			proposals[i] = &envelope.Proposal{Type: envelope.TypeExec, EmployeeID: envelope.EmployeeID(uuid.MustParse(of.Subject)), Tool: envelope.Tool{Name: toolOnce, Source: "fake"}, Args: json.RawMessage(`{}`)}
		}
		if _, err := in.Accept(y.t.Context(), intake.Submitter{Tenant: y.tenant, Name: "agent", Reserved: true}, proposals); err != nil {
			y.t.Fatal(err)
		}
		y.pause(of, kill)
		name := "kill"
		if !kill {
			name = "resume"
			y.exec("UPDATE outbox o SET waits_for = 'paused', next_attempt_at = 'infinity' FROM actions a WHERE a.action_id = o.action_id AND a.employee_id = $1", of.Subject)
			y.resume(of)
		}
		step(name, one[int](y, "SELECT count(*) FROM outbox"), sweep)
	}
}

// explainer returns a pool that has every plan written down.
func (y *fixture) explainer() (*pgxpool.Pool, *[]explained) {
	y.t.Helper()
	plans := new([]explained)
	cfg, err := pgxpool.ParseConfig(y.url)
	if err != nil {
		y.t.Fatal(err)
	}
	cfg.MaxConns = 1
	cfg.ConnConfig.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		_, text, ok := strings.Cut(n.Message, "plan:\n")
		var e explained
		if ok && json.Unmarshal([]byte(text), &e) == nil {
			*plans = append(*plans, e)
		}
	}
	cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `LOAD 'auto_explain'; SET plan_cache_mode = auto; SET auto_explain.log_min_duration = 0; SET auto_explain.log_analyze = on;
			SET auto_explain.log_timing = off; SET auto_explain.log_format = json; SET auto_explain.log_level = notice`)
		return err
	}
	db, err := pgxpool.NewWithConfig(y.t.Context(), cfg)
	if err != nil {
		y.t.Fatal(err)
	}
	return db, plans
}

// check checks one statement's plan. It reports whether hot tables are in it.
func (e explained) check(t *testing.T, when string, returned int) bool {
	t.Helper()
	const times, few = 4, 8
	read, thrown, touched := 0.0, 0.0, false
	var visit func(n node)
	visit = func(n node) {
		switch n.Type {
		case "Seq Scan":
			if isHot(n.Relation) {
				t.Errorf("%s: %s on %s in\n%s", when, n.Type, n.Relation, e.Query)
			}
		case "Hash Join", "Merge Join":
			if n.has() {
				t.Errorf("%s: %s of a hot table in\n%s", when, n.Type, e.Query)
			}
		}
		if isHot(n.Relation) {
			touched = true
			if strings.HasSuffix(n.Type, "Scan") {
				read += (n.Rows + n.Filtered + n.Rechecked) * n.Loops
			}
		}
		// Pairs that a join makes and throws away are the square of a batch.
		thrown += n.Joined * n.Loops
		for _, child := range n.Plans {
			visit(child)
		}
	}
	visit(e.Plan)
	if most := float64(times*returned + few); read > most || thrown > most {
		t.Errorf("%s: %.0f rows were read and %.0f pairs thrown away to return %d, want at most %.0f, in\n%s", when, read, thrown, returned, most, e.Query)
	}
	return touched
}

// has reports whether a hot table is below a node.
func (n node) has() bool { return isHot(n.Relation) || slices.ContainsFunc(n.Plans, node.has) }

func isHot(relation string) bool {
	return relation == "actions" || relation == "outbox" || strings.HasPrefix(relation, "tool_executions")
}
