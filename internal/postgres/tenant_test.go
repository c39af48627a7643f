package postgres_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

const denied = "42501" // insufficient_privilege, also for row-level security

// fixture is a database with two tenants that have a row in every table.
type fixture struct {
	*dbtest.Session
	t      *testing.T
	a, b   envelope.TenantID
	tables []string
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	h := fixture{
		Session: dbtest.Tx(t), t: t,
		a: envelope.TenantID(uuid.Must(uuid.NewV7())), b: envelope.TenantID(uuid.Must(uuid.NewV7())),
	}
	h.tables = query[string](h, postgres.Admin(), `
		SELECT c.relname::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
		WHERE c.relnamespace = 'countersign_data'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND a.attname = 'tenant_id'
		ORDER BY 1`)
	for _, tenant := range []envelope.TenantID{h.a, h.b} {
		h.insertEveryRow(tenant)
	}
	for _, table := range h.tables {
		for _, tenant := range []envelope.TenantID{h.a, h.b} {
			if h.rows(table, tenant) == 0 {
				t.Fatalf("table %s has no row for the test to look for; furnish it", table)
			}
		}
	}
	return h
}

// insertEveryRow gives a tenant a row in every table.
func (h fixture) insertEveryRow(tenant envelope.TenantID) {
	h.t.Helper()
	for _, sql := range []string{
		`INSERT INTO tenants (tenant_id, name) VALUES ($1::uuid, 't-' || $1::uuid::text)`,
		`INSERT INTO api_tokens (token_id, tenant_id, name, role, token_hash) VALUES ($1::uuid, $1::uuid, 'n', 'agent', uuid_send($1::uuid))`,
		`INSERT INTO program_logins (tenant_id, token_id, client_id, program, redirect_uri, resource, code_hash, code_challenge, code_expires_at)
			VALUES ($1::uuid, $1::uuid, 'c', 'p', 'r', 'r', uuid_send($1::uuid), 'c', now())`,
		`INSERT INTO refresh_tokens (tenant_id, token_id, refresh_hash) VALUES ($1::uuid, $1::uuid, uuid_send($1::uuid))`,
		`INSERT INTO operators (tenant_id, operator_id, name) VALUES ($1, $1, 'n')`,
		`INSERT INTO identity_providers (tenant_id, provider_id, issuer, audience) VALUES ($1::uuid, 'p', 'https://issuer', $1::uuid::text)`,
		`INSERT INTO web_sessions (tenant_id, session_id, secret_hash, via, person, operator_id, idle_at, expires_at)
			VALUES ($1::uuid, $1::uuid, uuid_send($1::uuid), 'oidc', $1::uuid, $1::uuid, now() + interval '1 hour', now() + interval '1 hour')`,
		`INSERT INTO login_codes (tenant_id, code_hash, person, operator_id, expires_at) VALUES ($1::uuid, uuid_send($1::uuid), $1::uuid, $1::uuid, now() + interval '1 hour')`,
		`INSERT INTO refused_logins (tenant_id, about) VALUES ($1, 'provider p')`,
		`INSERT INTO sources (tenant_id, source_id, kind) VALUES ($1, 's', 'builtin')`,
		`INSERT INTO source_clients (tenant_id, issuer, secret, configured) VALUES ($1, 'https://issuer', '', false)`,
		`INSERT INTO source_login_states (tenant_id, source_id, state_hash, begun_by, secret, expires_at) VALUES ($1::uuid, 's', uuid_send($1::uuid), $1::uuid, '', now() + interval '1 hour')`,
		`INSERT INTO source_logins (tenant_id, source_id, issuer, secret, login_by) VALUES ($1, 's', 'https://issuer', '', 'b')`,
		`INSERT INTO tools (tenant_id, source_id, name, input_schema, digest) VALUES ($1, 's', 't', '{}', '')`,
		`INSERT INTO policy_modes (tenant_id, key, mode) VALUES ($1, '*', 'allow')`,
		`INSERT INTO policy_rules (tenant_id, rule_id, key, expression, mode) VALUES ($1, 'r', '*', 'true', 'deny')`,
		`INSERT INTO session_modes (tenant_id, session_id, key, mode, expires_at) VALUES ($1, 's', '*', 'deny', now() + interval '1 day')`,
		`INSERT INTO preferences (tenant_id, key) VALUES ($1, '*')`,
		`INSERT INTO grants (tenant_id, grant_id, source_id, tool_name, tool_digest, expires_at) VALUES ($1, $1, 's', 't', '', now() + interval '1 day')`,
		`INSERT INTO buckets (tenant_id, name) VALUES ($1, 'b')`,
		`INSERT INTO quiet_hours (tenant_id, scope, timezone, windows) VALUES ($1, 'tenant', 'UTC', '[]')`,
		`INSERT INTO do_not_contact (tenant_id, kind, value, bare) VALUES ($1, 'email', 'a@b', 'a@b')`,
		`INSERT INTO employees (tenant_id, employee_id, trust) VALUES ($1, $1, 'low')`,
		`INSERT INTO pauses (pause_id, tenant_id, scope, reason, paused_by) VALUES ($1, $1, 'tenant', 'r', 'p')`,
		`INSERT INTO wakes (tenant_id, waits_for) VALUES ($1, 'quiet_hours')`,
		`INSERT INTO breakers (tenant_id, source_id, state, cause, open_until, worker) VALUES ($1, 's', 'open', 'breaker', now(), 'w')`,
		`INSERT INTO decisions (tenant_id, decision_id, mode, mode_source, trace) VALUES ($1, $1, 'allow', 's', '[]')`,
		`INSERT INTO actions (tenant_id, action_id, content_digest, source_id, tool_name, args, risk, effect, decision_id, config_version,
			tool_digest, approval_state, bucket_id, max_attempts) VALUES ($1, $1, '', 's', 't', '{}', 'low', 'once', $1, 1, '', 'auto', 1, 1)`,
		`INSERT INTO action_words (tenant_id, action_id, part, words, people) VALUES ($1, $1, 1, '', '')`,
		`INSERT INTO known_addresses (tenant_id, key, name, action_id) VALUES ($1, 'k', 'n', $1)`,
		`INSERT INTO backlog_samples (tenant_id, at, due, scheduled, in_flight, approvals, oldest_due) VALUES ($1, now(), 1, 0, 0, 0, 0)`,
		`INSERT INTO approvals (tenant_id, action_id, needed) VALUES ($1, $1, 1)`,
		`INSERT INTO votes (tenant_id, action_id, round, person, token, actor, decision) VALUES ($1, $1, 1, $1, $1, 'n', 'grant')`,
		`INSERT INTO reviews (tenant_id, key) VALUES ($1, '*')`,
		`INSERT INTO outbox (tenant_id, action_id, bucket_id, next_attempt_at, max_attempts) VALUES ($1, $1, 1, now(), 1)`,
		`INSERT INTO bucket_claims (tenant_id, bucket_id, claim_id, n) VALUES ($1, 1, 1, 1)`,
		`INSERT INTO tool_executions (tenant_id, action_id, attempt, status, finished_at) VALUES ($1, $1, 1, 'pending', now())`,
		`INSERT INTO workflows (tenant_id, workflow_id, external_id, content_digest, atomic, state, proposer, session_bound) VALUES ($1, $1, 'x', '', false, 'running', 'p', false)`,
		`INSERT INTO workflow_steps (tenant_id, workflow_id, step, state, source_id, tool_name, inputs, options) VALUES ($1, $1, 0, 'planned', 's', 't', '{}', '{}')`,
		`INSERT INTO dead_letters (tenant_id, action_id, reason, attempt) VALUES ($1, $1, 'refused', 1)`,
		`INSERT INTO replay_schedules (tenant_id, selection, next_at) VALUES ($1, 'ids', now())`,
		`INSERT INTO events (tenant_id, kind, actor, items) VALUES ($1, 'proposed', 'a', '[]')`,
		`INSERT INTO checkpoints (tenant_id, checkpoint_no, version, from_txid, from_event, until_txid, until_event, oldest_at, newest_at, events, leaves, prev_hash, hash, created_at)
			VALUES ($1, 1, 1, '1', 1, '1', 1, now(), now(), 1, '', '', '', now())`,
		`INSERT INTO subscriptions (tenant_id, subscription_id, name, source_id, kinds, cursor_txid, cursor_event) VALUES ($1, $1, 'n', 's', '{settled}', '0', 0)`,
		`INSERT INTO approval_messages (tenant_id, subscription_id, action_id, delivery_id) VALUES ($1, $1, $1, $1)`,
		`INSERT INTO retention (tenant_id, kind, days, action) VALUES ($1, 'actions', 90, 'report')`,
		`INSERT INTO dry_runs (tenant_id, execution_id, content_digest, source_id, tool_name, args, risk, effect, mode, mode_source, trace, preview)
			VALUES ($1, $1, '', 's', 't', '{}', 'low', 'once', 'allow', 's', '[]', '{}')`,
		`INSERT INTO snapshots (tenant_id, action_id, attempt, stage, tool_name) VALUES ($1, $1, 1, 'before', 't')`,
		`INSERT INTO snapshot_rules (tenant_id, source_id, tool_name, rule) VALUES ($1, 's', 't', '{}')`,
		`INSERT INTO lost_calls (tenant_id, action_id, external_id, source_id, tool_name, effect, outcome, code, provider_id, worker, called_at, known)
			VALUES ($1, $1, '', 's', 't', 'once', 'sent', '', '', 'w', now(), false)`,
		`INSERT INTO retention_checks (tenant_id, checked_at, actions, events) VALUES ($1, now(), 0, 0)`,
		`INSERT INTO notes (tenant_id, note_id, source_id, key, body) VALUES ($1, $1, 's', 'k', 'b')`,
		`INSERT INTO db_logins (tenant_id, login_id, login) VALUES ($1, $1, 'login-' || ($1::uuid)::text)`,
		`INSERT INTO proposals (tenant_id, proposal_id, login_id, body, bytes) VALUES ($1, $1, $1, '{}', 2)`,
		`INSERT INTO session_usage (tenant_id, session_id, window_from, used) VALUES ($1, 's', now(), 1)`,
		`INSERT INTO triage_accounts (tenant_id, account_id, name, kind) VALUES ($1, $1, 'a', 'maildir')`,
		`INSERT INTO triage_schedules (tenant_id, account_id) VALUES ($1, $1)`,
		`INSERT INTO triage_runs (tenant_id, run_id, account_id, kind) VALUES ($1, $1, $1, 'changes')`,
		`INSERT INTO triage_folders (tenant_id, account_id, folder) VALUES ($1, $1, 'INBOX')`,
		`INSERT INTO triage_messages (tenant_id, message_id, account_id, identity, thread_id, outgoing, received_at, size) VALUES ($1, $1, $1, sha256('x'), $1, false, now(), 1)`,
		`INSERT INTO triage_refs (tenant_id, account_id, ref, outgoing, message_id) VALUES ($1, $1, 'r', false, $1)`,
		`INSERT INTO triage_locations (tenant_id, account_id, folder, key, message_id) VALUES ($1, $1, 'INBOX', '1', $1)`,
		`INSERT INTO triage_decisions (tenant_id, message_id, account_id, run_id, act, category, priority, bucket, cohort, level, confidence, question, decision, signals, prediction, model)
			VALUES ($1, $1, $1, $1, 'fyi', 'primary', 'fyi', 'informational', 'default', 2, 1, false, '{}', '{}', '{}', 'm')`,
		`INSERT INTO triage_senders (tenant_id, account_id, address, first_seen, last_seen) VALUES ($1, $1, 'a@b', now(), now())`,
		`INSERT INTO triage_corrections (tenant_id, account_id, message_id, head, label, features, made_by) VALUES ($1, $1, $1, 'act', 'fyi', '', 'n')`,
		`INSERT INTO triage_set_aside (tenant_id, account_id, folder, key, received_at, size, step, reason) VALUES ($1, $1, 'n', 'n', now(), 1, 'read', 'n')`,
		`INSERT INTO triage_tags (tenant_id, message_id, action, account_id, state, tagged_by) VALUES ($1, $1, 'a', $1, 'due', 'n')`,
		`INSERT INTO triage_tag_log (tenant_id, log_id, account_id, message_id, action, try, source_id, tool_name, status) VALUES ($1, $1, $1, $1, 'a', 1, 's', 't', 'failed')`,
		`INSERT INTO triage_follow_ups (tenant_id, message_id, account_id, set_by) VALUES ($1, $1, $1, 'n')`,
		`UPDATE triage_accounts SET proposals = '{"brief":{"channels":[{"source":"s"}]}}' WHERE tenant_id = $1`,
		`INSERT INTO triage_briefs (tenant_id, external_id, account_id, kind, channel, due_at, until_at, envelope)
			SELECT $1, n, $1, 'alert', 'c', now(), now(), jsonb_build_object('type', 'mcp.exec', 'external_id', n, 'tool', '{"source":"s","name":"slack.webhook.send"}'::jsonb, 'args', '{}'::jsonb, 'constraints', '{}'::jsonb)
			FROM (SELECT 'triage:brief:' || repeat('0', 64) AS n) t`,
		`INSERT INTO triage_calendars (tenant_id, account_id, source_id, zone, tried_at) VALUES ($1, $1, 's', 'UTC', now())`,
		`INSERT INTO triage_findings (tenant_id, message_id, finding_no, account_id, kind, fields) VALUES ($1, $1, 1, $1, 'task', '[]')`,
		`INSERT INTO triage_labels (tenant_id, account_id, name, definition, set_by) VALUES ($1, $1, 'l', '{}', 'n')`,
		`INSERT INTO triage_labeled (tenant_id, message_id, label, account_id, score) VALUES ($1, $1, 'l', $1, 1)`,
		`INSERT INTO triage_label_due (tenant_id, account_id, message_id) VALUES ($1, $1, $1)`,
		`INSERT INTO triage_texts (tenant_id, account_id, message_id, kind, asked_by) VALUES ($1, $1, $1, 'draft', 'n')`,
		`INSERT INTO triage_proposals (tenant_id, external_id, account_id, message_id, action, fields, envelope) SELECT $1::uuid, x.id, $1::uuid, $1::uuid, 'archive',
			'[{"pointer":"/account","value":"a","origin":"config"}]',
			jsonb_build_object('type', 'mcp.exec', 'external_id', x.id, 'tool', jsonb_build_object('source', 'mail', 'name', 'message.archive'), 'args', jsonb_build_object('account', 'a'))
			FROM (SELECT 'triage:' || encode(sha256('x'), 'hex') AS id) x`,
	} {
		if _, err := h.Exec(h.t.Context(), sql, tenant.String()); err != nil {
			h.t.Fatalf("%s: %v", sql, err)
		}
	}
}

// query returns the only column of a query that a scope makes.
func query[T any](h fixture, scope postgres.Scope, sql string, args ...any) []T {
	h.t.Helper()
	values, err := tryQuery[T](h, scope, sql, args...)
	if err != nil {
		h.t.Fatalf("%s: %v", sql, err)
	}
	return values
}

func tryQuery[T any](h fixture, scope postgres.Scope, sql string, args ...any) (values []T, err error) {
	err = postgres.InTx(h.t.Context(), h.Session, scope, func(tx pgx.Tx) error {
		rows, err := tx.Query(h.t.Context(), sql, args...)
		if err != nil {
			return err
		}
		values, err = pgx.CollectRows(rows, pgx.RowTo[T])
		return err
	})
	return values, err
}

// errUndo rolls back a transaction whose effect is only counted.
var errUndo = errors.New("undo")

// attempt makes a change as a scope, counts the rows and rolls back.
func (h fixture) attempt(scope postgres.Scope, sql string, args ...any) (affected int64, err error) {
	err = postgres.InTx(h.t.Context(), h.Session, scope, func(tx pgx.Tx) error {
		tag, err := tx.Exec(h.t.Context(), sql, args...)
		affected = tag.RowsAffected()
		return errors.Join(err, errUndo)
	})
	if code(err) == "" {
		return affected, nil
	}
	return affected, err
}

func code(err error) string {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return ""
	}
	return pg.Code
}

// rows counts a tenant's rows, which no policy hides.
func (h fixture) rows(table string, tenant envelope.TenantID) (n int64) {
	h.t.Helper()
	return query[int64](h, postgres.Admin(), fmt.Sprintf("SELECT count(1) FROM %s WHERE tenant_id = $1", table), tenant.String())[0]
}

func TestATenantSeesNothingOfAnother(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	as := postgres.API(h.b)

	for _, table := range append(h.tables, "envelopes") {
		all := query[string](h, as, fmt.Sprintf("SELECT DISTINCT tenant_id::text FROM %s", table))
		named := query[int64](h, as, fmt.Sprintf("SELECT count(1) FROM %s WHERE tenant_id = $1", table), h.a.String())[0]
		either := query[int64](h, as, fmt.Sprintf("SELECT count(1) FROM %s WHERE tenant_id = $1 OR true", table), h.a.String())[0]

		if diff := cmp.Diff([]string{h.b.String()}, all); diff != "" {
			t.Errorf("tenants to be seen in %s (-want +got):\n%s", table, diff)
		}
		if named != 0 || either != h.rows(table, h.b) {
			t.Errorf("%s shows %d rows of the other tenant by name, and %d rows in all", table, named, either)
		}
	}
}

func TestATenantChangesNothingOfAnother(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	as := postgres.API(h.b)

	for _, table := range h.tables {
		before := h.rows(table, h.a)
		for _, sql := range []string{
			"UPDATE %s SET tenant_id = tenant_id WHERE tenant_id = '" + h.a.String() + "'",
			"DELETE FROM %s WHERE tenant_id = '" + h.a.String() + "'",
		} {
			if n, err := h.attempt(as, fmt.Sprintf(sql, table)); n != 0 || err != nil && code(err) != denied {
				t.Errorf("%s changed %d rows of the other tenant (%v)", fmt.Sprintf(sql, table), n, err)
			}
		}
		for _, sql := range []string{"UPDATE %s SET tenant_id = tenant_id", "DELETE FROM %s"} {
			if n, err := h.attempt(as, fmt.Sprintf(sql, table)); n > h.rows(table, h.b) || err != nil && code(err) != denied {
				t.Errorf("%s changed %d rows, more than the tenant has (%v)", fmt.Sprintf(sql, table), n, err)
			}
		}
		if _, err := h.attempt(as, fmt.Sprintf("UPDATE %s SET tenant_id = $1", table), h.a.String()); code(err) != denied {
			t.Errorf("rows of %s could be given to another tenant: %v", table, err)
		}
		if after := h.rows(table, h.a); after != before {
			t.Errorf("%s has %d rows of the other tenant left, of %d", table, after, before)
		}
	}
}

func TestATenantWritesNothingForAnother(t *testing.T) {
	t.Parallel()
	h := newFixture(t)

	for _, table := range h.tables {
		copied := "copy_of_" + table
		for _, sql := range []string{
			fmt.Sprintf("CREATE TEMP TABLE %s ON COMMIT DROP AS TABLE %s WITH NO DATA", copied, table),
			fmt.Sprintf("INSERT INTO %s SELECT * FROM %s WHERE tenant_id = '%s'", copied, table, h.a),
			fmt.Sprintf("GRANT SELECT ON %s TO countersign_api", copied),
		} {
			if _, err := h.Exec(t.Context(), sql); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
		}

		if n := query[int64](h, postgres.API(h.b), "SELECT count(1) FROM "+copied)[0]; n == 0 {
			t.Fatalf("%s is empty", copied)
		}
		_, err := h.attempt(postgres.API(h.b), fmt.Sprintf("INSERT INTO %s OVERRIDING SYSTEM VALUE SELECT * FROM %s", table, copied))

		if code(err) != denied {
			t.Errorf("INSERT INTO %s for another tenant = %v, want it denied", table, err)
		}
	}
}

func TestWithoutATenantNothingIsVisible(t *testing.T) {
	t.Parallel()
	h := newFixture(t)

	for _, table := range append(h.tables, "envelopes") {
		if n := query[int64](h, postgres.Authenticator(), "SELECT count(1) FROM "+table)[0]; n != 0 {
			t.Errorf("%s shows %d rows to nobody", table, n)
		}
	}
}

// The owner runs the functions that must read across tenants or delete rows that
// no other role may, and sees some tables for them only.
func TestPoliciesApplyToTheOwner(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	if _, err := h.Exec(t.Context(), "SET LOCAL ROLE countersign_owner"); err != nil {
		t.Fatal(err)
	}

	var seen []string
	for _, table := range h.tables {
		var n int64
		if err := h.QueryRow(t.Context(), "SELECT count(1) FROM "+table).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			seen = append(seen, table)
		}
	}

	want := []string{"action_word_cursors", "action_words", "actions", "api_tokens", "approvals", "buckets", "checkpoints", "db_logins", "dead_letters", "decisions", "events", "identity_providers", "known_addresses", "login_codes", "operators", "outbox", "program_logins", "proposals", "refresh_tokens", "retention", "snapshots", "subscriptions", "tenants", "tool_executions", "triage_briefs", "triage_messages", "triage_proposals", "triage_tag_log", "triage_tags", "web_sessions"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("what the owner sees (-want +got):\n%s", diff)
	}
}

func TestNoRoleMayTruncate(t *testing.T) {
	t.Parallel()
	h := newFixture(t)

	for _, table := range h.tables {
		for _, role := range []string{"countersign_api", "countersign_worker"} {
			// TRUNCATE is not subject to row-level security.
			if query[bool](h, postgres.Admin(), "SELECT has_table_privilege($1, $2, 'TRUNCATE')", role, table)[0] {
				t.Errorf("%s may truncate %s", role, table)
			}
		}
	}
}

func TestPartitionsCannotBeReadByName(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	partitions := query[string](h, postgres.Admin(), "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'tool_executions'::regclass")
	if len(partitions) < 3 {
		t.Fatalf("tool_executions has %d partitions, want this month and two more", len(partitions))
	}
	if made := query[int32](h, postgres.Worker(), "SELECT ensure_partitions(5)")[0]; made < 3 {
		t.Fatalf("ensure_partitions(5) made %d, want the missing months", made)
	}
	partitions = query[string](h, postgres.Admin(), "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'tool_executions'::regclass")

	for _, partition := range partitions {
		for _, scope := range []postgres.Scope{postgres.API(h.a), postgres.Worker()} {
			if _, err := tryQuery[int64](h, scope, "SELECT count(1) FROM "+partition); code(err) != denied {
				t.Errorf("SELECT FROM %s = %v, want it denied", partition, err)
			}
		}
	}
}

// This test finds the tables of later migrations too.
func TestEveryTableOfATenantIsGuarded(t *testing.T) {
	t.Parallel()
	h := newFixture(t)

	open := query[string](h, postgres.Admin(), `
		SELECT c.relname::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
		WHERE c.relnamespace = 'countersign_data'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND a.attname = 'tenant_id'
			AND NOT (c.relrowsecurity AND c.relforcerowsecurity AND c.relowner = 'countersign_owner'::regrole)`)
	bypassing := query[string](h, postgres.Admin(),
		"SELECT rolname::text FROM pg_roles WHERE rolname LIKE 'countersign%' AND (rolsuper OR rolbypassrls OR rolcanlogin)")
	views := query[string](h, postgres.Admin(), `
		SELECT relname::text FROM pg_class WHERE relnamespace = 'countersign_data'::regnamespace AND relkind IN ('v', 'm')
			AND NOT coalesce('security_invoker=true' = ANY (reloptions), false)`)

	if len(open) > 0 || len(bypassing) > 0 || len(views) > 0 {
		t.Errorf("tables without row-level security %q, roles past it %q, views past it %q; want none", open, bypassing, views)
	}
}

// This test covers the functions of later migrations too. The names in a
// function must not be resolved by the caller's search path: they are resolved
// when it is created, or in its own search path.
func TestEveryFunctionIsGuarded(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	const ours = `SELECT p.oid::regprocedure::text FROM pg_proc p
		WHERE p.pronamespace = 'countersign_data'::regnamespace AND p.proname !~ '^river_'
			AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')`

	all := query[string](h, postgres.Admin(), ours)
	public := query[string](h, postgres.Admin(), ours+` AND EXISTS (SELECT FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a WHERE a.grantee = 0)`)
	loose := query[string](h, postgres.Admin(), ours+` AND p.prosqlbody IS NULL AND NOT coalesce('search_path=pg_catalog, countersign_data, pg_temp' = ANY (p.proconfig), false)`)
	foreign := query[string](h, postgres.Admin(), ours+" AND p.proowner <> 'countersign_owner'::regrole")
	triggers := query[string](h, postgres.Admin(), ours+` AND p.prorettype = 'trigger'::regtype
		AND (has_function_privilege('countersign_api', p.oid, 'EXECUTE') OR has_function_privilege('countersign_worker', p.oid, 'EXECUTE'))`)

	if len(all) < 20 || len(public)+len(loose)+len(foreign)+len(triggers) > 0 {
		t.Errorf("of %d functions: open to everyone %q, without a search path %q, not the owner's %q, triggers that a role may use %q; want none",
			len(all), public, loose, foreign, triggers)
	}
}

// The API's role may make temporary tables, and must not be able to give them
// triggers that act as the owner: a row that names another tenant would raise
// that tenant's version.
func TestTemporaryTablesHaveNoTriggersOfTheOwner(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	version := func() int64 {
		return query[int64](h, postgres.Admin(), "SELECT config_version FROM tenants WHERE tenant_id = $1", h.b.String())[0]
	}
	before := version()

	for _, function := range []string{"bump_config_version_row()", "stamp_policy_version()", "tenant_timezone_changed()"} {
		err := postgres.InTx(t.Context(), h, postgres.API(h.a), func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), "CREATE TEMPORARY TABLE mine (tenant_id uuid, version bigint) ON COMMIT DROP; "+
				"CREATE TRIGGER mine_bump AFTER INSERT ON mine FOR EACH ROW EXECUTE FUNCTION "+function+"; "+
				"INSERT INTO mine VALUES ('"+h.b.String()+"')")
			return err
		})
		if code(err) != denied {
			t.Errorf("a trigger of %s on a temporary table = %v, want it denied", function, err)
		}
	}
	if after := version(); after != before {
		t.Errorf("another tenant's version went from %d to %d", before, after)
	}
}

func TestFunctionsOfTheOwnerAreRestricted(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	const definer = "SELECT p.oid::regprocedure::text FROM pg_proc p WHERE p.pronamespace IN ('countersign_data'::regnamespace, 'countersign'::regnamespace) AND p.prosecdef"

	loose := query[string](h, postgres.Admin(), definer+" AND NOT coalesce(array_to_string(p.proconfig, ',') LIKE '%search_path=pg_catalog, countersign_data, pg_temp%', false)")
	foreign := query[string](h, postgres.Admin(), definer+" AND p.proowner <> 'countersign_owner'::regrole")

	if len(loose) > 0 || len(foreign) > 0 {
		t.Errorf("without a search path %q, not the owner's %q; want none", loose, foreign)
	}
}

func TestAuthenticateIsForTheAPIAlone(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	const call = "SELECT tenant_id::text FROM authenticate(uuid_send($1::uuid))"

	if got := query[string](h, postgres.Authenticator(), call, h.a.String()); !slices.Equal(got, []string{h.a.String()}) {
		t.Errorf("authenticate = %q, want the token's tenant", got)
	}
	if got := query[string](h, postgres.Authenticator(), call, uuid.NewString()); len(got) != 0 {
		t.Errorf("authenticate with an unknown token = %q, want nothing", got)
	}
	if _, err := tryQuery[string](h, postgres.Worker(), call, h.a.String()); code(err) != denied {
		t.Errorf("authenticate for the worker = %v, want it denied", err)
	}
	for _, role := range []string{"countersign_worker", "countersign_triage"} {
		if query[bool](h, postgres.Admin(), "SELECT has_function_privilege($1, 'authenticate(bytea)', 'EXECUTE')", role)[0] {
			t.Errorf("%s may call authenticate", role)
		}
	}
	for _, over := range []string{"revoked_at = now()", "expires_at = now()"} {
		if _, err := h.Exec(t.Context(), "UPDATE api_tokens SET "+over+" WHERE tenant_id = $1", h.b.String()); err != nil {
			t.Fatal(err)
		}
		if got := query[string](h, postgres.Authenticator(), call, h.b.String()); len(got) != 0 {
			t.Errorf("authenticate with a token of which %s = %q, want nothing", over, got)
		}
		if _, err := h.Exec(t.Context(), "UPDATE api_tokens SET revoked_at = NULL, expires_at = NULL WHERE tenant_id = $1", h.b.String()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheWorkerKnowsNoTokens(t *testing.T) {
	t.Parallel()
	h := newFixture(t)

	if _, err := tryQuery[int64](h, postgres.Worker(), "SELECT count(1) FROM api_tokens"); code(err) != denied {
		t.Errorf("SELECT FROM api_tokens as the worker = %v, want it denied", err)
	}
}
