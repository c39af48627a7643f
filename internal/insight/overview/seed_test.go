package overview_test

import (
	"math"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/insight/overview"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// fixture is a database with tenants.
type fixture struct {
	t  testing.TB
	db postgres.Begins
}

func (f fixture) as(scope postgres.Scope, fn func(tx pgx.Tx) error) {
	f.t.Helper()
	if err := postgres.InTx(f.t.Context(), f.db, scope, fn); err != nil {
		f.t.Fatal(err)
	}
}

func (f fixture) exec(sql string, args ...any) {
	f.t.Helper()
	f.as(postgres.Admin(), func(tx pgx.Tx) error {
		_, err := tx.Exec(f.t.Context(), sql, args...)
		return err
	})
}

func one[T any](f fixture, sql string, args ...any) T {
	f.t.Helper()
	var v T
	f.as(postgres.Admin(), func(tx pgx.Tx) error { return tx.QueryRow(f.t.Context(), sql, args...).Scan(&v) })
	return v
}

// tenant is a tenant of a fixture.
type tenant struct {
	fixture

	id   envelope.TenantID
	name string
}

func (f fixture) tenant(prefix string) tenant {
	f.t.Helper()
	id := uuid.Must(uuid.NewV7())
	k := tenant{f, envelope.TenantID(id), prefix + "-" + id.String()}
	f.exec("INSERT INTO tenants (tenant_id, name) VALUES ($1, $2)", k.id.String(), k.name)
	f.exec("INSERT INTO decisions (tenant_id, decision_id, mode, mode_source, trace) VALUES ($1, $1, 'allow', 'test', '[]')", k.id.String())
	f.exec("INSERT INTO sources (tenant_id, source_id, kind) VALUES ($1, 'mail', 'mcp')", k.id.String())
	return k
}

// bucket inserts a bucket; set assigns its columns, in SQL.
func (k tenant) bucket(name, set string) int64 {
	k.t.Helper()
	id := one[int64](k.fixture, `INSERT INTO buckets (tenant_id, name) VALUES ($1, $2)
		ON CONFLICT ON CONSTRAINT buckets_tenant_id_name_key DO UPDATE SET retired_at = NULL RETURNING bucket_id`, k.id.String(), name)
	if set != "" {
		k.exec("UPDATE buckets SET "+set+" WHERE bucket_id = $1", id)
	}
	return id
}

// propose inserts an action of a tool without scheduling it.
func (k tenant) propose(bucket int64, tool string, approval envelope.Approval) envelope.ActionID {
	k.t.Helper()
	id := envelope.NewActionID()
	k.exec(`INSERT INTO actions (tenant_id, action_id, content_digest, source_id, tool_name, args, risk, effect,
			decision_id, config_version, tool_digest, approval_state, approval_expires_at, bucket_id, max_attempts)
		VALUES ($1, $2, '\x00', 'mail', $3, '{}', 'low', 'keyed', $1, 1, '\x00', $4, now() + interval '1 hour', $5, 3)`,
		k.id.String(), id.String(), tool, string(approval), bucket)
	return id
}

// queue schedules n actions, due in some seconds. set assigns further columns,
// in SQL.
func (k tenant) queue(bucket int64, n int, dueIn float64, set string) []envelope.ActionID {
	k.t.Helper()
	ids := make([]envelope.ActionID, n)
	for i := range ids {
		ids[i] = k.propose(bucket, "send", envelope.ApprovalAuto)
		k.exec(`INSERT INTO outbox (tenant_id, action_id, bucket_id, next_attempt_at, max_attempts)
			VALUES ($1, $2, $3, now() + make_interval(secs => $4::float8), 3)`, k.id.String(), ids[i].String(), bucket, dueIn)
		if set != "" {
			k.exec("UPDATE outbox SET "+set+" WHERE action_id = $1", ids[i].String())
		}
	}
	return ids
}

// fill fills a bucket with rows that have no action.
func (k tenant) fill(bucket int64, n int) {
	k.t.Helper()
	k.exec(`INSERT INTO outbox (tenant_id, action_id, bucket_id, next_attempt_at, max_attempts)
		SELECT $1, gen_random_uuid(), $2, now() - interval '1 minute', 3 FROM generate_series(1, $3)`, k.id.String(), bucket, n)
}

func (k tenant) overview() wire.Overview {
	k.t.Helper()
	var o wire.Overview
	k.as(postgres.API(k.id), func(tx pgx.Tx) (err error) {
		o, err = overview.Get(k.t.Context(), tx, k.id)
		return err
	})
	return o
}

func (f fixture) fleet() overview.Fleet {
	f.t.Helper()
	s, err := overview.Reader(f.db)(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

// reasons returns the counts by reason.
func reasons(all []wire.OverviewWaiting) map[string]int64 {
	counts := make(map[string]int64)
	for _, w := range all {
		counts[w.Reason] += w.Actions
	}
	return counts
}

func find[T any](t testing.TB, all []T, is func(T) bool) T {
	t.Helper()
	i := slices.IndexFunc(all, is)
	if i < 0 {
		t.Fatalf("no element of %+v matches", all)
	}
	return all[i]
}

// about reports whether two durations in seconds are equal, except for rounding.
func about(a, b float64) bool { return math.Abs(a-b) < 0.001 }
