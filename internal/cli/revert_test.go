package cli_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// complete makes actions of a tool that were done in a session.
func (m *apiFixture) complete(n int, tool, session string) {
	m.t.Helper()
	const sql = `
		WITH one AS (
			INSERT INTO decisions (tenant_id, decision_id, mode, mode_source, trace) VALUES ($1, $1, 'allow', 'test', '[]') ON CONFLICT DO NOTHING
		), made AS (
			INSERT INTO actions (tenant_id, action_id, content_digest, session_id, source_id, tool_name, args, risk, effect,
				decision_id, config_version, tool_digest, approval_state, bucket_id, max_attempts)
			SELECT $1, ('019a0b1c-' || substr(md5($2 || $3), 1, 4) || '-7f40-8a5b-' || lpad(to_hex(n), 12, '0'))::uuid, '\x00', $3, 'crm', $2,
				'{"name":"Ana"}', 'low', 'keyed', $1, 1, '\x00', 'auto', b.bucket_id, 3
			FROM generate_series(1, $4::integer) n, buckets b
			WHERE b.tenant_id = $1 AND b.name = 'default'
			RETURNING action_id
		)
		INSERT INTO tool_executions (tenant_id, action_id, attempt, status, result, finished_at)
		SELECT $1, action_id, 1, 'sent', '{"id":"c-1"}', now() FROM made`
	m.exec(m.t.Context(), sql, m.tenant.String(), tool, session, n)
}

// revertReport is the document of a command.
type revertReport struct {
	Applied, Stopped bool
	Counts           map[string]int
	Items            []wire.RevertItem
}

// Hundreds are one command, which is stopped half-way and taken up again.
func TestRevertOfManyIsStoppedAndTakenUpAgain(t *testing.T) {
	t.Parallel()
	const all = 320
	m := newAPIFixture(t)
	m.tools()
	m.complete(all, "create", "nightly")
	m.complete(2, "send", "nightly")
	m.complete(3, "create", "other")
	reversals := func() int { return m.count("SELECT count(1) FROM actions WHERE external_id LIKE 'revert:%'") }
	args := []string{"revert", "--session", "nightly", "--since", "1h", "--tool", "crm:*", "--apply"}

	dry := m.run(command.ExitOK, args[:7]...)
	if n := reversals(); n != 0 {
		t.Fatalf("a dry run proposed %d reversals", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	out, errs := &bytes.Buffer{}, &ender{text: "checked", end: cancel}
	code := cli.Run(ctx, args, command.System{Out: out, Err: errs, Getenv: func(name string) string { return m.env[name] }})
	some := reversals()
	rest := decode[revertReport](t, m.run(command.ExitAction, append(args, "--json")...).out)

	for _, text := range []string{"320", "crm:delete", "the catalog declares no reversal for crm:send"} {
		if !strings.Contains(dry.out, text) {
			t.Errorf("a dry run does not say %q:\n%s", text, dry.out)
		}
	}
	if !strings.Contains(dry.err, "Nothing was changed. To revert 320, add --apply. 0 have a reversal already, and 2 cannot be reverted.") {
		t.Errorf("a dry run ends with %s", dry.err)
	}
	if code != command.ExitInterrupted || some == 0 || some >= all || !strings.Contains(errs.String(), "run the command again") {
		t.Errorf("stopped it ends with %d, %d reversals and %s", code, some, errs)
	}
	if n := reversals(); n != all || !rest.Applied || rest.Stopped || rest.Counts["accepted"] != all-some || rest.Counts["known"] != some || rest.Counts["refused"] != 2 || len(rest.Items) != all+2 {
		t.Errorf("taken up again it came to %d reversals: %+v after %d", n, rest.Counts, some)
	}
}

func TestRevert(t *testing.T) {
	t.Parallel()
	m := newAPIFixture(t)
	m.tools()
	m.complete(1, "create", "s")
	m.complete(1, "send", "s")
	idOf := func(tool string) (id string) {
		if err := m.db.QueryRow(t.Context(), "SELECT action_id::text FROM actions WHERE tool_name = $1", tool).Scan(&id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	id, send := idOf("create"), idOf("send")

	first := m.run(command.ExitOK, "revert", id)
	again := decode[wire.Action](t, m.run(command.ExitOK, "revert", id, "--json").out)
	shown := decode[wire.Action](t, m.run(command.ExitOK, "get", id, "--json").out)
	refused := m.run(command.ExitFailed, "revert", send)

	if !strings.Contains(first.out, "crm:delete") || again.Reverts == nil || again.Reverts.String() != id || shown.RevertedBy == nil || shown.RevertedBy.ActionID != again.Envelope.ActionID {
		t.Errorf("revert = %s; again %+v; the action is reverted by %+v", first.out, again, shown.RevertedBy)
	}
	if text := m.run(command.ExitOK, "get", id).out; !strings.Contains(text, again.Envelope.ActionID.String()) {
		t.Errorf("get does not show the reversal:\n%s", text)
	}
	if !strings.Contains(refused.err, "the catalog declares no reversal for crm:send") {
		t.Errorf("what declares no reversal: %s", refused.err)
	}
	for _, args := range [][]string{{"revert"}, {"revert", id, "--tool", "x"}, {"revert", id, "--apply"}, {"revert", "--workflow", "x"}} {
		m.run(command.ExitUsage, args...)
	}
}
