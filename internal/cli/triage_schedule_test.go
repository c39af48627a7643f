package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// TestBriefSchedule makes, changes, renews and ends a schedule, which has one grant a
// channel, and leaves nothing behind after failures.
func TestBriefSchedule(t *testing.T) {
	t.Parallel()
	d := open(t)
	box := filepath.Join(d.dir, "mail")
	for _, part := range []string{"cur", "new", "tmp"} {
		if err := os.MkdirAll(filepath.Join(box, part), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(d.dir, "work.yaml")
	account := func(more string) {
		t.Helper()
		if err := os.WriteFile(file, []byte("kind: maildir\nconnection:\n  path: /srv/mail\nsettings:\n  addresses: [ann@example.com]\n"+more), 0o600); err != nil {
			t.Fatal(err)
		}
		d.want(d.admin("triage", "accounts", "set", "work", "-f", file), command.ExitOK)
	}
	type channel struct {
		To      string     `json:"to"`
		Source  string     `json:"source"`
		Tool    string     `json:"tool"`
		GrantID *uuid.UUID `json:"grant_id"`
	}
	type schedule struct {
		Briefs   *wire.TriageBriefSettings `json:"briefs"`
		Channels []channel                 `json:"channels"`
		Revoked  []uuid.UUID               `json:"revoked"`
	}
	brief := func(more ...string) []string { return append([]string{"triage", "brief", "schedule", "work"}, more...) }
	admin, err := d.environment.Client(d.environment.Tokens().Admin)
	if err != nil {
		t.Fatal(err)
	}
	grants := func() []wire.Grant {
		t.Helper()
		all, err := admin.Grants(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	d.want(d.admin("source", "set", "letters", "--kind", "mail", "--config", `{"accounts":{"ann":{"kind":"maildir","path":"`+box+`","from":"ann@example.com"}}}`), command.ExitOK)
	d.want(d.admin("source", "set", "team", "--kind", "slack", "--config", `{}`, "--credentials", `{"values":{"token":"xoxb-1","webhook_url":"https://hooks.example.com/services/a"}}`), command.ExitOK)

	account("")
	d.want(d.operator(brief()...), command.ExitOK, "sends no briefs")
	d.want(d.admin(brief("--morning", "07:30", "--to", "ann@example.com")...), command.ExitUsage, "names no source")
	account("proposals: {source: letters, account: ann, brief: {zone: Europe/Berlin, archiving_closes: true}}\n")
	d.want(d.admin(brief("--morning", "07:30")...), command.ExitUsage, "--to or --slack is required")
	d.want(d.admin(brief("--to", "ann@example.com")...), command.ExitUsage, "when are briefs sent")
	d.want(d.admin(brief("--morning", "7.30", "--to", "ann@example.com")...), command.ExitUsage, "/proposals/brief/morning")
	d.want(d.admin(brief("--morning", "07:30", "--to", "eve@example.com")...), command.ExitUsage, "addresses in the account's settings alone")
	d.want(d.admin(brief("--morning", "07:30", "--to", "ann@example.com", "--slack", "nobody:C1")...), command.ExitFailed, "a grant for nobody:C1")
	d.want(d.operator(brief("--morning", "07:30", "--to", "ann@example.com")...), command.ExitFailed)
	if all := grants(); len(all) != 0 {
		t.Fatalf("%d grants after failures: %+v", len(all), all)
	}

	first := decode[schedule](t, d.want(d.admin(brief("--morning", "07:30", "--to", "ann@example.com", "--slack", "team:C1", "--json")...), command.ExitOK).out)
	shown := d.want(d.operator(brief()...), command.ExitOK, "07:30", "Europe/Berlin", "counts alone", "ann@example.com", "letters:message.brief", "team:C1", "team:slack.message.send", "any call with").out
	second := decode[schedule](t, d.want(d.admin(brief("--evening", "18:00", "--show-mail", "--alerts", "--json")...), command.ExitOK).out)
	moved := decode[schedule](t, d.want(d.admin(brief("--slack", "team", "--grant", "24h", "--json")...), command.ExitOK).out)
	held := grants()
	d.want(d.admin(brief("--undo", "--morning", "08:00")...), command.ExitUsage, "cannot be combined")
	d.want(d.admin(brief("--undo")...), command.ExitOK, "1 grants are revoked")
	last := decode[schedule](t, d.want(d.operator(brief("--json")...), command.ExitOK).out)
	d.want(d.admin(brief("--undo")...), command.ExitOK, "0 grants are revoked")

	if len(first.Channels) != 2 || first.Channels[0].GrantID == nil || first.Channels[1].GrantID == nil || !strings.Contains(shown, first.Channels[0].GrantID.String()) {
		t.Fatalf("the first schedule is %+v\n%s", first, shown)
	}
	if b := second.Briefs; b.Morning != "07:30" || b.Evening != "18:00" || !b.ShowMail || !b.Alerts || !b.ArchivingCloses || len(b.Channels) != 2 || len(second.Revoked) != 2 || *second.Channels[0].GrantID == *first.Channels[0].GrantID {
		t.Errorf("the second schedule is %+v of %+v", second, b)
	}
	if len(moved.Channels) != 1 || moved.Channels[0].Tool != "team:slack.webhook.send" || moved.Channels[0].GrantID == nil || len(held) != 1 {
		t.Errorf("the third schedule is %+v; %d grants", moved, len(held))
	}
	if len(grants()) != 0 || last.Briefs == nil || last.Briefs.Morning != "" || len(last.Briefs.Channels) != 0 || !last.Briefs.ArchivingCloses {
		t.Errorf("at the end %+v; %d grants", last.Briefs, len(grants()))
	}
}
