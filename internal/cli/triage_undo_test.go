package cli_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/internal/cli/command"
)

// triaged makes a mail account that names the fixture's person, and three actions
// that triage completed in a run: one on a message of its own, and two on another.
// A mailbox restores messages at once, except the first, which its owner has changed.
func (m *apiFixture) triaged() (run string) {
	m.t.Helper()
	m.tools()
	m.complete(3, "create", "nightly")
	ctx, account, person := m.t.Context(), uuid.NewString(), uuid.NewString()
	run = uuid.NewString()
	for _, sql := range []string{
		"INSERT INTO operators (tenant_id, operator_id, name, role_set) VALUES ($1, $2, 'Ada', 'operator')",
		"UPDATE api_tokens SET operator_id = $2::uuid WHERE tenant_id = $1",
		"INSERT INTO triage_accounts (tenant_id, account_id, name, kind, operator_id) VALUES ($1, '" + account + "', 'work', 'maildir', $2)",
		"UPDATE actions SET external_id = 'triage:' || encode(sha256(action_id::text::bytea), 'hex') WHERE tenant_id = $1 AND $2::text <> ''",
		"UPDATE tools SET default_reversal = reversal, reversal = NULL WHERE tenant_id = $1 AND name = 'create' AND $2::text <> ''",
		"UPDATE policy_modes SET mode = 'require_approval' WHERE tenant_id = $1 AND $2::text <> ''",
		"INSERT INTO policy_modes (tenant_id, key, mode, updated_by) SELECT $1, 'crm:message.state', 'allow', 'test' WHERE $2::text <> ''",
		`UPDATE tool_executions SET result = '{"id":"c-0"}' WHERE action_id = (SELECT min(action_id::text)::uuid FROM actions WHERE tenant_id = $1 AND $2::text <> '')`,
		"INSERT INTO triage_runs (tenant_id, run_id, account_id, kind) VALUES ($1, $2::uuid, '" + account + "', 'asked')",
	} {
		id := person
		if strings.Contains(sql, "triage_runs") {
			id = run
		}
		m.exec(ctx, sql, m.tenant.String(), id)
	}
	m.exec(ctx, `
		WITH acts AS (
			SELECT action_id, external_id, row_number() OVER (ORDER BY action_id) AS n FROM actions WHERE tenant_id = $1
		), messages AS (
			INSERT INTO triage_messages (tenant_id, message_id, account_id, identity, thread_id, outgoing, received_at, size)
			SELECT $1, m.id, $2, sha256(m.id::text::bytea), m.id, false, now(), 1 FROM (SELECT md5(n::text)::uuid AS id FROM acts WHERE n < 3) m
		)
		INSERT INTO triage_proposals (tenant_id, external_id, account_id, message_id, action, parts, fields, envelope, proposal_id, run_id)
		SELECT $1, external_id, $2, md5(least(n, 2)::text)::uuid, 'archive', '[{"action":"archive"}]', '[{"pointer":"/account","value":"work","origin":"config"}]',
			jsonb_build_object('type', 'mcp.exec', 'external_id', external_id, 'tool', '{"source":"mail","name":"message.archive"}'::jsonb, 'args', '{"account":"work"}'::jsonb),
			action_id, $3
		FROM acts`, m.tenant.String(), account, run)
	m.exec(ctx, `CREATE FUNCTION countersign_data.restore() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
		DECLARE
			touched boolean := (SELECT count(1) = 0 FROM actions a WHERE a.tenant_id = NEW.tenant_id AND a.external_id LIKE 'triage:%'
				AND a.action_id < (SELECT split_part(r.external_id, ':', 2)::uuid FROM actions r WHERE r.tenant_id = NEW.tenant_id AND r.action_id = NEW.action_id));
		BEGIN
			IF (SELECT a.tool_name = 'message.state' FROM actions a WHERE a.tenant_id = NEW.tenant_id AND a.action_id = NEW.action_id) THEN
				INSERT INTO tool_executions (tenant_id, action_id, attempt, status, result, finished_at)
				SELECT a.tenant_id, a.action_id, 1, 'sent', CASE WHEN a.args ->> 'id' = (
						SELECT e.result ->> 'id' FROM tool_executions e JOIN actions f USING (tenant_id, action_id)
						WHERE f.tenant_id = a.tenant_id AND f.external_id LIKE 'triage:%' ORDER BY f.action_id LIMIT 1)
					THEN '{"reversal":"refused","differs":"folder"}' ELSE '{"reversal":"possible"}' END::json, clock_timestamp()
				FROM actions a WHERE a.tenant_id = NEW.tenant_id AND a.action_id = NEW.action_id;
				DELETE FROM outbox o WHERE o.tenant_id = NEW.tenant_id AND o.action_id = NEW.action_id;
				RETURN NULL;
			END IF;
			INSERT INTO tool_executions (tenant_id, action_id, attempt, status, code, message, finished_at)
			VALUES (NEW.tenant_id, NEW.action_id, 1, CASE WHEN touched THEN 'failed' ELSE 'sent' END, CASE WHEN touched THEN 'changed_since' END,
				CASE WHEN touched THEN 'someone has changed the message since' END, clock_timestamp());
			IF touched THEN
				INSERT INTO dead_letters (tenant_id, action_id, reason, attempt, code) VALUES (NEW.tenant_id, NEW.action_id, 'refused', 1, 'changed_since');
			END IF;
			DELETE FROM outbox o WHERE o.tenant_id = NEW.tenant_id AND o.action_id = NEW.action_id;
			RETURN NULL;
		END $$`)
	m.exec(ctx, "CREATE CONSTRAINT TRIGGER restore AFTER INSERT ON outbox DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION countersign_data.restore()")
	return run
}

// undoReport is the document of "triage undo".
type undoReport struct {
	DryRun  bool `json:"dry_run"`
	Stopped bool
	Counts  map[string]int
	Items   []struct{ Outcome, Why string }
}

func TestTriageUndo(t *testing.T) {
	t.Parallel()
	m := newAPIFixture(t)
	run := m.triaged()
	reversals := func() int { return m.count("SELECT count(1) FROM actions WHERE external_id LIKE 'revert:%'") }

	shown := m.run(command.ExitOK, "triage", "runs", "work")
	dry := m.run(command.ExitOK, "triage", "undo", "--run", run, "--dry-run")
	if n := reversals(); n != 0 || !strings.Contains(shown.out, run) || !strings.Contains(dry.err, "Nothing was changed. 2 would be undone, 1 would be left") ||
		!strings.Contains(dry.out, "its folder was changed since") {
		t.Errorf("a dry run proposed %d reversals: %s\n%s\nruns: %s", n, dry.out, dry.err, shown.out)
	}
	waits := decode[undoReport](t, m.run(command.ExitOK, "triage", "undo", "--run", run, "--dry-run", "--json").out)
	if diff := cmp.Diff(map[string]int{"would_restore": 2, "would_leave": 1}, waits.Counts); diff != "" || !waits.DryRun {
		t.Errorf("a dry run (-want +got):\n%s", diff)
	}
	blind := decode[undoReport](t, m.run(command.ExitOK, "triage", "undo", "--run", run, "--dry-run", "--wait", "0", "--json").out)
	if diff := cmp.Diff(map[string]int{"would_restore": 3}, blind.Counts); diff != "" {
		t.Errorf("a dry run that reads no mailbox (-want +got):\n%s", diff)
	}
	m.exec(t.Context(), "UPDATE tools SET gone_at = now() WHERE tenant_id = $1 AND name = 'message.state'", m.tenant.String())
	unread := decode[undoReport](t, m.run(command.ExitOK, "triage", "undo", "--run", run, "--dry-run", "--json").out)
	if diff := cmp.Diff(map[string]int{"would_restore": 3}, unread.Counts); diff != "" || !strings.HasPrefix(unread.Items[0].Why, "the mailbox was not read") {
		t.Errorf("a dry run without the tool that reads: %+v\n%s", unread.Items, diff)
	}
	first := m.run(command.ExitAction, "triage", "undo", "--run", run)
	again := decode[undoReport](t, m.run(command.ExitAction, "triage", "undo", "--account", "work", "--since", "1h", "--json").out)

	if !strings.Contains(first.err, "2 restored, 0 withdrawn before they were sent, 1 left because the message was changed since, 0 not undone") ||
		!strings.Contains(first.out, "changed_since: someone has changed the message since") {
		t.Errorf("undo = %s\n%s", first.out, first.err)
	}
	if diff := cmp.Diff(map[string]int{"restored": 2, "left": 1}, again.Counts); diff != "" || again.Stopped {
		t.Errorf("undo again (-want +got):\n%s", diff)
	}
	if n := reversals(); n != 3 {
		t.Errorf("%d reversals of three actions", n)
	}
	if m.count("SELECT count(1) FROM tool_executions e JOIN actions a USING (tenant_id, action_id) WHERE a.external_id LIKE 'revert:%' AND e.status = 'sent'") != 2 {
		t.Error("a message was restored more than once")
	}
	refused := m.run(command.ExitAction, "triage", "undo", uuid.NewString())
	if !strings.Contains(refused.out, "no action") {
		t.Errorf("undo of an unknown action = %s", refused.out)
	}
	m.run(command.ExitOK, "triage", "undo", "--session", "none")
	for _, args := range [][]string{{}, {uuid.NewString(), "--account", "work"}, {"x"}, {"--run", "x"}, {"--since", "1h", "--until", "2h"}} {
		m.run(command.ExitUsage, append([]string{"triage", "undo"}, args...)...)
	}
	m.run(command.ExitFailed, "triage", "undo", "--account", "home")
}
