package execution_test

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/insight/execution"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

// archive is a tenant with many executions.
type archive struct {
	t      *testing.T
	db     *pgxpool.Pool
	tenant envelope.TenantID
	began  time.Time
}

func newArchive(t *testing.T) *archive {
	t.Helper()
	a := &archive{t: t, db: dbtest.DB(t), tenant: envelope.TenantID(uuid.Must(uuid.NewV7())), began: time.Now().Add(-24 * time.Hour)}
	for _, table := range []string{"actions", "dry_runs"} {
		a.exec("ALTER TABLE " + table + " SET (autovacuum_enabled = off)")
	}
	a.exec("INSERT INTO tenants (tenant_id, name) VALUES ($1::uuid, 't-' || $1::uuid::text)", a.tenant.String())
	a.exec("INSERT INTO decisions (tenant_id, decision_id, mode, mode_source, trace) VALUES ($1, $1, 'allow', 's', '[]')", a.tenant.String())
	return a
}

func (a *archive) exec(sql string, args ...any) {
	a.t.Helper()
	if _, err := a.db.Exec(a.t.Context(), sql, args...); err != nil {
		a.t.Fatalf("%s: %v", sql, err)
	}
}

// id returns the id of the n-th execution in order of time.
func (a *archive) id(n int) envelope.ActionID {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:8], uint64(a.began.Add(time.Duration(n)*time.Second).UnixMilli())<<16|0x7000)
	binary.BigEndian.PutUint64(id[8:], 1<<63|uint64(n))
	return envelope.ActionID(id)
}

// fill adds successful executions from one number to before another, one per
// second.
func (a *archive) fill(from, until int) {
	a.t.Helper()
	ids := make([]string, 0, until-from)
	for n := from; n < until; n++ {
		ids = append(ids, a.id(n).String())
	}
	a.exec(`WITH past AS (
			INSERT INTO actions (tenant_id, action_id, content_digest, source_id, tool_name, args, risk, effect, decision_id, config_version,
				tool_digest, approval_state, bucket_id, max_attempts, session_id, origin, created_at)
			SELECT $1, w.id, '', 'mail', 'send', '{}', 'low', 'once', $1, 1, '', 'auto', 1, 5, 's-one', '{"via":"api"}', $3::timestamptz + w.n * interval '1 second'
			FROM unnest($2::uuid[]) WITH ORDINALITY w (id, n)
			RETURNING tenant_id, action_id)
		INSERT INTO tool_executions (tenant_id, action_id, attempt, status, started_at, finished_at)
		SELECT p.tenant_id, p.action_id, 1, 'sent', now(), now() FROM past p`, a.tenant.String(), ids, a.began)
}

func (a *archive) insertDryRun(n int) {
	a.t.Helper()
	a.exec(`INSERT INTO dry_runs (tenant_id, execution_id, content_digest, source_id, tool_name, args, risk, effect, mode, mode_source, trace, preview)
		VALUES ($1, $2, '', 'mail', 'send', '{}', 'low', 'once', 'allow', 's', '[]', '{}')`, a.tenant.String(), a.id(n).String())
}

// list reads a page. It also returns the number of rows of actions that were
// read by an index, and without one.
func (a *archive) list(f execution.Filter) (p execution.Page, read, whole int64) {
	a.t.Helper()
	err := postgres.InTx(a.t.Context(), a.db, postgres.API(a.tenant), func(tx pgx.Tx) error {
		ctx := context.WithoutCancel(a.t.Context())
		readBefore, wholeBefore, err := rowsRead(ctx, tx)
		if err != nil {
			return err
		}
		if p, err = execution.List(ctx, tx, a.tenant, f); err != nil {
			return err
		}
		read, whole, err = rowsRead(ctx, tx)
		read, whole = read-readBefore, whole-wholeBefore
		return err
	})
	if err != nil {
		a.t.Fatal(err)
	}
	return p, read, whole
}

// rowsRead returns the number of rows that this connection has read by an index,
// and without one.
func rowsRead(ctx context.Context, tx pgx.Tx) (read, whole int64, err error) {
	err = tx.QueryRow(ctx, `SELECT coalesce(sum(s.idx_tup_fetch), 0)::bigint, coalesce(sum(s.seq_tup_read), 0)::bigint
		FROM pg_stat_xact_all_tables s WHERE s.relname IN ('actions', 'dry_runs') OR s.relname LIKE 'tool_executions%'`).Scan(&read, &whole)
	return read, whole, err
}

// all reads the whole log. It also returns the number of pages.
func (a *archive) all(f execution.Filter) (ids []envelope.ActionID, pages int) {
	a.t.Helper()
	for {
		p, _, _ := a.list(f)
		pages++
		for _, e := range p.Items {
			ids = append(ids, e.ID)
		}
		if p.Next == nil {
			return ids, pages
		}
		f.Before = *p.Next
	}
}

// TestFilterScansABoundedNumberOfRows searches for old executions, without
// statistics for the planner.
func TestFilterScansABoundedNumberOfRows(t *testing.T) {
	t.Parallel()
	const past, bound = 12_000, 10_000
	a := newArchive(t)
	a.fill(0, past)
	a.exec("UPDATE tool_executions SET status = 'failed', code = 'http_400' WHERE action_id = $1", a.id(3).String())
	a.exec("UPDATE actions SET session_id = 's-two', workflow_id = $2 WHERE action_id = $1", a.id(5).String(), a.id(0).String())
	for name, test := range map[string]struct {
		filter execution.Filter
		want   int
		// most is the maximum number of rows that a page may read: each action
		// and its end.
		most int64
	}{
		"how it ended":    {execution.Filter{Status: wire.ExecutionError}, 3, 5 * bound},
		"its code":        {execution.Filter{Code: "http_400"}, 3, 5 * bound},
		"who asked":       {execution.Filter{Session: "s-two"}, 5, 2*past + 50},
		"an early time":   {execution.Filter{Until: a.began.Add(6 * time.Second), Session: "s-two", Since: a.began}, -1, 2*past + 50},
		"its batch":       {execution.Filter{Workflow: uuid.UUID(a.id(0))}, 5, 50},
		"nothing at all":  {execution.Filter{IP: "192.0.2.1"}, -1, 2*past + 50},
		"a dry run":       {execution.Filter{Status: wire.ExecutionDryRun}, -1, 0},
		"another's batch": {execution.Filter{Workflow: uuid.New()}, -1, 0},
	} {
		f := test.filter
		f.Limit = 10

		_, read, whole := a.list(f)
		got, pages := a.all(f)

		if read > test.most || whole > 0 {
			t.Errorf("%s: a page read %d rows by an index and %d without one, want at most %d and none", name, read, whole, test.most)
		}
		if test.want < 0 && len(got) > 0 || test.want >= 0 && (len(got) != 1 || got[0] != a.id(test.want)) {
			t.Errorf("%s: found %v in %d pages, want execution %d", name, got, pages, test.want)
		}
	}
}

// TestPagesAreCompleteWithoutDuplicates mixes dry runs with actions.
func TestPagesAreCompleteWithoutDuplicates(t *testing.T) {
	t.Parallel()
	const past = 1_500
	a := newArchive(t)
	a.fill(0, past)
	a.exec("UPDATE actions SET session_id = 's-two' WHERE action_id = ANY ($1::uuid[])", []string{a.id(2).String(), a.id(700).String(), a.id(past - 1).String()})
	var dryRuns []envelope.ActionID
	for _, n := range []int{past + 5, past + 4, past + 3, past + 2, past + 1} {
		a.insertDryRun(n)
		dryRuns = append(dryRuns, a.id(n))
	}
	a.fill(past+6, past+20)

	every, _ := a.all(execution.Filter{Limit: 97})
	only, _ := a.all(execution.Filter{Limit: 2, Status: wire.ExecutionDryRun})
	two, _ := a.all(execution.Filter{Limit: 2, Session: "s-two"})

	if len(every) != past+14+len(dryRuns) {
		t.Errorf("all pages hold %d executions, want %d", len(every), past+14+len(dryRuns))
	}
	for i := 1; i < len(every); i++ {
		if every[i-1].String() <= every[i].String() {
			t.Fatalf("execution %d, %s, comes after %s", i, every[i], every[i-1])
		}
	}
	if len(only) != len(dryRuns) || len(two) != 3 {
		t.Errorf("%d dry runs and %d of the session, want %d and 3", len(only), len(two), len(dryRuns))
	}
}
