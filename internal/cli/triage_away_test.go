package cli_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// TestTriageAway sets, changes and ends the answer in absence, which has one grant.
func TestTriageAway(t *testing.T) {
	t.Parallel()
	d := open(t)
	for _, part := range []string{"cur", "new", "tmp"} {
		if err := os.MkdirAll(filepath.Join(d.dir, "mail", part), 0o700); err != nil {
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
	type shown struct {
		State  string           `json:"state"`
		Away   *wire.TriageAway `json:"away"`
		Grants []uuid.UUID      `json:"grants"`
	}
	show := func() shown {
		t.Helper()
		return decode[shown](t, d.want(d.operator("triage", "away", "show", "work", "--json"), command.ExitOK).out)
	}
	grants := func() (n int) {
		t.Helper()
		admin, err := d.environment.Client(d.environment.Tokens().Admin)
		if err != nil {
			t.Fatal(err)
		}
		all, err := admin.Grants(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range all {
			if g.Tool == "letters:message.away" {
				n++
			}
		}
		return n
	}
	set := func(more ...string) []string {
		return append([]string{"triage", "away", "set", "work", "--subject", "Away", "--until", "14d", "--zone", "Europe/Berlin"}, more...)
	}
	d.want(d.admin("source", "set", "letters", "--kind", "mail", "--config", `{"accounts":{"ann":{"kind":"maildir","path":"`+filepath.Join(d.dir, "mail")+`","from":"ann@example.com"}}}`), command.ExitOK)
	const account = "kind: maildir\nconnection:\n  path: /srv/mail\nsettings:\n  addresses: [ann@example.com]\n"

	d.want(d.admin("triage", "accounts", "set", "work", "-f", file("alone.yaml", account)), command.ExitOK)
	d.want(d.operator("triage", "away", "show", "work"), command.ExitOK, "work gives no answers in absence")
	d.want(d.admin(set("--text", "Back soon", "--cohort", "vip")...), command.ExitUsage, "names no source")
	d.want(d.admin("triage", "accounts", "set", "work", "-f", file("work.yaml", account+"proposals: {source: letters, account: ann}\n")), command.ExitOK)
	d.want(d.admin(set("--text", "Back soon")...), command.ExitUsage, "--cohort are required")
	d.want(d.admin(set("--text", "Back soon", "--cohort", "vip", "--since", "15d")...), command.ExitUsage, "at most 90 days apart")
	d.want(d.admin(set("--text", "Back soon", "--cohort", "everybody")...), command.ExitUsage, "cohorts")
	d.want(d.operator(set("--text", "Back soon", "--cohort", "vip")...), command.ExitFailed)
	if n := grants(); n != 0 || show().Away != nil {
		t.Errorf("%d grants after failures", n)
	}

	d.want(d.admin(set("--text", "@"+file("away.txt", "Back on Monday.\r\nAnn\n"), "--cohort", "vip,intra_org", "--most", "7")...), command.ExitOK, "work answers until")
	first := show()
	d.want(d.operator("triage", "away", "show", "work"), command.ExitOK, "vip, intra_org", "7, by the days of Europe/Berlin", first.Grants[0].String(), "Back on Monday")
	d.want(d.admin(set("--text", "Later", "--cohort", "vip")...), command.ExitOK)
	second := show()
	kept := decode[wire.TriageAccount](t, d.want(d.admin("triage", "accounts", "show", "work", "--json"), command.ExitOK).out)
	one := grants()
	d.want(d.admin("triage", "away", "end", "work"), command.ExitOK, "work gives no answers in absence")

	if first.State != "away" || first.Away.Text != "Back on Monday.\nAnn" || first.Away.MostADay != 7 || len(first.Grants) != 1 {
		t.Errorf("first %+v of %+v", first, first.Away)
	}
	if second.Away.Text != "Later" || !second.Away.Since.Equal(first.Away.Since) || len(second.Grants) != 1 || second.Grants[0] == first.Grants[0] || one != 1 {
		t.Errorf("then %+v of %+v, %d grants", second, second.Away, one)
	}
	if kept.Connection.Path != "/srv/mail" || len(kept.Settings.Addresses) != 1 || kept.Proposals.Source != "letters" {
		t.Errorf("the account became %+v", kept)
	}
	if last := show(); last.State != "none" || last.Away != nil || len(last.Grants) != 0 || grants() != 0 {
		t.Errorf("at the end %+v, %d grants", last, grants())
	}
}
