package retention_test

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/tenant/retention"
)

// fixture is a database with old data.
type fixture struct {
	t  *testing.T
	db *pgxpool.Pool
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	c := fixture{t, dbtest.DB(t)}
	for _, month := range []string{"202501", "202502", "202503"} {
		c.exec("CREATE TABLE countersign_data.tool_executions_" + month + " PARTITION OF tool_executions FOR VALUES FROM ('" +
			month[:4] + "-" + month[4:] + "-01 00:00:00+00') TO (('" + month[:4] + "-" + month[4:] + "-01 00:00:00+00')::timestamptz + interval '1 month')")
		c.exec("ALTER TABLE tool_executions_" + month + " OWNER TO countersign_owner")
	}
	return c
}

func (c fixture) exec(sql string, args ...any) {
	c.t.Helper()
	if _, err := c.db.Exec(c.t.Context(), sql, args...); err != nil {
		c.t.Fatalf("%s: %v", sql, err)
	}
}

func one[T any](c fixture, sql string, args ...any) T {
	c.t.Helper()
	var v T
	if err := c.db.QueryRow(c.t.Context(), sql, args...).Scan(&v); err != nil {
		c.t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// tenantFixture is a tenant of a fixture.
type tenantFixture struct {
	fixture
	id envelope.TenantID
}

func (c fixture) tenant(settings ...retention.Setting) tenantFixture {
	c.t.Helper()
	s := tenantFixture{c, envelope.TenantID(uuid.Must(uuid.NewV7()))}
	s.exec("INSERT INTO tenants (tenant_id, name) VALUES ($1, $2)", s.id.String(), "t-"+s.id.String())
	s.exec("INSERT INTO decisions (tenant_id, decision_id, mode, mode_source, trace) VALUES ($1, $1, 'allow', 'test', '[]')", s.id.String())
	for _, set := range settings {
		s.put(set)
	}
	return s
}

// as runs do in the scope of the tenant's API.
func (s tenantFixture) as(do func(ctx context.Context, tx pgx.Tx) error) error {
	ctx := s.t.Context()
	return postgres.InTx(ctx, s.db, postgres.API(s.id), func(tx pgx.Tx) error { return do(ctx, tx) })
}

func (s tenantFixture) put(set retention.Setting) retention.Setting {
	s.t.Helper()
	var was retention.Setting
	if err := s.as(func(ctx context.Context, tx pgx.Tx) (err error) {
		was, err = retention.Put(ctx, tx, s.id, set, "ada")
		return err
	}); err != nil {
		s.t.Fatal(err)
	}
	return was
}

func (s tenantFixture) list() []retention.Status {
	s.t.Helper()
	var all []retention.Status
	if err := s.as(func(ctx context.Context, tx pgx.Tx) (err error) {
		all, err = retention.List(ctx, tx, s.id)
		return err
	}); err != nil {
		s.t.Fatal(err)
	}
	return all
}

// action inserts an envelope of March 2025 with an approval.
func (s tenantFixture) action(name, approval string) envelope.ActionID {
	s.t.Helper()
	id := envelope.NewActionID()
	s.exec(`INSERT INTO actions (tenant_id, action_id, external_id, content_digest, source_id, tool_name, args, risk, effect, decision_id,
			config_version, tool_digest, approval_state, approval_expires_at, bucket_id, max_attempts, created_at)
		VALUES ($1, $2, $3, '', 's', 't', '{}', 'low', 'once', $1, 1, '', $4, '2100-01-01', 1, 3, '2025-03-05')`,
		s.id.String(), id.String(), name, approval)
	return id
}

// attempt inserts an execution of an action.
func (s tenantFixture) attempt(id envelope.ActionID, n int, status, at string) {
	s.t.Helper()
	s.exec("INSERT INTO tool_executions (tenant_id, action_id, attempt, status, finished_at) VALUES ($1, $2, $3, $4, $5::timestamptz)",
		s.id.String(), id.String(), n, status, at)
}

// ended inserts n envelopes of March 2025 that ended then, after a retry.
func (s tenantFixture) ended(n int) {
	s.t.Helper()
	s.exec(`WITH old AS (
			INSERT INTO actions (tenant_id, action_id, external_id, content_digest, source_id, tool_name, args, risk, effect, decision_id,
				config_version, tool_digest, approval_state, bucket_id, max_attempts, created_at)
			SELECT $1, gen_random_uuid(), 'e-' || n, '', 's', 't', '{}', 'low', 'once', $1, 1, '', 'auto', 1, 3, '2025-03-05'
			FROM generate_series(1, $2::integer) n
			RETURNING action_id
		)
		INSERT INTO tool_executions (tenant_id, action_id, attempt, status, finished_at)
		SELECT $1, o.action_id, a.n, CASE a.n WHEN 1 THEN 'pending' ELSE 'sent' END, '2025-03-06'
		FROM old o CROSS JOIN generate_series(1, 2) AS a (n)`, s.id.String(), n)
}

// happened inserts n events of a time, and checkpoints them.
func (s tenantFixture) happened(n int, at string) {
	s.t.Helper()
	s.exec("INSERT INTO events (tenant_id, at, kind, actor, items) SELECT $1, $2::timestamptz, 'settled', 'w', '[]' FROM generate_series(1, $3::integer)",
		s.id.String(), at, n)
	s.settled()
	for left := n; left > 0; {
		if err := postgres.InTx(s.t.Context(), s.db, postgres.Worker(), func(tx pgx.Tx) error {
			covered, err := audit.Checkpoint(s.t.Context(), tx, s.id, 5000)
			left -= covered
			return err
		}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// settled waits until no transaction of the server is older than the inserted
// rows. Each of them ends by itself.
func (c fixture) settled() {
	c.t.Helper()
	for !one[bool](c, "SELECT coalesce(max(txid::text::bigint) < pg_snapshot_xmin(pg_current_snapshot())::text::bigint, true) FROM events") {
	}
}

func (s tenantFixture) verify() audit.Report {
	s.t.Helper()
	var r audit.Report
	if err := s.as(func(ctx context.Context, tx pgx.Tx) (err error) {
		r, err = audit.Verify(ctx, tx, s.id, audit.Options{})
		return err
	}); err != nil {
		s.t.Fatal(err)
	}
	return r
}

// sweep runs to the end.
func (c fixture) sweep() {
	c.t.Helper()
	done, err := retention.Sweep(c.t.Context(), c.db, func() bool { return true })
	if !done || err != nil {
		c.t.Fatalf("Sweep = %t, %v", done, err)
	}
}

// count counts the rows of the tenant in a table.
func (s tenantFixture) count(table string) int {
	s.t.Helper()
	return one[int](s.fixture, "SELECT count(1)::int FROM "+table+" WHERE tenant_id = $1", s.id.String())
}
