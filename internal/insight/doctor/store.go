package doctor

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/action/fence"
	"github.com/countersign-dev/countersign/internal/insight/overview"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// The statements are written by hand, since sqlc does not support PostgreSQL's
// own catalogs.

// list reads rows in the order of a struct's fields.
func list[T any](ctx context.Context, d database, scope postgres.Scope, sql string, args ...any) ([]T, error) {
	var all []T
	err := d.in(ctx, scope, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[T])
		return err
	})
	return all, err
}

// one reads the only row of a query.
func one[T any](ctx context.Context, d database, scope postgres.Scope, sql string, args ...any) (T, error) {
	all, err := list[T](ctx, d, scope, sql, args...)
	if err != nil || len(all) == 0 {
		var none T
		return none, err
	}
	return all[0], nil
}

// setting is a parameter of the server in a new session.
type setting struct{ Name, Value string }

// readSettings returns the relevant parameters by name.
func readSettings(ctx context.Context, d database) (map[string]string, error) {
	all, err := list[setting](ctx, d, postgres.Admin(), `
SELECT s.name, s.setting
FROM pg_settings s
WHERE s.name IN ('server_version_num', 'fsync', 'full_page_writes', 'synchronous_commit', 'autovacuum', 'track_counts', 'max_connections',
    'default_transaction_isolation', 'synchronous_standby_names')
UNION ALL
SELECT 'in_recovery', pg_is_in_recovery()::text
UNION ALL
SELECT 'standbys', count(1)::text FROM pg_stat_replication
UNION ALL
-- Without pg_monitor the states are NULL.
SELECT 'synchronous', CASE WHEN count(1) = count(r.sync_state) THEN count(1) FILTER (WHERE r.sync_state IN ('sync', 'quorum')) ELSE -1 END::text
FROM pg_stat_replication r`)
	set := make(map[string]string, len(all))
	for _, s := range all {
		set[s.Name] = s.Value
	}
	return set, err
}

// version is the version of the schema, and of River's tables.
type version struct{ Schema, River int64 }

func readVersion(ctx context.Context, d database) (version, error) {
	there, err := one[struct{ Schema, River bool }](ctx, d, postgres.Admin(),
		"SELECT to_regclass('"+postgres.Schema+".goose_db_version') IS NOT NULL, to_regclass('"+postgres.RiverSchema+".river_migration') IS NOT NULL")
	if err != nil {
		return version{}, err
	}
	var v version
	if there.Schema {
		got, err := one[struct{ N int64 }](ctx, d, postgres.Admin(), "SELECT coalesce(max(g.version_id), 0) FROM goose_db_version g WHERE g.is_applied")
		if err != nil {
			return version{}, err
		}
		v.Schema = got.N
	}
	if there.River {
		got, err := one[struct{ N int64 }](ctx, d, postgres.Admin(),
			"SELECT coalesce(max(m.version), 0) FROM "+postgres.RiverSchema+".river_migration m WHERE m.line = 'main'")
		if err != nil {
			return version{}, err
		}
		v.River = got.N
	}
	return v, nil
}

// role is a role of the server, with the roles that it is a member of.
type role struct {
	Name                 string
	Login, Super, ByPass bool
	CreateRole, CreateDB bool
	MemberOf             []string
}

func readRoles(ctx context.Context, d database) ([]role, error) {
	return list[role](ctx, d, postgres.Admin(), `
SELECT r.rolname::text, r.rolcanlogin, r.rolsuper, r.rolbypassrls, r.rolcreaterole, r.rolcreatedb,
    ARRAY(SELECT g.rolname::text FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid WHERE m.member = r.oid ORDER BY 1)
FROM pg_roles r
WHERE r.rolname = ANY ($1::text[])
ORDER BY 1`, ownRoles())
}

func readExposures(ctx context.Context, d database) (all []postgres.Exposure, err error) {
	err = d.in(ctx, postgres.Admin(), func(tx pgx.Tx) error {
		all, err = postgres.Exposures(ctx, tx)
		return err
	})
	return all, err
}

// guarded is a table with rows of tenants, and its row-level security.
type guarded struct {
	Name, Owner     string
	Enabled, Forced bool
	// For are the roles that have a policy; Open are the policies that show
	// every row to the API, triage or everyone.
	For, Open []string
}

func readGuarded(ctx context.Context, d database) ([]guarded, error) {
	return list[guarded](ctx, d, postgres.Admin(), `
SELECT c.relname::text, pg_get_userbyid(c.relowner)::text, c.relrowsecurity, c.relforcerowsecurity,
    ARRAY(SELECT DISTINCT r.rolname::text FROM pg_policy k JOIN pg_roles r ON r.oid = ANY (k.polroles) WHERE k.polrelid = c.oid ORDER BY 1),
    ARRAY(
        SELECT k.polname::text
        FROM pg_policy k
        WHERE k.polrelid = c.oid AND k.polpermissive
            AND (pg_get_expr(k.polqual, k.polrelid) = 'true' OR pg_get_expr(k.polwithcheck, k.polrelid) = 'true')
            AND (0 = ANY (k.polroles) OR EXISTS (
                SELECT FROM pg_roles r WHERE r.oid = ANY (k.polroles) AND r.rolname NOT IN ('countersign_owner', 'countersign_worker')))
        ORDER BY 1)
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'countersign_data' AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped)
ORDER BY 1`)
}

// fenced is the fence, with the workers that ran within their leases.
type fenced struct {
	fence.Status
	// Running counts the workers, and Remembering those that have a state file.
	Running, Remembering int
	// Refusing are the workers that claim nothing, with the reason of each.
	Refusing []string
}

func readFence(ctx context.Context, d database) (f fenced, err error) {
	err = d.in(ctx, postgres.Worker(), func(tx pgx.Tx) error {
		if f.Status, err = fence.Read(ctx, tx); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `
SELECT count(1), count(1) FILTER (WHERE w.state_file), coalesce(array_agg(w.name || ': ' || w.refuses) FILTER (WHERE w.refuses <> ''), '{}')
FROM workers w
WHERE NOT w.ended AND w.seen_at > now() - w.lease`).Scan(&f.Running, &f.Remembering, &f.Refusing)
	})
	return f, err
}

// grant is a privilege on an object of the schema.
type grant struct{ Grantee, What string }

func readGrants(ctx context.Context, d database) ([]grant, error) {
	return list[grant](ctx, d, postgres.Admin(), `
SELECT CASE WHEN g.grantee = 0 THEN 'PUBLIC' ELSE pg_get_userbyid(g.grantee) END::text, g.what
FROM (
    SELECT a.grantee, a.privilege_type || ' on ' || c.relname AS what
    FROM pg_class c
    CROSS JOIN LATERAL aclexplode(c.relacl) a
    WHERE c.relnamespace = 'countersign_data'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'S') AND a.grantee <> c.relowner
    UNION ALL
    SELECT a.grantee, a.privilege_type || ' on ' || c.relname || '.' || t.attname
    FROM pg_class c
    JOIN pg_attribute t ON t.attrelid = c.oid
    CROSS JOIN LATERAL aclexplode(t.attacl) a
    WHERE c.relnamespace = 'countersign_data'::regnamespace AND NOT t.attisdropped
    UNION ALL
    -- Our functions; without an entry PUBLIC may call one.
    SELECT a.grantee, a.privilege_type || ' on ' || f.proname || '()'
    FROM pg_proc f
    CROSS JOIN LATERAL aclexplode(coalesce(f.proacl, acldefault('f', f.proowner))) a
    WHERE f.pronamespace = 'countersign_data'::regnamespace AND (f.prosecdef OR pg_get_userbyid(f.proowner) = 'countersign_owner') AND a.grantee <> f.proowner
) g`)
}

// partitions are the monthly partitions of tool_executions.
type partitions struct {
	Today time.Time
	// Months are the months with a partition, such as 202611; Empty are those
	// whose partition has no page.
	Months, Empty []string
	// KeptDays is the longest retention of ended actions of any tenant; -1 if
	// unlimited.
	KeptDays int
}

func readPartitions(ctx context.Context, d database) (partitions, error) {
	return one[partitions](ctx, d, postgres.Worker(), `
WITH months AS (
    SELECT right(c.relname, 6) AS month, pg_relation_size(c.oid) AS size
    FROM pg_inherits i
    JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'countersign_data.tool_executions'::regclass AND c.relname ~ '^tool_executions_[0-9]{6}$'
)
SELECT
    (now() AT TIME ZONE 'UTC')::timestamp,
    ARRAY(SELECT m.month FROM months m ORDER BY 1),
    ARRAY(SELECT m.month FROM months m WHERE m.size = 0 ORDER BY 1),
    (SELECT CASE WHEN count(1) > count(r.days) OR count(1) = 0 THEN -1 ELSE max(r.days) END
    FROM tenants t
    LEFT JOIN retention r ON r.tenant_id = t.tenant_id AND r.kind = 'actions' AND r.action = 'delete')::integer`)
}

func readClock(ctx context.Context, d database) (time.Time, error) {
	got, err := one[struct{ At time.Time }](ctx, d, postgres.Admin(), "SELECT clock_timestamp()")
	return got.At, err
}

// session is a long transaction.
type session struct {
	PID                   int32
	User, App, State      string
	Seconds, StateSeconds float64
}

// activity is the state that delays vacuum.
type activity struct {
	// All reports whether the sessions of other users are visible.
	All bool
	// XminAge is the age of the oldest snapshot, in transactions.
	XminAge int64
	// FrozenAge is the age of the database's oldest row that is not frozen, in
	// transactions.
	FrozenAge int64
	// Sessions are the sessions with the oldest transactions.
	Sessions []session `db:"-"`
}

func readActivity(ctx context.Context, d database) (activity, error) {
	a, err := one[activity](ctx, d, postgres.Admin(), `
SELECT
    pg_has_role(current_user, 'pg_read_all_stats', 'USAGE'),
    coalesce((SELECT max(age(s.backend_xmin)) FROM pg_stat_activity s WHERE s.pid <> pg_backend_pid()), 0)::bigint,
    (SELECT age(d.datfrozenxid) FROM pg_database d WHERE d.datname = current_database())::bigint`)
	if err != nil {
		return a, err
	}
	a.Sessions, err = list[session](ctx, d, postgres.Admin(), `
SELECT s.pid, coalesce(s.usename, '')::text, coalesce(s.application_name, ''), coalesce(s.state, ''),
    extract(epoch FROM now() - s.xact_start)::float8, extract(epoch FROM now() - s.state_change)::float8
FROM pg_stat_activity s
WHERE s.datname = current_database() AND s.pid <> pg_backend_pid() AND s.backend_type = 'client backend' AND s.xact_start IS NOT NULL
ORDER BY s.xact_start
LIMIT 20`)
	return a, err
}

// prepared is a prepared transaction.
type prepared struct {
	ID      string
	Seconds float64
}

func readPrepared(ctx context.Context, d database) ([]prepared, error) {
	return list[prepared](ctx, d, postgres.Admin(),
		"SELECT x.gid, extract(epoch FROM now() - x.prepared)::float8 FROM pg_prepared_xacts x ORDER BY x.prepared LIMIT 20")
}

// slot is a replication slot.
type slot struct {
	Name   string
	Active bool
	// Held is the WAL that the server keeps for the slot, in bytes.
	Held int64
	// WAL is reserved, extended, unreserved or lost.
	WAL string
}

func readSlots(ctx context.Context, d database) ([]slot, error) {
	return list[slot](ctx, d, postgres.Admin(), `
SELECT s.slot_name::text, s.active,
    coalesce(pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn() ELSE pg_current_wal_lsn() END, s.restart_lsn), 0)::bigint,
    coalesce(s.wal_status, '')
FROM pg_replication_slots s
ORDER BY s.slot_name`)
}

// hot is a frequently written table, with its partitions.
type hot struct {
	Name       string
	Bytes      int64
	Live, Dead int64
	// VacuumSeconds is the time since the last vacuum; -1 if never.
	VacuumSeconds float64
	// Off reports whether autovacuum is disabled for the table.
	Off bool
}

func readHot(ctx context.Context, d database) ([]hot, error) {
	return list[hot](ctx, d, postgres.Admin(), `
SELECT coalesce(p.relname, c.relname)::text, sum(pg_total_relation_size(c.oid))::bigint,
    sum(pg_stat_get_live_tuples(c.oid))::bigint, sum(pg_stat_get_dead_tuples(c.oid))::bigint,
    coalesce(extract(epoch FROM now() - max(greatest(pg_stat_get_last_autovacuum_time(c.oid), pg_stat_get_last_vacuum_time(c.oid)))), -1)::float8,
    bool_or(coalesce(c.reloptions::text LIKE '%autovacuum_enabled=off%' OR c.reloptions::text LIKE '%autovacuum_enabled=false%', false))
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
LEFT JOIN pg_class p ON p.oid = i.inhparent
WHERE c.relkind = 'r' AND n.nspname IN ('countersign_data', 'river')
    AND coalesce(p.relname, c.relname) IN ('outbox', 'buckets', 'bucket_claims', 'actions', 'tool_executions', 'events', 'dead_letters', 'river_job')
GROUP BY 1
ORDER BY 1`)
}

// leases counts suspicious leases.
type leases struct {
	// Overdue counts leases that expired at least a minute ago. Worst is the age
	// of the oldest of them.
	Overdue      int64
	WorstSeconds float64
	// Long counts leases that are longer than those of any worker.
	Long int64
	// Fleet has the number of waiting actions, and their ages.
	Fleet overview.Fleet `db:"-"`
}

func readLeases(ctx context.Context, d database) (leases, error) {
	l, err := one[leases](ctx, d, postgres.Worker(), `
SELECT
    count(1) FILTER (WHERE o.lease_until < now() - interval '1 minute'),
    coalesce(extract(epoch FROM now() - min(o.lease_until)), 0)::float8,
    count(1) FILTER (WHERE o.lease_until > now() + interval '65 minutes')
FROM outbox o
WHERE o.lease_until IS NOT NULL`)
	if err == nil {
		l.Fleet, err = readFleet(ctx, d)
	}
	return l, err
}

// unfinished is a pause whose sweep is not complete.
type unfinished struct {
	Scope, Subject string
	Killing        bool
	Seconds        float64
}

// pauses are the pause of everything, if there is one, and the unfinished
// pauses.
type pauses struct {
	Everything bool
	Left       []unfinished `db:"-"`
}

// unlisted is a source whose last listing failed, whose login is lost (Lost), or
// lacks the scopes Lacks.
type unlisted struct {
	Tenant, Source, Error string
	Failures              int32
	Lost                  bool
	Lacks                 string
}

func readUnlisted(ctx context.Context, d database) ([]unlisted, error) {
	return list[unlisted](ctx, d, postgres.Worker(), `
SELECT t.name, s.source_id, coalesce(l.lost_reason, s.list_error, ''), s.list_failures, l.lost_reason IS NOT NULL, coalesce(array_to_string(l.needed_scopes, ' '), '')
FROM sources s
JOIN tenants t ON t.tenant_id = s.tenant_id
LEFT JOIN source_logins l ON l.tenant_id = s.tenant_id AND l.source_id = s.source_id
WHERE s.enabled AND (s.list_error IS NOT NULL OR l.lost_reason IS NOT NULL OR l.needed_scopes <> '{}')
ORDER BY l.lost_reason IS NULL, s.list_failures DESC, t.name, s.source_id
LIMIT 20`)
}

// unnoted is a tenant with a checkpoint that is not covered by a noted head, and
// the age of the oldest.
type unnoted struct {
	Tenant  string
	Seconds float64
}

// readUnnoted reads two checkpoints of each tenant's chain: the last noted one
// and its successor.
func readUnnoted(ctx context.Context, d database) ([]unnoted, error) {
	return list[unnoted](ctx, d, postgres.Worker(), `
SELECT t.name, extract(epoch FROM now() - first.created_at)::float8
FROM tenants t
CROSS JOIN LATERAL (
    SELECT s.created_at
    FROM checkpoints s
    WHERE s.tenant_id = t.tenant_id
        AND s.checkpoint_no > coalesce((
            SELECT n.checkpoint_no FROM checkpoints n
            WHERE n.tenant_id = t.tenant_id AND n.noted_at IS NOT NULL
            ORDER BY n.checkpoint_no DESC LIMIT 1
        ), 0)
    ORDER BY s.checkpoint_no
    LIMIT 1
) first
WHERE first.created_at < now() - interval '7 days'
ORDER BY 2 DESC, t.name
LIMIT 20`)
}

func readPauses(ctx context.Context, d database) (pauses, error) {
	p, err := one[pauses](ctx, d, postgres.Worker(), "SELECT EXISTS (SELECT FROM pauses p WHERE p.scope = 'everything' AND p.lifted_at IS NULL)")
	if err != nil {
		return p, err
	}
	p.Left, err = list[unfinished](ctx, d, postgres.Worker(), `
SELECT p.scope, p.subject, p.kill AND p.swept_at IS NULL,
    extract(epoch FROM now() - CASE WHEN p.kill AND p.swept_at IS NULL THEN coalesce(p.killed_at, p.paused_at) ELSE p.lifted_at END)::float8
FROM pauses p
WHERE (p.kill AND p.swept_at IS NULL AND coalesce(p.killed_at, p.paused_at) < now() - interval '1 minute')
    OR (p.lifted_at < now() - interval '1 minute' AND p.woken_at IS NULL)
ORDER BY 4 DESC
LIMIT 20`)
	return p, err
}

// wrongLogin is a bound database login that should not be bound, or not as it is.
type wrongLogin struct {
	Login, Tenant string
	// Gone means that it is missing or cannot log in, Untagged that it is triage's,
	// without the tools of action tags; otherwise it is a superuser.
	Gone, Untagged bool
}

func readWrongLogins(ctx context.Context, d database) ([]wrongLogin, error) {
	return list[wrongLogin](ctx, d, postgres.Worker(), `
SELECT l.login, t.name, NOT coalesce(r.rolcanlogin, false), coalesce(r.rolcanlogin AND NOT r.rolsuper, false)
FROM db_logins l
JOIN tenants t ON t.tenant_id = l.tenant_id
LEFT JOIN pg_roles r ON r.rolname = l.login
WHERE l.unbound_at IS NULL AND (r.rolname IS NULL OR NOT r.rolcanlogin OR r.rolsuper
    OR '*:message.archive' = ANY (l.tools) AND pg_has_role(r.oid, 'countersign_triage', 'MEMBER')
        AND NOT EXISTS (SELECT FROM unnest(l.tools) p (pattern) WHERE p.pattern ~ ':(\*|add-contact|create-reminder)$')
        AND EXISTS (SELECT FROM tools c WHERE c.tenant_id = l.tenant_id AND c.name IN ('add-contact', 'create-reminder') AND c.gone_at IS NULL))
ORDER BY 1
LIMIT 20`)
}
