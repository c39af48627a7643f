package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/triage/account"
)

// purge erases a set of the data about the account work.
func (f *fixture) purge() (p wire.TriagePurge, err error) {
	f.set(func(ctx context.Context, tx pgx.Tx) error {
		p, err = account.Purge(ctx, tx, f.tenant, "work")
		return nil
	})
	return p, err
}

// holding returns the tables with a row that contains a text.
func (f *fixture) holding(text string) (tables []string) {
	f.t.Helper()
	rows, _ := f.db.Query(f.t.Context(), `SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname !~ '^pg_|^information_schema$' ORDER BY 1`)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(all) < 30 {
		f.t.Fatalf("%d tables, %v, want all", len(all), err)
	}
	for _, table := range all {
		if one[bool](f, "SELECT EXISTS (SELECT FROM "+table+" r WHERE to_jsonb(r)::text LIKE '%' || $1 || '%')", text) {
			tables = append(tables, table)
		}
	}
	return tables
}

// held counts the rows of the account work in every table that has an account_id.
func (f *fixture) held() map[string]int {
	f.t.Helper()
	rows, _ := f.db.Query(f.t.Context(), `SELECT c.table_name::text FROM information_schema.columns c
		WHERE c.column_name = 'account_id' AND c.table_schema = 'countersign_data' AND c.table_name NOT IN ('triage_accounts', 'triage_schedules') ORDER BY 1`)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		f.t.Fatal(err)
	}
	counts := make(map[string]int, len(all))
	for _, table := range all {
		counts[table] = one[int](f, "SELECT count(1)::int FROM "+table+" r JOIN triage_accounts a USING (tenant_id, account_id) WHERE a.name = 'work'")
	}
	return counts
}

// TestPurgeLeavesNoTextOfTheAccount fills every table about mail with a canary word,
// purges the account, and searches all tables of the database for it.
func TestPurgeLeavesNoTextOfTheAccount(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	canary := "canary" + uuid.NewString()[:8]
	for i := range 3 {
		m := newsletter(fmt.Sprintf("%d@garden-weekly.example", i))
		m.subject, m.from, m.body = m.subject+" "+canary, canary+" <news@"+canary+".example>", m.body+" "+canary+"?"
		f.deliver("", m.raw())
	}
	f.deliver("Sent", testMail{id: canary + "@tallis.example", from: owner, to: "bob@" + canary + ".example", subject: canary, body: canary, headers: "In-Reply-To: <" + canary + "@x>"}.raw())
	f.once()
	f.exec("INSERT INTO triage_corrections (tenant_id, account_id, message_id, head, label, features, made_by) SELECT tenant_id, account_id, message_id, 'act', 'fyi', convert_to($1, 'utf8'), 'ada' FROM triage_decisions", canary)
	f.exec("INSERT INTO triage_texts (tenant_id, account_id, message_id, kind, note, asked_by, text) SELECT tenant_id, account_id, message_id, 'summary', $1, 'ada', $1 FROM triage_decisions", canary)
	f.exec("INSERT INTO triage_set_aside (tenant_id, account_id, folder, key, received_at, size, step, reason) SELECT tenant_id, account_id, $1, '1', now(), 1, 'read', $1 FROM triage_accounts", canary)
	f.exec("INSERT INTO triage_calendars (tenant_id, account_id, source_id, zone, tried_at, events) SELECT tenant_id, account_id, 'home', 'UTC', now(), to_jsonb($1::text) FROM triage_accounts", canary)
	f.exec("INSERT INTO triage_tags (tenant_id, message_id, action, account_id, state, problem, tagged_by) SELECT tenant_id, message_id, 'a', account_id, 'due', $1, $1 FROM triage_messages", canary)
	f.exec("INSERT INTO triage_follow_ups (tenant_id, message_id, account_id, set_by) SELECT tenant_id, message_id, account_id, $1 FROM triage_messages", canary)
	f.exec(`INSERT INTO triage_findings (tenant_id, message_id, finding_no, account_id, kind, key, fields)
		SELECT tenant_id, message_id, 100, account_id, 'task', $1, jsonb_build_array($1::text) FROM triage_messages`, canary)
	f.exec(`INSERT INTO triage_tag_log (tenant_id, log_id, account_id, message_id, action, try, source_id, tool_name, status, error)
		SELECT tenant_id, message_id, account_id, message_id, 'a', 1, 's', 't', 'failed', $1 FROM triage_messages`, canary)
	f.exec(`UPDATE triage_accounts SET proposals = jsonb_set(proposals, '{brief}', '{"zone":"UTC","channels":[{"source":"s"}]}')`)
	f.exec(`INSERT INTO triage_briefs (tenant_id, external_id, account_id, kind, channel, due_at, until_at, envelope)
		SELECT a.tenant_id, n, a.account_id, 'alert', $1, now(), now(), jsonb_build_object('type', 'mcp.exec', 'external_id', n, 'tool', '{"source":"s","name":"slack.webhook.send"}'::jsonb,
			'args', jsonb_build_object('text', $1::text), 'constraints', '{}'::jsonb)
		FROM triage_accounts a, (SELECT 'triage:brief:' || repeat('0', 64) AS n) t`, canary)
	f.exec("INSERT INTO triage_labels (tenant_id, account_id, name, definition, set_by) SELECT tenant_id, account_id, 'bills', jsonb_build_object('description', $1::text), 'ada' FROM triage_accounts", canary)
	f.exec("INSERT INTO triage_labeled (tenant_id, message_id, label, account_id, score, because) SELECT tenant_id, message_id, 'bills', account_id, 1, ARRAY[$1] FROM triage_messages", canary)
	f.exec("INSERT INTO triage_label_due (tenant_id, account_id, message_id) SELECT tenant_id, account_id, message_id FROM triage_messages")
	f.exec("UPDATE triage_runs SET error = $1", canary)
	f.exec("UPDATE triage_schedules SET last_error = $1, corrections_at = now()", canary)
	before := f.held()
	for table, n := range before {
		if n == 0 {
			t.Errorf("the account has no row in %s, so that the test shows nothing about it", table)
		}
	}

	_, read := f.purge()
	f.order("triage/work", true, false)
	f.exec("UPDATE triage_schedules SET holder = gen_random_uuid(), lease_until = now() + interval '1 hour'")
	_, running := f.purge()
	f.exec("UPDATE triage_schedules SET holder = NULL, lease_until = NULL")
	if !errors.Is(read, fault.Conflict) || !errors.Is(running, fault.Conflict) {
		t.Errorf("Purge of an account that is read = %v, while a run holds it = %v, want conflicts", read, running)
	}
	first, err := f.purge()
	waiting, again := f.purge()
	if err != nil || again != nil || first.Done || waiting.Done || waiting.Rows.Sum() != 0 || waiting.Open == 0 || int(first.Rows.Messages+waiting.Open) != before["triage_messages"] {
		t.Errorf("Purge with open actions = %+v, %v, then %+v, %v, want their messages kept", first, err, waiting, again)
	}
	f.exec("DELETE FROM proposals") // as the worker that took them
	last, err := f.purge()

	if err != nil || !last.Done || last.Rows.Messages != waiting.Open {
		t.Errorf("Purge = %+v, %v, want the rest", last, err)
	}
	// Follow-ups and findings go with the messages, and briefs before them.
	delete(before, "triage_follow_ups")
	delete(before, "triage_briefs")
	delete(before, "triage_calendars")
	delete(before, "triage_findings")
	delete(before, "triage_labeled")
	delete(before, "triage_label_due")
	if sum := first.Rows.Plus(last.Rows); int(sum.Sum()) != total(before) {
		t.Errorf("erased %+v of %v", sum, before)
	}
	if tables := f.holding(canary); len(tables) > 0 {
		t.Errorf("%v hold text of the account", tables)
	}
	if n := total(f.held()); n != 0 {
		t.Errorf("%d rows are left: %v", n, f.held())
	}
	if !one[bool](f, "SELECT last_run_id IS NULL AND last_started_at IS NULL AND corrections_at = '-infinity' FROM triage_schedules") {
		t.Error("the schedule has a run that was erased")
	}
	f.lift("triage/work")
	f.once()
	if after := f.held(); after["triage_messages"] != before["triage_messages"] || after["triage_corrections"] != 0 {
		t.Errorf("read again: %v, want all messages and no correction", after)
	}
}

func total(counts map[string]int) (sum int) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

// TestPurgeWorksInSets purges more rows than one transaction erases. Another account
// keeps its own.
func TestPurgeWorksInSets(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.put("home", func(*account.Account) {})
	f.put("work", func(a *account.Account) { a.Enabled = false })
	f.exec(`INSERT INTO triage_messages (tenant_id, message_id, account_id, identity, thread_id, outgoing, received_at, size)
		SELECT a.tenant_id, x.id, a.account_id, sha256(x.id::text::bytea), x.id, false, now(), 1
		FROM triage_accounts a CROSS JOIN LATERAL (SELECT md5(a.name || n)::uuid AS id FROM generate_series(1, 1100) n) x`)
	f.exec(`INSERT INTO triage_senders (tenant_id, account_id, address, first_seen, last_seen)
		SELECT a.tenant_id, a.account_id, n || '@example.com', now(), now() FROM triage_accounts a, generate_series(1, 600) n`)

	var counts []int64
	for done := false; !done; {
		p, err := f.purge()
		if err != nil || len(counts) > 10 {
			t.Fatalf("Purge = %+v, %v", p, err)
		}
		done, counts = p.Done, append(counts, p.Rows.Sum())
	}

	if got, want := fmt.Sprint(counts), "[500 500 600 100]"; got != want {
		t.Errorf("erased %s, want %s", got, want)
	}
	if n := one[int](f, "SELECT (SELECT count(1) FROM triage_messages)::int + (SELECT count(1) FROM triage_senders)::int"); n != 1700 {
		t.Errorf("the other account has %d rows, want 1700", n)
	}
	if p, err := f.purge(); err != nil || !p.Done || p.Rows.Sum() != 0 {
		t.Errorf("Purge of nothing = %+v, %v", p, err)
	}
}
