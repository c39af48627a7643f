package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

func (d *fixture) admin(args ...string) result {
	d.t.Helper()
	return d.run(d.t.Context(), d.environment.Tokens().Admin, "", args...)
}

// file writes a file and returns its name.
func (d *fixture) file(name, text string) string {
	d.t.Helper()
	path := filepath.Join(d.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
	return path
}

// TestLimitCommands goes through the commands of the limits against a real
// API. The tests share one environment, and each cleans up what would stop
// another.
func TestLimitCommands(t *testing.T) {
	t.Parallel()
	d := open(t)

	for _, test := range []struct {
		name string
		run  func(*fixture)
	}{
		{"buckets", setsBuckets}, {"quiet hours", setsQuietHours}, {"employees", setsEmployees}, {"tools", setsTools},
		{"contacts", keepsContacts}, {"imports", importsContacts}, {"pauses", pausesAndKills}, {"everything", pausesEverything},
		{"breakers", looksAtBreakers}, {"a session", limitsSessions}, {"a file", appliesAFile},
	} {
		t.Run(test.name, func(t *testing.T) {
			here := *d
			here.t = t
			test.run(&here)
		})
	}
}

func setsBuckets(d *fixture) {
	d.want(d.admin("bucket", "set", "email.daily", "--rate", "30/1m", "--burst", "5", "--calendar", "500/day", "--timezone", "Europe/Berlin", "--concurrency", "4"),
		command.ExitOK, "set bucket email.daily: 30/1m, burst 5, 500/day Europe/Berlin, 4 at once")
	d.want(d.admin("bucket", "set", "email.daily", "--create", "--rate", "1/1m"), command.ExitFailed, "this exists already")
	d.want(d.operator("bucket", "list"), command.ExitOK, "default", "email.daily", "5 permits now", "open")
	s := d.want(d.operator("bucket", "show", "email.daily", "--json"), command.ExitOK)
	if b := decode[wire.BucketState](d.t, s.out); b.Rate == nil || b.Rate.Limit != 30 || b.Concurrency == nil || *b.Concurrency != 4 {
		d.t.Errorf("shown: %+v", b)
	}
	d.want(d.operator("bucket", "reopen", "email.daily"), command.ExitOK, "reopened")
	d.want(d.admin("bucket", "retire", "email.daily"), command.ExitOK, "retired bucket email.daily")
	d.want(d.operator("bucket", "list"), command.ExitOK, "retired")
	d.want(d.admin("bucket", "retire", "default"), command.ExitFailed, "cannot be retired")
	d.want(d.operator("bucket", "set", "x"), command.ExitFailed, "it needs the role")
	for text, args := range map[string][]string{
		"a number from 1, a slash":        {"--rate", "0/1m"},
		"such as 30/1m":                   {"--rate", "often"},
		"number with a unit":              {"--rate", "5/while"},
		"at most the limit":               {"--rate", "5/1m", "--burst", "6"},
		"hour or day or week":             {"--calendar", "5/year"},
		"name of a time zone":             {"--calendar", "5/day", "--timezone", "Mars/Base"},
		"--burst needs --rate":            {"--burst", "2"},
		"--timezone needs":                {"--timezone", "UTC"},
		"--concurrency must be 1 or more": {"--concurrency", "0"},
		"--burst must be 1 or more":       {"--rate", "5/1m", "--burst", "0"},
		"at most 10000 a second":          {"--rate", "20/1ms", "--burst", "1"},
	} {
		d.want(d.admin(append([]string{"bucket", "set", "bad"}, args...)...), command.ExitUsage, text)
	}
	d.want(d.operator("bucket", "show", "bad"), command.ExitFailed, "no bucket bad")
}

func setsQuietHours(d *fixture) {
	d.want(d.operator("quiet", "list"), command.ExitOK, "No quiet hours")
	d.want(d.admin("quiet", "set", "--bucket", "default", "--timezone", "Europe/Berlin", "--window", "sat,sun 03:00-03:01", "--window", "03:00-03:01", "--spread", "1m"), command.ExitOK)
	d.want(d.operator("quiet", "list"), command.ExitOK, "default", "sat,sun", "every day", "03:00-03:01", "Europe/Berlin")
	d.want(d.operator("quiet", "preview", "--bucket", "default", "--timezone", "Europe/Berlin", "--window", "sat 22:00-07:00+1", "--from", "2026-03-28"), command.ExitOK,
		"Sat 2026-03-28 22:00 +01:00", "Sun 2026-03-29 07:00 +02:00", "8h0m0s", "the clock changes by 1h0m0s at Sun 2026-03-29 03:00 +02:00", "0 scheduled action(s)")
	d.want(d.operator("quiet", "preview", "--timezone", "Mars/Base", "--window", "03:00-03:01"), command.ExitUsage, "/timezone")
	d.want(d.admin("quiet", "set", "--bucket", "none", "--timezone", "UTC", "--window", "03:00-03:01"), command.ExitUsage, "/subject", "must be the name of a bucket: default")
	d.want(d.admin("quiet", "set", "--tenant", "--timezone", "UTC", "--window", "20:00-08:00"), command.ExitUsage, "/windows/0/until", "+1")
	d.want(d.admin("quiet", "set", "--tenant", "--timezone", "UTC", "--window", "whenever"), command.ExitUsage, "mon-fri 20:00-08:00+1")
	d.want(d.admin("quiet", "set", "--tenant", "--bucket", "default"), command.ExitUsage, "one of --tenant")
	d.want(d.admin("quiet", "remove", "--bucket", "default"), command.ExitOK, "removed quiet hours of bucket default")
	d.want(d.admin("quiet", "remove", "--bucket", "default"), command.ExitFailed, "no quiet hours are set there")
}

func setsEmployees(d *fixture) {
	const id = "019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b"
	d.want(d.operator("employee", "list"), command.ExitOK, "No employee has settings")
	d.want(d.admin("employee", "set", id, "--trust", "medium", "--scope", "contacts:*", "--scope", "mail:send", "--name", "Newsletter"), command.ExitOK, "trust medium, 2 scope(s)")
	d.want(d.operator("employee", "list"), command.ExitOK, id, "Newsletter", "medium", "contacts:* mail:send")
	d.want(d.admin("employee", "set", "default", "--trust", "some"), command.ExitUsage, "none, low, medium or high")
	d.want(d.admin("employee", "set", "default", "--trust", "low", "--scope", "a:*:b"), command.ExitUsage, "/scopes/0")
	d.want(d.admin("employee", "set", "Ana", "--trust", "low"), command.ExitUsage, "UUID")
	d.want(d.admin("employee", "remove", id), command.ExitOK, "removed")
	d.want(d.admin("employee", "remove", id), command.ExitFailed, "nothing is set for the employee")
}

func setsTools(d *fixture) {
	d.want(d.admin("tools", "set", "notes:notes.create", "--recipient", "/title", "--scope", "notes:write", "--max-attempts", "3", "--base", "2s", "--cap", "1m", "--jitter", "0.5"), command.ExitOK, "set tool notes:notes.create")
	d.want(d.operator("tools", "list"), command.ExitOK, "/title", "notes:write")
	d.want(d.admin("tools", "set", "notes:notes.create", "--nobody"), command.ExitOK)
	d.want(d.operator("tools", "list"), command.ExitOK, "nobody")
	d.want(d.admin("tools", "set", "notes:notes.create"), command.ExitOK)
	for text, args := range map[string][]string{
		"/retry/jitter: must be":    {"notes:notes.create", "--jitter", "-0.5"},
		"/retry/cap: must not be":   {"notes:notes.create", "--base", "2m", "--cap", "1m"},
		"--base must be a duration": {"notes:notes.create", "--base", "soon"},
		"/recipients/0: must begin": {"notes:notes.create", "--recipient", "title"},
		"not both":                  {"notes:notes.create", "--recipient", "/title", "--nobody"},
		"invalid tool":              {"notes"},
	} {
		d.want(d.operator(append([]string{"tools", "set"}, args...)...), command.ExitUsage, text)
	}
	d.want(d.operator("tools", "set", "notes:none"), command.ExitFailed, "no such tool", "list the tools")
}

func keepsContacts(d *fixture) {
	d.want(d.operator("dnc", "list"), command.ExitOK, "No matching entries")
	d.want(d.operator("dnc", "add", "Ana@Example.org", "rival.example", "+49 30 123456", "--reason", "asked", "--expires", "2999-01-31"), command.ExitOK, "3 added, 0 changed")
	d.want(d.operator("dnc", "add", "ana@example.org"), command.ExitOK, "0 added, 1 changed")
	d.want(d.operator("dnc", "list"), command.ExitOK, "ana@example.org", "rival.example", "+4930123456", "asked")
	s := d.want(d.operator("dnc", "list", "--kind", "email", "--prefix", "AN", "--json"), command.ExitOK)
	if page := decode[wire.Page[wire.Contact]](d.t, s.out); len(page.Items) != 1 {
		d.t.Errorf("listed %+v", page.Items)
	}
	d.want(d.operator("dnc", "list", "--limit", "1"), command.ExitOK, "--cursor")
	d.want(d.operator("dnc", "check", "Bo <bo@mail.Rival.example>"), command.ExitOK, "bo@mail.rival.example", "rival.example", "yes", "asked")
	d.want(d.operator("dnc", "add", "bo@example.org", "nobody@"), command.ExitUsage, "nobody@: contact must be a mail address")
	d.want(d.operator("dnc", "add", "not an address at all"), command.ExitUsage, "or a handle")
	d.want(d.operator("dnc", "add", "cyd@example.org"), command.ExitOK, "as email")
	d.want(d.admin("dnc", "remove", "cyd@example.org", "--note", "she asked for it"), command.ExitOK, "1 removed")
	d.readable()
	d.want(d.admin("audit", "log", "--subject", "do-not-contact list changed", "--limit", "1"), command.ExitOK, "she asked for it")
	d.want(d.admin("dnc", "remove", "cyd@example.org", "--note", strings.Repeat("y", 501)), command.ExitUsage, "note")
	d.want(d.operator("dnc", "list", "--prefix", "bo"), command.ExitOK, "No matching entries")
	d.want(d.operator("dnc", "add", "x", "--expires", "soon"), command.ExitUsage, "--expires must be")
	d.want(d.operator("dnc", "remove", "ana@example.org"), command.ExitFailed, "it needs the role")
	d.want(d.admin("dnc", "remove", "ana@example.org", "rival.example", "+4930123456", "cy@example.org"), command.ExitOK, "3 removed")
}

func importsContacts(d *fixture) {
	var long strings.Builder
	long.WriteString("value,reason\n")
	for i := range 2500 {
		fmt.Fprintf(&long, "u%d@example.org,\"no, thanks\"\n", i)
	}
	good := d.file("good.csv", long.String())
	bad := d.file("bad.csv", "value,expires_at\nv@example.org,2027-01-31\nnobody@,\nw@example.org,someday\n")

	d.want(d.admin("dnc", "import", bad), command.ExitFailed, "bad.csv:3:1: value", "bad.csv:4:15: expires_at", "2 of 3 line(s) are invalid, so nothing was imported")
	d.want(d.operator("dnc", "list"), command.ExitOK, "No matching entries")
	d.want(d.admin("dnc", "import", bad, "--skip-bad"), command.ExitOK, "1 read, 2 wrong, 1 added")
	d.want(d.admin("dnc", "import", good, "--dry-run"), command.ExitOK, "2500 read, 0 wrong; nothing was imported")
	d.want(d.admin("dnc", "import", good), command.ExitOK, "2500 read, 0 wrong, 2500 added, 0 changed")
	again := d.want(d.run(d.t.Context(), d.environment.Tokens().Admin, long.String(), "dnc", "import", "-", "--json"), command.ExitOK)
	if !strings.Contains(again.out, `"added":0,"changed":2500`) {
		d.t.Errorf("the same again came to %s", again.out)
	}
	exported := d.want(d.operator("dnc", "export"), command.ExitOK).out
	if n := strings.Count(exported, "\n"); n != 2502 {
		d.t.Errorf("exported %d lines, want 2502", n)
	}
	d.want(d.admin("dnc", "import", d.file("again.csv", exported), "--dry-run"), command.ExitOK, "2501 read, 0 wrong")
	d.want(d.admin("dnc", "import", d.file("none.csv", "")), command.ExitFailed, "the file is empty")
	d.want(d.admin("dnc", "import", d.file("odd.csv", "mail\n")), command.ExitFailed, "line 1, column 1", "is not a column")
	d.want(d.admin("dnc", "import", filepath.Join(d.dir, "missing.csv")), command.ExitUsage, "cannot be read")
}

func pausesAndKills(d *fixture) {
	d.want(d.operator("pause", "list"), command.ExitOK, "Nothing is paused")
	d.want(d.operator("pause", "--tool", "notes:notes.read"), command.ExitUsage, "--reason is required")
	d.want(d.operator("pause", "--reason", "x"), command.ExitUsage, "one of --tool")
	d.want(d.operator("pause", "--tool", "notes:none", "--reason", "x"), command.ExitUsage, "/subject")
	d.want(d.operator("pause", "--tool", "notes:notes.read", "--reason", "odd answers"), command.ExitOK,
		"tool notes:notes.read is paused", "odd answers", "within a second", "countersign resume --tool notes:notes.read")
	d.want(d.operator("kill", "--tool", "notes:notes.read", "--reason", "worse"), command.ExitOK, "is killed", "pause list")
	d.want(d.operator("pause", "list"), command.ExitOK, "tool notes:notes.read", "killed", "worse")
	d.want(d.operator("resume", "--tool", "notes:notes.read", "--reason", "fine"), command.ExitOK, "goes on")
	d.want(d.operator("resume", "--tool", "notes:notes.read"), command.ExitFailed, "nothing is paused there")
	s := d.want(d.operator("pause", "list", "--past", "--json"), command.ExitOK)
	if page := decode[wire.Page[wire.Pause]](d.t, s.out); len(page.Items) != 1 || page.Items[0].LiftedAt == nil || page.Items[0].Reason != "worse" {
		d.t.Errorf("past: %+v", page.Items)
	}
}

func pausesEverything(d *fixture) {
	d.want(d.run(d.t.Context(), "", "", "pause", "--everything", "--reason", "moving environment"), command.ExitOK,
		"everything is paused", "(on the database)", "action(s) now", "countersign resume --everything")
	d.want(d.operator("pause", "list"), command.ExitOK, "everything", "moving environment")
	d.want(d.operator("resume", "--tenant"), command.ExitFailed, "nothing is paused there")
	d.want(d.run(d.t.Context(), "", "", "kill", "--everything", "--reason", "for good"), command.ExitOK, "everything is killed")
	d.want(d.run(d.t.Context(), "", "", "resume", "--everything"), command.ExitOK, "everything goes on")
	d.want(d.run(d.t.Context(), "", "", "resume", "--everything"), command.ExitFailed, "nothing is paused there")
	d.want(d.operator("pause", "list"), command.ExitOK, "Nothing is paused")
}

func looksAtBreakers(d *fixture) {
	d.want(d.operator("breaker", "list"), command.ExitOK, "No breaker has opened")
	d.want(d.operator("breaker", "reset", "notes"), command.ExitFailed, "has no breaker")
}

func limitsSessions(d *fixture) {
	d.want(d.admin("limits", "session", "--pending", "10", "--per-minute", "60"), command.ExitOK)
	d.want(d.operator("limits", "session"), command.ExitOK, "waiting for a person  10", "proposed in a minute  60")
	d.want(d.operator("limits", "session", "--pending", "3"), command.ExitFailed, "it needs the role")
	d.want(d.admin("limits", "session", "--pending", "-1"), command.ExitUsage, "session_pending_max")
	d.want(d.admin("limits", "session", "--pending", "3", "--per-minute", "0"), command.ExitOK, "waiting for a person  3", "proposed in a minute  any number")
	s := d.want(d.operator("limits", "session", "--json"), command.ExitOK)
	if got := decode[map[string]int](d.t, s.out); got["session_pending_max"] != 3 || got["session_minute_max"] != 0 {
		d.t.Errorf("limits session is %v, want 3 and 0", got)
	}
	d.want(d.admin("limits", "session", "--pending", "0"), command.ExitOK, "waiting for a person  any number")
}

func appliesAFile(d *fixture) {
	before := d.want(d.operator("limits", "show"), command.ExitOK).out
	file := d.file("limits.yaml", `# as agreed
settings: {timezone: Europe/Berlin, phone_region: DE}
buckets:
  - name: slack.minute
    rate: {limit: 50, per: 1m, burst: 5}
quiet_hours:
  - scope: tenant
    timezone: Europe/Berlin
    windows:
      - {from: 03:00, until: 03:01}
employees:
  - {employee_id: default, trust: high, scopes: ['*']}
`)
	bad := d.file("bad.yaml", "buckets:\n  - name: a\n    rate:\n      limit: 0\n      per: 1h\n  - name: b\n    colour: red\n")
	late := d.file("late.yaml", "buckets:\n  - name: good\nquiet_hours:\n  - scope: bucket\n    subject: none\n    timezone: UTC\n    windows: [{from: '03:00', until: '03:01'}]\n")

	d.want(d.run(d.t.Context(), "", "", "limits", "check", "-f", file), command.ExitOK, "is in order")
	d.want(d.run(d.t.Context(), "", "", "limits", "check", "-f", bad), command.ExitFailed, "bad.yaml:4:7: /buckets/0/rate/limit must be at least 1", "bad.yaml:7:5: /buckets/1/colour is not a field")
	d.want(d.run(d.t.Context(), "", "", "limits", "check"), command.ExitUsage, "-f is required")
	d.want(d.admin("limits", "apply", "-f", late, "--apply"), command.ExitFailed, "late.yaml:5:5: /quiet_hours/0/subject must be the name of a bucket")
	d.want(d.admin("limits", "apply", "-f", file), command.ExitOK, "added", "slack.minute", "Nothing was changed; add --apply")
	if now := d.want(d.operator("limits", "show"), command.ExitOK).out; now != before {
		d.t.Errorf("a dry run changed something:\n%s\nwas\n%s", now, before)
	}
	seen := decode[struct {
		ETag string `json:"etag"`
	}](d.t, d.want(d.admin("limits", "apply", "-f", file, "--json"), command.ExitOK).out).ETag
	d.want(d.admin("bucket", "set", "between", "--rate", "1/1m"), command.ExitOK)
	d.want(d.admin("limits", "apply", "-f", file, "--apply", "--if-match", seen), command.ExitFailed, "this was changed since it was read")
	d.want(d.admin("limits", "apply", "-f", file, "--apply"), command.ExitOK, "Done.")
	shown := d.want(d.operator("limits", "show"), command.ExitOK, `per: "1m"`, `employee_id: default`, `until: "03:01"`).out
	d.want(d.admin("limits", "apply", "-f", d.file("shown.yaml", shown)), command.ExitOK, "Nothing to do")
	asJSON := d.want(d.operator("limits", "show", "--json"), command.ExitOK).out
	d.want(d.admin("limits", "apply", "-f", d.file("shown.json", asJSON)), command.ExitOK, "Nothing to do")
	d.want(d.operator("limits", "apply", "-f", file), command.ExitFailed, "it needs the role")
	d.want(d.admin("limits", "apply", "-f", d.file("before.yaml", before), "--apply"), command.ExitOK, "removed", "Done.")
}
