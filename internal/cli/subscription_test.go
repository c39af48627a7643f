package cli_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/internal/cli"
)

// TestSubscriptions goes through the commands that tell somebody outside.
func TestSubscriptions(t *testing.T) {
	t.Parallel()
	d := open(t)
	empty := filepath.Join(d.dir, "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	d.want(d.admin("subscription", "list"), cli.ExitOK, "There are none")
	d.want(d.admin("subscription", "set", "out"), cli.ExitUsage, "--source is required")
	d.want(d.admin("subscription", "set", "out", "--source", "notes"), cli.ExitFailed, "webhook or slack")
	d.want(d.admin("source", "set", "hooks", "--kind", "webhook", "--config", `{"url":"http://hooks.example.com/"}`), cli.ExitFailed, "must be https")
	d.want(d.admin("source", "set", "hooks", "--kind", "webhook", "--config", `{"url":"https://hooks.example.com/"}`), cli.ExitOK, "stored source hooks")
	d.want(d.admin("subscription", "set", "out", "--source", "hooks", "--min-risk", "huge"), cli.ExitUsage, "--min-risk")
	d.want(d.admin("subscription", "set", "out", "--source", "hooks", "--signing-secret", empty), cli.ExitUsage, "is empty")
	d.want(d.admin("subscription", "set", "out", "--source", "hooks", "--kinds", "settled,decided", "--tool", "notes:*"), cli.ExitOK, "stored subscription out")
	d.want(d.operator("subscription", "list"), cli.ExitOK, "out", "hooks", "settled decided", "notes:*", "on")
	made := decode[client.Subscription](t, d.want(d.operator("subscription", "list", "--json"), cli.ExitOK).out)
	if made.Name != "out" || !made.Enabled || made.ID == "" {
		t.Errorf("subscription = %+v", made)
	}
	d.want(d.operator("subscription", "delete", "out"), cli.ExitFailed, "role operator")
	d.want(d.admin("subscription", "test", "out"), cli.ExitFailed, "listed no tools") // it has no secret
	d.want(d.admin("subscription", "set", "out", "--source", "hooks", "--off"), cli.ExitOK)
	d.want(d.admin("subscription", "list"), cli.ExitOK, "off")
	d.want(d.admin("subscription", "test", "out"), cli.ExitFailed, "is off")
	d.want(d.admin("subscription", "set", "out", "--source", "hooks", "--from-now", "--json"), cli.ExitOK, `"enabled":true`)
	d.want(d.admin("subscription", "delete", "out"), cli.ExitOK, "removed subscription out")
	d.want(d.admin("subscription", "delete", "out"), cli.ExitFailed, "no subscription out")
	d.want(d.operator("watch", "--kind", "everything"), cli.ExitFailed, "no such kind")
}
