package cli_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

// TestTriage goes through the commands about mail: accounts, a run, and a message
// whose subject would control the terminal.
func TestTriage(t *testing.T) {
	t.Parallel()
	d := open(t)
	conn := dbtest.Connect(t, d.database)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	file := func(name, text string) string {
		path := filepath.Join(d.dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := file("good.yaml", "kind: maildir\nconnection:\n  path: /srv/mail\nsettings:\n  addresses: [ann@example.com]\n")

	d.want(d.admin("triage", "accounts", "list"), command.ExitOK, "No accounts.")
	d.want(d.admin("triage", "status"), command.ExitOK, "No accounts")
	d.want(d.admin("triage", "accounts", "set", "work"), command.ExitUsage, "-f is required")
	d.want(d.admin("triage", "accounts", "set", "work", "-f", file("unknown.yaml", "kind: maildir\nconnexion: {}\n")), command.ExitFailed, `unknown field "connexion"`)
	bad := d.want(d.admin("triage", "accounts", "set", "work", "-f", file("bad.yaml", "kind: maildir\nconnection:\n  path: mail\n")), command.ExitFailed, "bad.yaml:3:")
	if !strings.Contains(bad.err, "absolute path") {
		t.Errorf("the error does not say what is wrong: %s", bad.err)
	}
	d.want(d.admin("triage", "accounts", "set", "work", "-f", good, "--password", file("empty", "\n")), command.ExitUsage, "is empty")
	d.want(d.operator("triage", "accounts", "set", "work", "-f", good), command.ExitFailed, "role operator")
	d.want(d.admin("triage", "accounts", "set", "work", "-f", good), command.ExitOK, "stored account work")
	d.want(d.admin("triage", "accounts", "list"), command.ExitOK, "work", "maildir", "/srv/mail", "on")
	d.want(d.admin("triage", "accounts", "show", "work"), command.ExitOK, "ann@example.com")
	account := decode[wire.TriageAccount](t, d.want(d.admin("triage", "accounts", "show", "work", "--json"), command.ExitOK).out)
	d.want(d.admin("triage", "accounts", "put", "work", "-f", good, "--if-match", "other"), command.ExitFailed)
	d.want(d.operator("triage", "status"), command.ExitOK, "work", "unseen", "no triage process")

	d.want(d.operator("triage", "sync", "work", "--wait", "1ms"), command.ExitFailed, "has not ended")
	d.want(d.operator("triage", "sync", "--no-wait"), command.ExitOK, "asked")
	// A process of triage that runs at once, and fails the second time.
	exec(`CREATE FUNCTION countersign_data.run_at_once() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			NEW.last_error := CASE WHEN OLD.last_ended_at IS NULL THEN NULL ELSE 'the mailbox denies this' END;
			NEW.asked_at := NULL; NEW.last_started_at := clock_timestamp(); NEW.last_ended_at := clock_timestamp();
			RETURN NEW;
		END $$`)
	exec("CREATE TRIGGER run_at_once BEFORE UPDATE OF asked_at ON triage_schedules FOR EACH ROW EXECUTE FUNCTION run_at_once()")
	d.want(d.operator("triage", "sync"), command.ExitOK, "work", "waiting")
	d.want(d.operator("triage", "sync", "work"), command.ExitFailed, "the run of work failed: the mailbox denies this")

	d.want(d.operator("triage", "list", "--set-aside"), command.ExitOK, "No message is set aside")
	reason := strings.Repeat("the reason is long and shown whole ", 6) + "to its end"
	exec("INSERT INTO triage_set_aside (tenant_id, account_id, folder, key, received_at, size, step, reason) SELECT tenant_id, account_id, 'INBOX', '7:12', now(), 10, 'store', $1 FROM triage_accounts", reason)
	d.want(d.operator("triage", "list", "--set-aside"), command.ExitOK, "work", "INBOX", "7:12", "store", reason)
	exec("UPDATE triage_schedules SET last_error = $1, failures = 3", reason)
	d.want(d.operator("triage", "status"), command.ExitOK, reason, "1 messages are set aside: countersign triage list --set-aside work")
	d.want(d.operator("triage", "sync", "work", "--set-aside"), command.ExitFailed, "the run of work failed")
	if !decode[wire.TriageSetAside](t, d.want(d.operator("triage", "list", "--set-aside", "--json"), command.ExitOK).out).Again {
		t.Error("the message is not to be read again")
	}

	id := uuid.Must(uuid.NewV7())
	const message = `INSERT INTO triage_messages (tenant_id, message_id, account_id, identity, header_id, thread_id, outgoing, sender, subject, body, received_at, size)
		SELECT tenant_id, $1, account_id, sha256(convert_to($1::uuid::text, 'UTF8')), '4711@example.com', $1, false, 'bob@example.com', $2, $2, now(), 10 FROM triage_accounts WHERE account_id = $3`
	exec(message, id, "pay \x1b[2J now", account.ID)
	for _, args := range [][]string{{"list", "work"}, {"show", id.String()}, {"show", "<4711@example.com>"}} {
		got := d.want(d.operator(append([]string{"triage"}, args...)...), command.ExitOK, "bob@example.com", `pay \u{001B}[2J now`)
		if strings.Contains(got.out, "\x1b") {
			t.Errorf("%q prints what controls the terminal", args)
		}
	}
	d.want(d.operator("triage", "list", "--bucket", "urgent"), command.ExitOK, "No matching messages")
	d.want(d.operator("triage", "why", "4711@example.com"), command.ExitOK, "not judged yet")
	d.want(d.operator("triage", "why", "none@example.com"), command.ExitFailed, "no message")
	d.want(d.agent("triage", "why", id.String()), command.ExitFailed, "role agent")
	d.want(d.operator("triage", "correct", id.String(), "--head", "act"), command.ExitUsage, "are required")
	d.want(d.operator("triage", "correct", id.String(), "--head", "act", "--label", "fyi"), command.ExitFailed, "no decision to correct")
	exec(`INSERT INTO triage_decisions (tenant_id, message_id, account_id, run_id, act, category, priority, bucket, cohort, level, confidence, question,
			decision, signals, prediction, features, notes, model)
		SELECT tenant_id, message_id, account_id, message_id, 'fyi', 'primary', 'fyi', 'informational', 'default', 1, 0.4, true,
			'{"bucket":"informational","category":"primary","cohort":"default","asked":"L3","allowed":"L1","confidence":0.4,"question":true,"trace":[]}', '{}', '{}', '\x00', '{}', 'd'
		FROM triage_messages WHERE message_id = $1`, id)
	d.want(d.operator("triage", "settings", "work", "--dry-run"), command.ExitOK, "No decision since", "1 decisions cannot be recomputed: their facts are not recorded")
	exec(`UPDATE triage_decisions SET facts = '{"headers":{"From":["bob@example.com"],"To":["ann@example.com"]},"folder":"inbox"}'`)
	changed := []string{"triage", "settings", "work", "--level", "first_contact=L0"}
	for _, args := range [][]string{{"--dry-run"}, {"--yes"}} {
		got := d.want(d.admin(append(changed, args...)...), command.ExitOK, "question", "-1", "L1", "L0", "bob@example.com", `pay \u{001B}[2J`, "1 of 1 decisions since")
		if strings.Contains(got.out, "\x1b") {
			t.Errorf("%q prints what controls the terminal", args)
		}
	}
	d.want(d.admin(changed...), command.ExitUsage, "give --yes")
	d.want(d.operator(append(changed, "--yes")...), command.ExitFailed, "role operator")
	d.want(d.admin("triage", "accounts", "show", "work"), command.ExitOK, `"first_contact": "L0"`, "ann@example.com")
	preview := decode[wire.TriagePreview](t, d.want(d.operator("triage", "settings", "work", "-f", file("settings.yaml", "addresses: [ann@example.org]\n"), "--dry-run", "--json"), command.ExitOK).out)
	if preview.Recomputed != 1 || len(preview.Partly) != 1 {
		t.Errorf("a preview of other addresses = %+v", preview)
	}
	d.want(d.operator("triage", "settings", "work", "--travelling"), command.ExitUsage, "countersign pause --travelling")
	d.want(d.operator("triage", "settings", "work", "--level", "first_contact", "--dry-run"), command.ExitUsage, "cohort=level")
	d.want(d.operator("triage", "settings", "work", "--level", "first_contact=L9", "--dry-run"), command.ExitUsage, "must be L0 or L1")
	d.want(d.admin("triage", "settings", "work", "--level", "first_contact=default", "--yes"), command.ExitOK, "stored the settings")
	d.want(d.operator("triage", "list", "--question"), command.ExitOK, "informational ?", "It informs, and needs nothing")
	for _, args := range [][]string{{"why"}, {"show"}} {
		d.want(d.operator("triage", args[0], id.String()), command.ExitOK, "its owner is asked, because the models are unsure.", "bucket:informational", "question")
	}
	d.want(d.operator("triage", "correct", id.String(), "--head", "act", "--label", "invoice"), command.ExitUsage, "must be one of")
	made := decode[wire.TriageCorrection](t, d.want(d.operator("triage", "correct", id.String(), "--head", "act", "--label", "request", "--json"), command.ExitOK).out)
	d.want(d.operator("triage", "why", id.String()), command.ExitOK, "its owner is asked first", "act is request")
	d.want(d.operator("triage", "correct", id.String(), "--retract", strconv.FormatInt(made.Number, 10)), command.ExitOK, "withdrew correction")
	// Its proposal, which waits for a person.
	external := "triage:" + strings.Repeat("0", 64)
	action := decode[wire.Action](t, d.want(d.agent("submit", "--json", "--tool", "notes:notes.create", "--external-id", external, "--args", `{"title":"label","body":"x"}`), command.ExitOK).out)
	exec(`INSERT INTO triage_proposals (tenant_id, external_id, account_id, message_id, action, fields, envelope, proposal_id)
		SELECT tenant_id, $2, account_id, message_id, 'label', '[{"pointer":"/account","value":"ann","origin":"config","ref":""}]',
			jsonb_build_object('type', 'mcp.exec', 'external_id', $2::text, 'tool', '{"source":"mail","name":"message.label"}'::jsonb, 'args', '{"account":"ann"}'::jsonb), $3::uuid
		FROM triage_messages WHERE message_id = $1`, id, external, action.Envelope.ActionID.String())
	for _, args := range [][]string{{"inbox"}, {"get", action.Envelope.ActionID.String()}} {
		got := d.want(d.operator(args...), command.ExitOK, `<bob@example.com>: pay \u{001B}[2J now`)
		if strings.Contains(got.out, "\x1b") {
			t.Errorf("%q prints what controls the terminal", args)
		}
	}
	if got := d.want(d.agent("get", action.Envelope.ActionID.String()), command.ExitOK); strings.Contains(got.out, "bob@example.com") {
		t.Errorf("an agent reads mail: %s", got.out)
	}
	exec(message, uuid.Must(uuid.NewV7()), "again", account.ID)
	d.want(d.operator("triage", "show", "4711@example.com"), command.ExitFailed, "several messages", id.String())
	d.want(d.operator("triage", "export", "work"), command.ExitOK, `"kind":"set_aside"`, `"kind":"message"`, "3 exported")
	d.want(d.operator("triage", "purge", "work", "--dry-run"), command.ExitFailed, "role operator")
	d.want(d.admin("triage", "purge", "work"), command.ExitUsage, "messages     2", "give --yes")
	d.want(d.admin("triage", "purge", "work", "--yes"), command.ExitFailed, "countersign kill --automation triage/work")
	// A pause holds the open action, which a worker's sweep of a kill ends.
	d.want(d.operator("pause", "--automation", "triage/work", "--reason", "leaving"), command.ExitOK)
	d.want(d.admin("triage", "purge", "work", "--yes", "--wait", "0"), command.ExitFailed, "erased 1 messages", "1 messages are kept", "countersign kill")
	d.want(d.operator("kill", "--automation", "triage/work", "--reason", "leaving"), command.ExitOK)
	if p := decode[wire.TriagePurge](t, d.want(d.admin("triage", "purge", "work", "--yes", "--json"), command.ExitOK).out); !p.Done || p.Rows.Messages != 1 || p.Rows.Proposals != 1 {
		t.Errorf("purge = %+v, want the other message with its proposal", p)
	}
	d.want(d.admin("triage", "purge", "work", "--dry-run"), command.ExitOK, "messages     0")
	d.want(d.admin("triage", "accounts", "delete", "work"), command.ExitOK, "deleted account work")
}
