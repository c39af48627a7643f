package doctor_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/internal/insight/doctor"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/postgres/embedded"
)

// of returns the findings of a check.
func of(all []doctor.Finding, check string) []doctor.Finding {
	return slices.DeleteFunc(slices.Clone(all), func(f doctor.Finding) bool { return f.Check != check })
}

// wantFinding fails the test unless a check has a finding with a status, a text and a
// remedy.
func wantFinding(t *testing.T, all []doctor.Finding, check string, status doctor.Status, text string) {
	t.Helper()
	found := of(all, check)
	for _, f := range found {
		if f.Status == status && strings.Contains(f.Message, text) {
			if (f.Fix == "") != (status == doctor.OK) {
				t.Errorf("%s: %q has the fix %q", check, f.Message, f.Fix)
			}
			return
		}
	}
	t.Errorf("%s has no finding %s that says %q: %+v", check, status, text, found)
}

func examine(t *testing.T, db postgres.Begins) []doctor.Finding {
	t.Helper()
	return doctor.Run(t.Context(), db, time.Now)
}

func run(t *testing.T, db postgres.Begins, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		err := postgres.InTx(t.Context(), db, postgres.Admin(), func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), sql)
			return err
		})
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// TestFreshDatabaseIsHealthy also checks that every check has a finding.
func TestFreshDatabaseIsHealthy(t *testing.T) {
	t.Parallel()

	all := examine(t, dbtest.DB(t))

	for _, check := range []string{
		doctor.CheckServer, doctor.CheckMigrations, doctor.CheckRoles, doctor.CheckRowSecurity, doctor.CheckGrants, doctor.CheckPartitions,
		doctor.CheckClock, doctor.CheckTransactions, doctor.CheckPrepared, doctor.CheckSlots, doctor.CheckBloat, doctor.CheckLeases,
		doctor.CheckPauses, doctor.CheckCheckpoints, doctor.CheckHeads, doctor.CheckSources, doctor.CheckFence, doctor.CheckDBLogins, doctor.CheckDeadLetters,
	} {
		found := of(all, check)
		switch {
		case len(found) == 0:
			t.Errorf("%s has no finding", check)
		case check == doctor.CheckServer: // the tests' server is set up to be fast
		case len(found) != 1 || found[0].Status != doctor.OK || found[0].Message == "" || found[0].Fix != "":
			t.Errorf("%s finds %+v", check, found)
		}
	}
}

// TestTablesOfApplicationsAreIgnored adds an application next to Countersign, as
// in docs/sql.md: the privileges on its table are not findings.
func TestTablesOfApplicationsAreIgnored(t *testing.T) {
	t.Parallel()
	tx := dbtest.Tx(t)
	run(t, tx, "CREATE TABLE public.orders (order_no text)", "GRANT INSERT ON public.orders TO pg_monitor", "GRANT UPDATE (order_no) ON public.orders TO PUBLIC")

	for _, check := range []string{doctor.CheckGrants, doctor.CheckRowSecurity, doctor.CheckSchemas} {
		for _, f := range of(examine(t, tx), check) {
			if f.Status != doctor.OK {
				t.Errorf("%s finds %+v", check, f)
			}
		}
	}
}

// The tenant of the tests, and its id in SQL.
const (
	id     = "'0190a1b2-0000-7000-8000-000000000001'"
	tenant = "INSERT INTO tenants (tenant_id, name) VALUES (" + id + ", 'database')"
)

// unlisted inserts a source whose listing failed three times.
func unlisted(source string, on bool) string {
	return fmt.Sprintf("INSERT INTO sources (tenant_id, source_id, kind, enabled, list_error, list_failures) VALUES (%s, '%s', 'mcp', %t, 'no such file', 3)", id, source, on)
}

// TestBrokenDatabases breaks one database after another.
func TestBrokenDatabases(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		broken []string
		check  string
		status doctor.Status
		text   string
	}{
		"the database is held": {
			[]string{"UPDATE fence SET state = 'held', reason = 'copy', detail = 'this database is a copy'"}, doctor.CheckFence, doctor.Failed, "nothing is sent: this database is a copy",
		},
		"the server was not checked": {
			[]string{"UPDATE fence SET state = 'open', epoch = 1, started = now() - interval '1 year'"}, doctor.CheckFence, doctor.Warning, "the server started since",
		},
		"no worker has a memory outside": {
			[]string{"INSERT INTO workers (worker, name, epoch, remembers, state_file, lease) VALUES (gen_random_uuid(), 'w', 1, true, false, '30 s')"},
			doctor.CheckFence, doctor.Warning, "no worker has a memory outside",
		},
		"a worker refuses the database": {
			[]string{"INSERT INTO workers (worker, name, epoch, remembers, state_file, lease, refuses) VALUES (gen_random_uuid(), 'w', 0, true, true, '30 s', 'another one')"},
			doctor.CheckFence, doctor.Failed, "the worker w: another one",
		},
		"calls were lost": {
			[]string{"UPDATE fence SET lost = 3"}, doctor.CheckFence, doctor.Warning, "3 calls were made whose actions the database lost",
		},
		"row security is off": {
			[]string{"ALTER TABLE actions DISABLE ROW LEVEL SECURITY"}, doctor.CheckRowSecurity, doctor.Failed, "tenants see each other's rows of actions",
		},
		"row security is not forced": {
			[]string{"ALTER TABLE pauses NO FORCE ROW LEVEL SECURITY"}, doctor.CheckRowSecurity, doctor.Failed, "row security of pauses does not hold for its owner",
		},
		"a table is somebody else's": {
			[]string{"ALTER TABLE events OWNER TO postgres"}, doctor.CheckRowSecurity, doctor.Failed, "events belongs to postgres",
		},
		"a policy lets all through": {
			[]string{"CREATE POLICY wide ON tools TO countersign_api USING (true)"}, doctor.CheckRowSecurity, doctor.Failed, "the policy wide lets tenants see every row of tools",
		},
		"a policy for everybody lets all through": {
			[]string{"CREATE POLICY wide ON tools USING (true)"}, doctor.CheckRowSecurity, doctor.Failed, "the policy wide",
		},
		"the workers' policy is gone": {
			[]string{"DROP POLICY outbox_worker ON outbox"}, doctor.CheckRowSecurity, doctor.Failed, "no policy lets the workers see outbox",
		},
		"the API may rewrite the log": {
			[]string{"GRANT UPDATE ON events TO countersign_api"}, doctor.CheckGrants, doctor.Failed, "countersign_api has privileges that no migration granted: UPDATE on events",
		},
		"everybody may read": {
			[]string{"GRANT SELECT ON actions TO PUBLIC"}, doctor.CheckGrants, doctor.Failed, "PUBLIC has privileges that no migration granted: SELECT on actions",
		},
		"a partition may be read past its parent": {
			[]string{"DO $$ BEGIN EXECUTE format('GRANT SELECT ON tool_executions_%s TO countersign_api', to_char(now() AT TIME ZONE 'UTC', 'YYYYMM')); END $$"},
			doctor.CheckGrants, doctor.Failed, "SELECT on tool_executions_",
		},
		"a column too many": {
			[]string{"GRANT UPDATE (name) ON tenants TO countersign_api"}, doctor.CheckGrants, doctor.Failed, "UPDATE on tenants.name",
		},
		"a function that acts as the owner": {
			[]string{"GRANT EXECUTE ON FUNCTION ensure_partitions(integer) TO PUBLIC"}, doctor.CheckGrants, doctor.Failed, "EXECUTE on ensure_partitions()",
		},
		"a grant is gone": {
			[]string{"REVOKE INSERT ON tool_executions FROM countersign_worker"}, doctor.CheckGrants, doctor.Failed, "countersign_worker lacks INSERT on tool_executions",
		},
		"somebody else may read": {
			[]string{"GRANT SELECT ON outbox TO pg_monitor"}, doctor.CheckGrants, doctor.Warning, "pg_monitor, which is not a role of Countersign, has SELECT on outbox",
		},
		"an older schema": {
			[]string{"DELETE FROM goose_db_version WHERE version_id = (SELECT max(version_id) FROM goose_db_version)"}, doctor.CheckMigrations, doctor.Failed, "and this binary wants",
		},
		"a newer schema": {
			[]string{"INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)"}, doctor.CheckMigrations, doctor.Warning, "the schema is at version 99999",
		},
		"an older River": {
			[]string{"DELETE FROM river.river_migration WHERE version = (SELECT max(version) FROM river.river_migration)"},
			doctor.CheckMigrations, doctor.Failed, "River's schema is at version",
		},
		"a schema in which everybody may create": {
			[]string{"GRANT CREATE ON SCHEMA countersign_data TO PUBLIC"}, doctor.CheckSchemas, doctor.Failed, "PUBLIC may create in schema countersign_data",
		},
		"no partition for this month": {
			[]string{"DO $$ BEGIN EXECUTE format('DROP TABLE tool_executions_%s', to_char(now() AT TIME ZONE 'UTC', 'YYYYMM')); END $$"},
			doctor.CheckPartitions, doctor.Failed, "no partition for this month",
		},
		"a partition that is long past": {
			[]string{"CREATE TABLE countersign_data.tool_executions_202001 PARTITION OF tool_executions FOR VALUES FROM ('2020-01-01 00:00:00+00') TO ('2020-02-01 00:00:00+00')"},
			doctor.CheckPartitions, doctor.Warning, "the partition of 202001 is empty and past its retention",
		},
		"a partition that should have been deleted": {
			[]string{
				"CREATE TABLE countersign_data.tool_executions_202001 PARTITION OF tool_executions FOR VALUES FROM ('2020-01-01 00:00:00+00') TO ('2020-02-01 00:00:00+00')",
				tenant, "INSERT INTO retention (tenant_id, kind, days, action) VALUES (" + id + ", 'actions', 30, 'delete')",
				"INSERT INTO tool_executions (tenant_id, action_id, attempt, status, finished_at) VALUES (" + id + ", " + id + ", 1, 'sent', '2020-01-05')",
			},
			doctor.CheckPartitions, doctor.Warning, "a month older than the 30 days",
		},
		"autovacuum is off for a table": {
			[]string{"ALTER TABLE outbox SET (autovacuum_enabled = off)"}, doctor.CheckBloat, doctor.Failed, "autovacuum passes outbox over",
		},
		"a table is full of dead rows": {
			[]string{
				"ALTER TABLE outbox SET (autovacuum_enabled = off)",
				"INSERT INTO outbox (tenant_id, action_id, bucket_id, next_attempt_at, max_attempts) SELECT gen_random_uuid(), gen_random_uuid(), 1, now(), 1 FROM generate_series(1, 60000)",
				"DELETE FROM outbox", "SELECT pg_stat_force_next_flush()",
			},
			doctor.CheckBloat, doctor.Warning, "outbox has 60000 dead rows beside 0 that live",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := dbtest.URL(t)
			// With one connection, statistics are visible to the next statement.
			db, err := postgres.Open(t.Context(), postgres.Config{URL: url, MaxConns: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			run(t, db, tt.broken...)

			wantFinding(t, examine(t, db), tt.check, tt.status, tt.text)
		})
	}
}

// TestUnfinishedWork inserts rows that indicate overdue work.
func TestUnfinishedWork(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		broken []string
		check  string
		status doctor.Status
		text   string
	}{
		"a lease nobody took up": {
			[]string{tenant, "INSERT INTO outbox (tenant_id, action_id, bucket_id, next_attempt_at, max_attempts, lease_until) SELECT " + id + ", " + id + ", min(bucket_id), now() - interval '3 minutes', 1, now() - interval '2 minutes' FROM buckets"},
			doctor.CheckLeases, doctor.Warning, "1 leases expired, the first 2m0s ago, and no worker has reclaimed the actions",
		},
		"leases nobody took up for long": {
			[]string{tenant, "INSERT INTO outbox (tenant_id, action_id, bucket_id, next_attempt_at, max_attempts, lease_until) SELECT " + id + ", " + id + ", min(bucket_id), now() - interval '3 hours', 1, now() - interval '2 hours' FROM buckets"},
			doctor.CheckLeases, doctor.Failed, "the first 2h0m0s ago",
		},
		"a lease without an end": {
			[]string{tenant, "INSERT INTO outbox (tenant_id, action_id, bucket_id, next_attempt_at, max_attempts, lease_until) SELECT " + id + ", " + id + ", min(bucket_id), now(), 1, now() + interval '2 days' FROM buckets"},
			doctor.CheckLeases, doctor.Warning, "1 leases are longer than an hour",
		},
		"nobody claims": {
			[]string{tenant, "INSERT INTO outbox (tenant_id, action_id, bucket_id, next_attempt_at, max_attempts) SELECT " + id + ", " + id + ", min(bucket_id), now() - interval '10 minutes', 1 FROM buckets"},
			doctor.CheckLeases, doctor.Warning, "a due action has waited for 10m0s",
		},
		"nobody has claimed for long": {
			[]string{tenant, "INSERT INTO outbox (tenant_id, action_id, bucket_id, next_attempt_at, max_attempts) SELECT " + id + ", " + id + ", min(bucket_id), now() - interval '10 hours', 1 FROM buckets"},
			doctor.CheckLeases, doctor.Failed, "has waited for 10h0m0s",
		},
		"everything is paused": {
			[]string{"INSERT INTO pauses (pause_id, scope, reason, paused_by) VALUES (gen_random_uuid(), 'everything', 'fire', 'Ana')"},
			doctor.CheckPauses, doctor.Warning, "everything is paused",
		},
		"a kill is not swept": {
			[]string{tenant, "INSERT INTO pauses (pause_id, tenant_id, scope, subject, kill, killed_at, reason, paused_by) VALUES (gen_random_uuid(), " + id + ", 'source', 'mail', true, now() - interval '2 minutes', 'r', 'Ana')"},
			doctor.CheckPauses, doctor.Warning, "the kill of source mail has not ended all that it hit, after 2m0s",
		},
		"a lifted pause still holds": {
			[]string{tenant, "INSERT INTO pauses (pause_id, tenant_id, scope, reason, paused_by, lifted_at, lifted_by) VALUES (gen_random_uuid(), " + id + ", 'tenant', 'r', 'Ana', now() - interval '20 minutes', 'Ana')"},
			doctor.CheckPauses, doctor.Failed, "the lifted pause of tenant has not woken all that it held, after 20m0s",
		},
		"checkpoints lag": {
			[]string{tenant, "INSERT INTO events (tenant_id, kind, actor, at, items) VALUES (" + id + ", 'settled', 'w', now() - interval '20 minutes', '[]')"},
			doctor.CheckCheckpoints, doctor.Warning, "no checkpoint covers an event of 20m0s ago",
		},
		"there are no checkpoints": {
			[]string{tenant, "INSERT INTO events (tenant_id, kind, actor, at, items) VALUES (" + id + ", 'settled', 'w', now() - interval '2 hours', '[]')"},
			doctor.CheckCheckpoints, doctor.Failed, "no checkpoint covers an event of 2h0m0s ago",
		},
		"a source that cannot be listed": {
			[]string{tenant, unlisted("mail", true)},
			doctor.CheckSources, doctor.Warning, "the source mail of the tenant database could not be listed, 3 times in a row: no such file",
		},
		"a source that lost its login": {
			[]string{tenant, unlisted("mail", true), `INSERT INTO source_logins (tenant_id, source_id, issuer, secret, login_by, lost_at, lost_reason)
				SELECT tenant_id, source_id, 'https://issuer', '', 'ada', now(), 'no refresh token' FROM sources`},
			doctor.CheckSources, doctor.Warning, "has lost its login, and its calls wait or fail: no refresh token",
		},
		"a source whose login lacks a scope": {
			[]string{tenant, unlisted("mail", true), "UPDATE sources SET list_error = NULL", `INSERT INTO source_logins (tenant_id, source_id, issuer, secret, login_by, needed_scopes)
				SELECT tenant_id, source_id, 'https://issuer', '', 'ada', '{mail.send}' FROM sources`},
			doctor.CheckSources, doctor.Warning, "lacks the scopes mail.send, and calls that need them wait or fail",
		},
		"a source that is switched off": {
			[]string{tenant, unlisted("mail", false)}, doctor.CheckSources, doctor.OK, "all that are switched on were listed",
		},
		"an unknown outcome": {
			[]string{tenant, "INSERT INTO dead_letters (tenant_id, action_id, reason, attempt) VALUES (" + id + ", " + id + ", 'unknown', 1)"},
			doctor.CheckDeadLetters, doctor.Warning, "1 calls have an unknown outcome",
		},
		"many dead letters": {
			[]string{tenant, "INSERT INTO dead_letters (tenant_id, action_id, reason, attempt) SELECT " + id + ", gen_random_uuid(), 'refused', 1 FROM generate_series(1, 1001)"},
			doctor.CheckDeadLetters, doctor.Warning, "there are 1001 dead letters",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tx := dbtest.Tx(t)
			run(t, tx, tt.broken...)

			wantFinding(t, examine(t, tx), tt.check, tt.status, tt.text)
		})
	}
}

// TestCheckpointsWithoutNotedHead has chains of three checkpoints, with their
// ages in days, some of which were noted.
func TestCheckpointsWithoutNotedHead(t *testing.T) {
	t.Parallel()
	const healthy = ""
	for name, tt := range map[string]struct {
		days  [3]int
		noted string
		want  string
	}{
		"none was noted":               {[3]int{9, 8, 1}, "false", "the tenant database covers its checkpoints of up to 9 days ago"},
		"an older one was noted":       {[3]int{20, 12, 1}, "checkpoint_no = 1", "checkpoints of up to 12 days ago"},
		"the last was noted":           {[3]int{20, 12, 8}, "checkpoint_no = 3", healthy},
		"what follows is a day old":    {[3]int{20, 12, 1}, "checkpoint_no = 2", healthy},
		"the tenant is new":            {[3]int{6, 3, 1}, "false", healthy},
		"each was noted, the last not": {[3]int{20, 12, 8}, "checkpoint_no < 3", "checkpoints of up to 8 days ago"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tx := dbtest.Tx(t)
			run(t, tx, tenant)
			for i, days := range tt.days {
				run(t, tx, fmt.Sprintf(`INSERT INTO checkpoints (tenant_id, checkpoint_no, version, from_txid, from_event, until_txid, until_event, oldest_at, newest_at, events, leaves, prev_hash, hash, created_at)
SELECT %s, n, 1, '1', n, '1', n, at, at, 1, '', '', '', at FROM (SELECT %d AS n, now() - interval '%d days 1 hour' AS at) one`, id, i+1, days))
			}
			run(t, tx, "UPDATE checkpoints SET noted_at = now() WHERE "+tt.noted)

			all := examine(t, tx)

			if tt.want == healthy {
				wantFinding(t, all, doctor.CheckHeads, doctor.OK, "")
			} else {
				wantFinding(t, all, doctor.CheckHeads, doctor.Warning, tt.want)
			}
		})
	}
}

// TestRolesWithTooManyPrivileges changes roles, which all databases share, in a
// transaction that is rolled back.
func TestRolesWithTooManyPrivileges(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ broken, text string }{
		"logs in":        {"ALTER ROLE countersign_api LOGIN", "the role countersign_api can log in"},
		"sees past":      {"ALTER ROLE countersign_worker BYPASSRLS", "the role countersign_worker can see past row security"},
		"is superuser":   {"ALTER ROLE countersign_triage SUPERUSER", "the role countersign_triage can do everything"},
		"is another too": {"GRANT pg_read_all_data TO countersign_api", "the role countersign_api has all that pg_read_all_data has"},
		"is not there":   {"ALTER ROLE countersign_triage RENAME TO countersign_gone", "role countersign_triage does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			tx := dbtest.Tx(t)
			run(t, tx, tt.broken)

			wantFinding(t, examine(t, tx), doctor.CheckRoles, doctor.Failed, tt.text)
		})
	}
}

// TestBadDatabaseLogins binds superusers and missing roles.
func TestBadDatabaseLogins(t *testing.T) {
	t.Parallel()
	const (
		bind       = "INSERT INTO db_logins (tenant_id, login_id, login) SELECT t.tenant_id, t.tenant_id, 'doctor_app' FROM tenants t LIMIT 1"
		beforeTags = "CREATE ROLE doctor_app LOGIN IN ROLE countersign_triage; UPDATE db_logins SET tools = '{*:message.archive,*:message.label}'"
		tagTool    = "INSERT INTO sources (tenant_id, source_id, kind) SELECT tenant_id, 'dav', 'dav' FROM db_logins; INSERT INTO tools (tenant_id, source_id, name, input_schema, digest) SELECT tenant_id, 'dav', 'add-contact', '{}', 'x' FROM db_logins"
	)
	for name, tt := range map[string]struct {
		role   string
		status doctor.Status
		text   string
	}{
		"as it should be": {"CREATE ROLE doctor_app LOGIN", doctor.OK, "none is a superuser"},
		"superuser":       {"CREATE ROLE doctor_app LOGIN SUPERUSER", doctor.Failed, "doctor_app may propose in SQL for database and is a superuser"},
		"no login":        {"CREATE ROLE doctor_app NOLOGIN", doctor.Warning, "the database has no such login"},
		"not there":       {"SELECT 1", doctor.Warning, "the database has no such login"},
		"unbound":         {"UPDATE db_logins SET unbound_at = now()", doctor.OK, "none is a superuser"},
		"before tags":     {beforeTags + "; " + tagTool, doctor.Warning, "not those of action tags"},
		"no tool of tags": {beforeTags, doctor.OK, "none is a superuser"},
		"bound again":     {beforeTags + "; " + tagTool + "; UPDATE db_logins SET tools = '{*:message.archive,*:add-contact}'", doctor.OK, "none is a superuser"},
		"an application":  {beforeTags + "; " + tagTool + "; REVOKE countersign_triage FROM doctor_app", doctor.OK, "none is a superuser"},
	} {
		t.Run(name, func(t *testing.T) {
			tx := dbtest.Tx(t)
			run(t, tx, tenant, bind, tt.role)

			wantFinding(t, examine(t, tx), doctor.CheckDBLogins, tt.status, tt.text)
		})
	}
}

func TestDatabaseWithoutSchema(t *testing.T) {
	t.Parallel()
	db, err := postgres.Open(t.Context(), postgres.Config{URL: dbtest.EmptyURL(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()

	all := examine(t, db)

	wantFinding(t, all, doctor.CheckMigrations, doctor.Failed, "the schema does not exist")
	wantFinding(t, all, doctor.CheckMigrations, doctor.Failed, "River's schema does not exist")
	if found := of(all, doctor.CheckGrants); len(found) > 0 {
		t.Errorf("grants are examined without a schema: %+v", found)
	}
}

func TestClocksThatDiffer(t *testing.T) {
	t.Parallel()
	db := dbtest.DB(t)

	for offset, text := range map[time.Duration]string{
		10 * time.Second: "behind this machine's", -10 * time.Second: "ahead of this machine's",
	} {
		all := doctor.Run(t.Context(), db, func() time.Time { return time.Now().Add(offset) })
		wantFinding(t, all, doctor.CheckClock, doctor.Warning, text)
	}
}

func TestSettingsOfASession(t *testing.T) {
	t.Parallel()
	tx := dbtest.Tx(t)
	run(t, tx, "SET LOCAL synchronous_commit = off", "SET LOCAL default_transaction_isolation = 'serializable'")

	all := examine(t, tx)

	wantFinding(t, all, doctor.CheckServer, doctor.Failed, "synchronous_commit is off")
	wantFinding(t, all, doctor.CheckServer, doctor.Warning, "default_transaction_isolation is serializable")
}

// TestBadServerSettings starts a server of its own, since its settings affect
// all databases.
func TestBadServerSettings(t *testing.T) {
	t.Parallel()
	srv, err := embedded.Start(t.Context(), embedded.Config{Fast: true, Settings: map[string]string{
		"max_prepared_transactions": "2", "max_connections": "20", "autovacuum": "off",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Stop(context.WithoutCancel(t.Context())) })
	db, err := postgres.Open(t.Context(), postgres.Config{URL: srv.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	prepare(t, db)
	run(t, db, "SELECT pg_create_physical_replication_slot('forgotten', true)")

	all := examine(t, db)

	wantFinding(t, all, doctor.CheckServer, doctor.Failed, "fsync is off")
	wantFinding(t, all, doctor.CheckServer, doctor.Failed, "full_page_writes is off")
	wantFinding(t, all, doctor.CheckServer, doctor.Failed, "autovacuum is off")
	wantFinding(t, all, doctor.CheckServer, doctor.Warning, "max_connections is 20")
	wantFinding(t, all, doctor.CheckPrepared, doctor.Warning, `the prepared transaction "left behind"`)
	wantFinding(t, all, doctor.CheckSlots, doctor.Warning, "the replication slot forgotten (active: false) holds")
}

// TestStandbys starts a primary with a standby, which is asynchronous, synchronous, and not the
// one that commits wait for.
func TestStandbys(t *testing.T) {
	t.Parallel()
	srv, err := embedded.Start(t.Context(), embedded.Config{Fast: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Stop(context.WithoutCancel(t.Context())) })
	standby, err := srv.Standby(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = standby.Stop(context.WithoutCancel(t.Context())) })
	primary, err := pgx.ParseConfig(srv.URL())
	if err != nil {
		t.Fatal(err)
	}
	const asynchronous, absent = "standbys replicate, and synchronous_standby_names is empty", "no standby of synchronous_standby_names replicates"
	db := connect(t, srv.URL())
	// configure changes a setting, and awaits a state of the standby.
	configure := func(server *pgxpool.Pool, name, value, want string) {
		t.Helper()
		for _, sql := range []string{"ALTER SYSTEM SET " + name + " = '" + value + "'", "SELECT pg_reload_conf()"} {
			if _, err := server.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		for got := ""; got != want; {
			if err := db.QueryRow(t.Context(), "SELECT coalesce(max(r.sync_state), '') || current_setting('synchronous_standby_names') FROM pg_stat_replication r").Scan(&got); err != nil {
				t.Fatalf("the standby is not %s: %v", want, err)
			}
		}
	}
	configure(connect(t, standby.URL()), "primary_conninfo", fmt.Sprintf("host=%s port=%d user=%s password=%s", primary.Host, primary.Port, primary.User, primary.Password), "async")
	wantFinding(t, examine(t, db), doctor.CheckServer, doctor.Warning, asynchronous)

	configure(db, "synchronous_standby_names", "*", "sync*")
	for _, f := range of(examine(t, db), doctor.CheckServer) {
		if strings.Contains(f.Message, "standby") {
			t.Errorf("with a synchronous standby: %s", f.Message)
		}
	}

	configure(db, "synchronous_standby_names", "nobody", "asyncnobody")
	wantFinding(t, examine(t, db), doctor.CheckServer, doctor.Failed, absent)
}

// connect returns connections to a server.
func connect(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	db, err := postgres.Open(t.Context(), postgres.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

func prepare(t *testing.T, db *pgxpool.Pool) {
	t.Helper()
	conn, err := db.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for _, sql := range []string{"BEGIN", "CREATE TABLE public.held ()", "PREPARE TRANSACTION 'left behind'"} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// TestUserWithFewPrivileges examines as a deployment's own login.
func TestUserWithFewPrivileges(t *testing.T) {
	t.Parallel()
	tx := dbtest.Tx(t)
	run(t, tx, "CREATE ROLE countersign_doctor_test NOLOGIN", "SET LOCAL ROLE countersign_doctor_test")

	all := examine(t, tx)

	wantFinding(t, all, doctor.CheckTransactions, doctor.Warning, "the sessions of other users are not visible")
	wantFinding(t, all, doctor.CheckMigrations, doctor.Warning, "this could not be checked")
	wantFinding(t, all, doctor.CheckRowSecurity, doctor.OK, "it is forced")
}
