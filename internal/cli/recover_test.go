package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// TestRecover shows how far a restored database is behind a head that was noted, and
// recovers it over the API and in the database.
func TestRecover(t *testing.T) {
	t.Parallel()
	for name, way := range map[string][]string{"api": nil, "database": {"--database", "--by", "Ana"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newAPIFixture(t)
			m.env["DATABASE_URL"] = m.db.Config().ConnString()
			m.env["COUNTERSIGN_TOKEN"] = decode[wire.IssuedToken](t, m.run(command.ExitOK, "token", "create", "--tenant", "acme", "--role", "admin", "--name", "Ana", "--json").out).Token
			m.happened(3)
			m.happened(2)
			noted := filepath.Join(t.TempDir(), "noted.json")
			if err := os.WriteFile(noted, []byte(m.run(command.ExitOK, "audit", "head", "--json").out), 0o600); err != nil {
				t.Fatal(err)
			}
			m.exec(t.Context(), "DELETE FROM checkpoints WHERE checkpoint_no = 2")
			m.exec(t.Context(), "INSERT INTO lost_calls (tenant_id, action_id, external_id, source_id, tool_name, effect, outcome, code, provider_id, worker, called_at, known)"+
				" SELECT tenant_id, gen_random_uuid(), '', 'mail', 'send', 'once', 'sent', '', '', 'w', now(), true FROM tenants WHERE name = 'acme'")
			m.exec(t.Context(), "UPDATE fence SET state = 'held', reason = 'copy', detail = 'this database is a copy', changed_at = now()")
			recover := append([]string{"recover"}, way...)

			dry := m.run(command.ExitOK, append(recover, "--audit-head", noted)...)
			for _, want := range []string{"Held (copy): this database is a copy", "lacks 1 checkpoints up to the noted head 2", "once: 1 reported by workers", "Later changes are lost: revocations, pauses, do-not-contact entries", "repeat with --apply"} {
				if !strings.Contains(dry.out, want) {
					t.Errorf("it does not print %q:\n%s", want, dry.out)
				}
			}
			if shown := decode[wire.Recovery](t, m.run(command.ExitOK, append(recover, "--audit-head", noted, "--json")...).out); shown.NotedHead == nil || shown.NotedHead.Result != "missing" {
				t.Errorf("--json = %+v", shown)
			}
			done := decode[wire.Recovery](t, m.run(command.ExitOK, append(recover, "--apply", "--json")...).out)

			if done.State != "open" || m.count("SELECT count(1) FROM pauses WHERE lifted_at IS NULL") != 1 {
				t.Errorf("recovered: %+v", done)
			}
			if again := m.run(command.ExitFailed, append(recover, "--apply")...); !strings.Contains(again.err, "needs no recovery") {
				t.Errorf("again: %s", again.err)
			}
		})
	}
}
