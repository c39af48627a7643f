package cli_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// TestSubscriptions goes through the commands that tell somebody outside.
func TestSubscriptions(t *testing.T) {
	t.Parallel()
	d := open(t)
	empty := filepath.Join(d.dir, "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	d.want(d.admin("subscription", "list"), command.ExitOK, "No subscriptions.")
	d.want(d.admin("subscription", "set", "out"), command.ExitUsage, "--source is required")
	d.want(d.admin("subscription", "set", "out", "--source", "notes"), command.ExitUsage, "webhook or slack")
	d.want(d.admin("source", "set", "hooks", "--kind", "webhook", "--config", `{"url":"http://hooks.example.com/"}`), command.ExitUsage, "must be https")
	d.want(d.admin("source", "set", "hooks", "--kind", "webhook", "--config", `{"url":"https://hooks.example.com/"}`, "--wait", "0"), command.ExitOK, "stored source hooks")
	d.want(d.admin("subscription", "set", "out", "--source", "hooks", "--min-risk", "huge"), command.ExitUsage, "--min-risk")
	d.want(d.admin("subscription", "set", "out", "--source", "hooks", "--signing-secret", empty), command.ExitUsage, "is empty")
	d.want(d.admin("subscription", "set", "out", "--source", "hooks", "--kinds", "settled,decided", "--tool", "notes:*"), command.ExitOK, "stored subscription out")
	d.want(d.operator("subscription", "list"), command.ExitOK, "out", "hooks", "settled decided", "notes:*", "on")
	made := decode[wire.Subscription](t, d.want(d.operator("subscription", "list", "--json"), command.ExitOK).out)
	if made.Name != "out" || !made.Enabled || made.ID == "" {
		t.Errorf("subscription = %+v", made)
	}
	d.want(d.operator("subscription", "delete", "out"), command.ExitFailed, "role operator")
	d.want(d.admin("subscription", "test", "out"), command.ExitFailed, "listed no tools") // it has no secret
	d.want(d.admin("subscription", "set", "out", "--source", "hooks", "--off"), command.ExitOK)
	d.want(d.admin("subscription", "list"), command.ExitOK, "off")
	d.want(d.admin("subscription", "test", "out"), command.ExitFailed, "is off")
	d.want(d.admin("subscription", "set", "out", "--source", "hooks", "--from-now", "--json"), command.ExitOK, `"enabled":true`)
	d.want(d.operator("subscription", "resend", "out"), command.ExitUsage, "not the id")
	d.want(d.operator("subscription", "resend", "0190a1b2-0000-7000-8000-000000000001", "--note", "lost"), command.ExitFailed, "retention deleted it")
	d.want(d.admin("subscription", "delete", "out"), command.ExitOK, "removed subscription out")
	d.want(d.admin("subscription", "delete", "out"), command.ExitFailed, "no subscription out")
	d.want(d.operator("watch", "--kind", "everything"), command.ExitUsage, "unknown kind of event")
}
