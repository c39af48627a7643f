package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// TestPolicyCommands goes through the commands of policy against a real API.
// The tests share one environment, and each cleans up what would stop another.
func TestPolicyCommands(t *testing.T) {
	t.Parallel()
	d := open(t)

	for _, test := range []struct {
		name string
		run  func(*fixture)
	}{
		{"modes", setsModes}, {"danger", setsDanger}, {"rules", setsRules}, {"grants", makesGrants}, {"sessions", narrowsSessions}, {"preferences", switchesOff},
		{"explains", explainsDecisions}, {"a file", appliesAPolicy}, {"simulates", simulates},
	} {
		t.Run(test.name, func(t *testing.T) {
			here := *d
			here.t = t
			test.run(&here)
		})
	}
}

func setsModes(d *fixture) {
	d.want(d.admin("policy", "mode", "set", "notes:notes.create", "allow"), command.ExitOK, "notes:notes.create is allow")
	d.want(d.admin("policy", "mode", "set", "notes:*", "deny", "--automation", "nightly"), command.ExitOK)
	d.want(d.operator("policy", "mode", "list"), command.ExitOK, "notes:notes.create", "allow", "nightly", "deny")
	d.want(d.admin("policy", "mode", "delete", "notes:*", "--automation-id", "nightly"), command.ExitOK, "removed the mode")
	d.want(d.admin("policy", "mode", "delete", "notes:notes.create"), command.ExitOK)
	d.want(d.admin("policy", "mode", "delete", "notes:notes.create"), command.ExitFailed, "no mode is set")
	d.want(d.admin("policy", "mode", "set", "notes:*", "maybe"), command.ExitUsage, "allow, require_approval or deny")
	d.want(d.admin("policy", "mode", "set", "no*es:*", "deny"), command.ExitUsage, "source:name, source:*")
	d.want(d.admin("policy", "mode", "set", "notes:*"), command.ExitUsage, "at least 2")
	d.want(d.operator("policy", "mode", "set", "notes:*", "deny"), command.ExitFailed, "it needs the role")
	d.want(d.admin("policy", "modes"), command.ExitUsage, `did you mean "mode"?`)
}

func setsDanger(d *fixture) {
	d.want(d.operator("policy", "danger"), command.ExitOK, "deny")
	d.want(d.operator("source", "list"), command.ExitOK, "1 of them denied as dangerous")
	d.want(d.operator("source", "show", "notes"), command.ExitOK, "notes", "mcp", "credentials", "transport")
	d.want(d.operator("source", "show", "notes", "--json"), command.ExitOK, `"source_id":"notes"`)
	d.want(d.operator("source", "show", "none"), command.ExitFailed, "no such source")
	d.want(d.operator("source", "refresh", "notes"), command.ExitOK, "countersign policy danger require_approval", "Denied: notes.delete")
	d.want(d.operator("policy", "danger", "require_approval"), command.ExitFailed, "it needs the role")
	d.want(d.admin("policy", "danger", "allow"), command.ExitUsage, "countersign policy mode set")
	d.want(d.admin("policy", "danger", "require_approval"), command.ExitOK, "danger", "1 changed")
	d.want(d.operator("policy", "danger", "--json"), command.ExitOK, `{"danger":"require_approval"}`)
	d.want(d.agent("submit", "--tool", "notes:notes.delete", "--args", `{"id":"x"}`), command.ExitOK, "A person must decide")
	d.want(d.admin("policy", "danger", "deny"), command.ExitOK)
}

func setsRules(d *fixture) {
	file := d.file("long.cel", "args.title.size() > 40 ||\n  args.title == 'x'\n")
	d.want(d.operator("policy", "rule", "list"), command.ExitOK, "No rules.")
	d.want(d.admin("policy", "rule", "set", "long", "--tool", "notes:notes.create", "--when", "@"+file, "--mode", "deny", "--reason", "Too long"), command.ExitOK, "set rule long")
	d.want(d.admin("policy", "rule", "set", "spare", "--tool", "*", "--when", "true", "--mode", "deny", "--off"), command.ExitOK)
	d.want(d.operator("policy", "rule", "list"), command.ExitOK, "long", "Too long", "args.title.size() > 40 || ", "deny (off)")
	rules := d.want(d.operator("policy", "rule", "list", "--json"), command.ExitOK).out
	if r := decode[wire.Rule](d.t, strings.SplitN(rules, "\n", 2)[0]); r.ID != "long" || !strings.HasSuffix(r.Expression, "== 'x'") {
		d.t.Errorf("listed %+v", r)
	}
	d.want(d.operator("policy", "rule", "check", "--tool", "notes:notes.create", "--when", "@"+file), command.ExitOK, "failed, counts as true", "examined since")
	d.want(d.operator("policy", "rule", "check", "--tool", "notes:notes.create", "--when", "args.x >"), command.ExitFailed, "Syntax error", "Names: args.")
	d.want(d.operator("policy", "rule", "check", "--tool", "*"), command.ExitUsage, "--tool and --when")
	d.want(d.admin("policy", "rule", "set", "bad", "--tool", "*", "--when", "args.x >", "--mode", "deny"), command.ExitUsage, "line 1, column 9", "^")
	d.want(d.admin("policy", "rule", "set", "bad", "--tool", "*", "--when", "true"), command.ExitUsage, "--tool, --when and --mode")
	d.want(d.admin("policy", "rule", "set", "bad", "--tool", "*", "--when", "true", "--mode", "allow"), command.ExitUsage, "--mode must be require_approval or deny")
	d.want(d.operator("policy", "usage"), command.ExitOK, "other rules and grants have none")
	d.want(d.admin("policy", "rule", "delete", "long"), command.ExitOK, "removed rule long")
	d.want(d.admin("policy", "rule", "delete", "long"), command.ExitFailed, "no rule long")
	d.want(d.admin("policy", "rule", "delete", "spare"), command.ExitOK)
}

func makesGrants(d *fixture) {
	s := d.want(d.admin("policy", "grant", "make", "notes:notes.create", "--session-id", "s-1", "--pin", "/title=Plain text", "--pin", "/body=\"x\"", "--expires-in", "1h", "--reason", "today"), command.ExitOK, "created grant ")
	id := strings.TrimSpace(strings.TrimPrefix(s.out, "created grant "))
	d.want(d.operator("policy", "grant", "list"), command.ExitOK, id, "session s-1", `exactly {"body":"x","title":"Plain text"}`, "today")
	d.want(d.admin("policy", "grant", "make", "notes:notes.create", "--loose", "all", "--preview"), command.ExitOK, "any arguments", "would have run")
	d.want(d.operator("policy", "grant", "revoke", id), command.ExitOK, "revoked grant")
	d.want(d.operator("policy", "grant", "revoke", id), command.ExitFailed, "no active grant")
	d.want(d.operator("policy", "grant", "list"), command.ExitOK, "No matching grants.")
	d.want(d.operator("policy", "grant", "list", "--ended"), command.ExitOK, "revoked by")
	for text, args := range map[string][]string{
		"such as /currency=EUR": {"--pin", "currency=EUR"}, "is repeated": {"--pin", "/a=1", "--pin", "/a=2"},
		"--expires-in must be": {"--expires-in", "soon"}, "--employee-id must be": {"--employee-id", "Ana"},
	} {
		d.want(d.admin(append([]string{"policy", "grant", "make", "notes:notes.create"}, args...)...), command.ExitUsage, text)
	}
	d.want(d.admin("policy", "grant", "make", "notes"), command.ExitUsage, "sourceId:actionId")
	d.want(d.admin("policy", "grant", "make", "notes:none"), command.ExitFailed, "no such tool")
	d.want(d.admin("policy", "grant", "revoke", "x"), command.ExitUsage, "36 characters")
}

func narrowsSessions(d *fixture) {
	d.want(d.operator("policy", "session", "list"), command.ExitOK, "Nothing is set.")
	d.want(d.admin("policy", "session", "set", "s-9", "notes:*", "deny", "--expires-in", "1d"), command.ExitOK, "notes:* is deny in session s-9 for 1d")
	d.want(d.operator("policy", "session", "list", "s-9"), command.ExitOK, "s-9", "notes:*", "deny")
	d.want(d.operator("policy", "session", "list", "s-8"), command.ExitOK, "Nothing is set.")
	d.want(d.admin("policy", "session", "delete", "s-9", "notes:*"), command.ExitOK, "removed notes:* of session s-9")
	d.want(d.admin("policy", "session", "delete", "s-9", "notes:*"), command.ExitFailed, "has no mode")
	d.want(d.admin("policy", "session", "set", "s-9", "notes:*", "deny", "--expires-in", "31d"), command.ExitUsage, "/expires_in")
	d.want(d.admin("policy", "session", "set", "s-9", "notes:*", "deny", "--expires-in", "0s"), command.ExitUsage, "above zero")
}

func switchesOff(d *fixture) {
	const ana = "019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b"
	d.want(d.operator("policy", "preference", "list"), command.ExitOK, "Nothing is switched off.")
	d.want(d.operator("policy", "preference", "set", "notes:notes.delete"), command.ExitOK, "switched notes:notes.delete off for everybody")
	d.want(d.operator("policy", "preference", "set", "notes:*", "--employee-id", ana), command.ExitOK, "off for "+ana)
	d.want(d.operator("policy", "preference", "list", "--employee-id", ana), command.ExitOK, "everybody", ana)
	d.want(d.operator("policy", "preference", "delete", "notes:*", "--employee-id", ana), command.ExitOK, "on for "+ana)
	d.want(d.operator("policy", "preference", "delete", "notes:notes.delete"), command.ExitOK)
	d.want(d.operator("policy", "preference", "delete", "notes:notes.delete"), command.ExitFailed, "is not switched off")
}

func explainsDecisions(d *fixture) {
	d.want(d.admin("policy", "rule", "set", "x", "--tool", "notes:notes.create", "--when", "args.title == 'x'", "--mode", "deny", "--reason", "No x"), command.ExitOK)
	d.want(d.operator("policy", "explain", "notes:notes.create", `{"title":"x","body":"y"}`), command.ExitOK,
		"LAYER", "the default for the tool's risk", "No x", "notes:notes.create: deny, because of")
	d.want(d.operator("policy", "explain", "notes:notes.create"), command.ExitOK, "require_approval, because of the default for the tool's risk")
	file := d.file("args.json", `{"title":"z","body":"y"}`)
	e := decode[wire.Explanation](d.t, d.want(d.operator("policy", "explain", "notes:notes.create", "@"+file, "--ask", "--risk", "high", "--json"), command.ExitOK).out)
	if e.Mode != "require_approval" || e.Tool != "notes:notes.create" {
		d.t.Errorf("explained %+v", e)
	}
	d.want(d.operator("policy", "explain", "notes:notes.create", "{title}"), command.ExitUsage, "mind the shell's quotes")
	d.want(d.operator("policy", "matrix", "--query", "notes.create"), command.ExitOK, "BECAUSE OF", "notes:notes.create", "write", "the default for the tool's risk")
	d.want(d.agent("policy", "matrix"), command.ExitFailed, "it needs the role")
	d.want(d.operator("policy", "explain", "notes:none"), command.ExitUsage, "such a tool")
	d.want(d.agent("policy", "explain", "notes:notes.create"), command.ExitFailed, "it needs the role")
	d.want(d.admin("policy", "rule", "delete", "x"), command.ExitOK)
}

func appliesAPolicy(d *fixture) {
	file := d.file("policy.yaml", `# as agreed
modes:
  - {tool: 'notes:*', mode: allow}
rules:
  - rule_id: long
    tool: notes:notes.create
    mode: require_approval
    reason: "Long: 40"
    expression: |
      size(string(args.title)) > 40
      || args.title == "*"
preferences:
  - tool: notes:notes.delete
reviews:
  - {tool: '*', risk: high, approvals: 2, wait: 1d}
`)
	bad := d.file("bad.yaml", "modes:\n  - tool: 'no*es:x'\n    mode: allow\nrules:\n  - rule_id: a\n    tool: '*'\n    mode: deny\n    expression: |\n      args.x >\n        > 1\n")
	late := d.file("late.yaml", "rules:\n  - rule_id: a\n    tool: notes:notes.create\n    mode: deny\n    expression: args.colour == 'red'\n")
	bomb := d.file("bomb.yaml", "modes: &a [&b {tool: x}]\nrules: [*a, *a]\n"+"preferences: &c [*c]\n")
	before := d.want(d.operator("policy", "show"), command.ExitOK).out

	nobody := func(args ...string) result { return d.run(d.t.Context(), "", "", args...) }
	d.want(nobody("policy", "check", "-f", file), command.ExitOK, "is in order")
	d.want(nobody("policy", "check", "-f", bad), command.ExitFailed,
		"bad.yaml:2:5: /modes/0/tool is refused", "bad.yaml:8:5: /rules/0/expression line 2, column 3: ", "> 1", "^")
	d.want(nobody("policy", "check", "-f", bomb), command.ExitFailed, "bomb.yaml:")
	d.want(nobody("policy", "check"), command.ExitUsage, "-f is required")
	d.want(d.admin("policy", "apply", "-f", late, "--apply"), command.ExitFailed, "late.yaml:5:5: /rules/0/expression line 1, column 5: ", "the tool has no argument")
	d.want(d.admin("policy", "apply", "-f", file), command.ExitOK, "added", "notes:*", "Nothing was changed; add --apply")
	if now := d.want(d.operator("policy", "show"), command.ExitOK).out; now != before {
		d.t.Errorf("a dry run changed the policy to\n%s", now)
	}
	d.want(d.admin("policy", "apply", "-f", file, "--apply"), command.ExitOK, "* from risk high", "Done.")
	shown := d.want(d.operator("policy", "show"), command.ExitOK, "expression: |", "Long: 40", "tool: '*'", "wait: \"1d\"").out
	again := d.want(d.admin("policy", "apply", "-f", d.file("again.yaml", shown), "--json", "--apply"), command.ExitOK).out
	if strings.Count(again, `"unchanged"`) != 5 || strings.Contains(again, `"changed"`) {
		d.t.Errorf("what was shown, applied again, changes %s", again)
	}
	d.want(d.operator("policy", "apply", "-f", file, "--apply"), command.ExitFailed, "it needs the role")
	d.want(d.run(d.t.Context(), d.environment.Tokens().Admin, before, "policy", "apply", "-f", "-", "--apply"), command.ExitOK, "4 removed")
	if now := d.want(d.operator("policy", "show"), command.ExitOK).out; now != before {
		d.t.Errorf("put back, the policy is\n%s\nwant\n%s", now, before)
	}
}

func simulates(d *fixture) {
	for _, title := range []string{"short", "a title that is by far too long", "x"} {
		d.propose(title)
	}
	stricter := d.file("stricter.yaml", "rules:\n  - {rule_id: long, tool: 'notes:notes.create', mode: deny, expression: 'size(string(args.title)) > 10'}\n")
	same := d.file("same.yaml", "rules: []\n")
	late := d.file("wrong.yaml", "rules:\n  - {rule_id: a, tool: notes:notes.create, mode: deny, expression: args.colour == 'red'}\n")

	s := d.want(d.operator("policy", "simulate", "-f", stricter, "--since", "1h", "--tool", "notes:notes.create"), command.ExitOK,
		"NOW", "WOULD", "require_approval", "deny", "arguments long", "3 compared: 1 decided differently")
	if strings.Contains(s.out, "too long") {
		d.t.Errorf("it shows arguments: %s", s.out)
	}
	d.want(d.operator("policy", "simulate", "-f", stricter, "--fail-on-change"), command.ExitAction, "1 decided differently")
	d.want(d.operator("policy", "simulate", "-f", same, "--fail-on-change"), command.ExitOK, "0 decided differently")
	lines := strings.Split(strings.TrimSpace(d.want(d.operator("policy", "simulate", "-f", stricter, "--tool", "notes:notes.create", "--json", "--fail-on-change"), command.ExitAction).out), "\n")
	last := decode[struct {
		Summary struct {
			Partial           bool
			Compared, Changed int
		}
	}](d.t, lines[len(lines)-1])
	if len(lines) != 2 || !strings.Contains(lines[0], `"changed":{"mode":"deny"`) || last.Summary.Changed != 1 || last.Summary.Compared != 3 || last.Summary.Partial {
		d.t.Errorf("--json wrote %s", lines)
	}
	d.want(d.operator("policy", "simulate", "-f", late), command.ExitFailed, "wrong.yaml:2:", "/rules/0/expression", "the tool has no argument")
	d.want(d.operator("policy", "simulate", "-f", same, "--since", "1h", "--until", "2h"), command.ExitUsage, "--until must be later")
	d.want(d.operator("policy", "simulate", "-f", same, "--since", "soon"), command.ExitUsage, "--since must be")
	d.want(d.operator("policy", "simulate", "-f", same, "--tool", "no*es"), command.ExitFailed, "/tool")
	d.want(d.operator("policy", "simulate"), command.ExitUsage, "-f is required")
	d.want(d.agent("policy", "simulate", "-f", same), command.ExitFailed, "it needs the role")
}

// TestSimulationStopsCleanly ends a simulation at its third page: by a signal,
// and by a server that fails.
func TestSimulationStopsCleanly(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		signal bool
		code   int
	}{"a signal": {true, command.ExitInterrupted}, "a failure": {false, command.ExitFailed}} {
		for _, asJSON := range []bool{false, true} {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			pages := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				// Only then does the server notice that the caller went away.
				_, _ = io.Copy(io.Discard, r.Body)
				if pages++; pages == 3 {
					if tt.signal {
						stop()
						<-r.Context().Done()
						return
					}
					w.WriteHeader(http.StatusInternalServerError)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = fmt.Fprintf(w, `{"config_version":%d,"examined":2000,"compared":2000,"without_tool":0,"next_cursor":"x",
					"counts":[{"tool":"a:b","then":"allow","now":"allow","changed":"deny","count":2000}],
					"differences":[{"action_id":"019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b","proposed_at":"2026-01-02T03:04:05Z","tool":"a:b",
						"then":{"mode":"allow","source":"s"},"now":{"mode":"allow","source":"s"},"changed":{"mode":"deny","source":"s"},"causes":[]}]}`, pages)
			}))
			defer server.Close()
			var out, errs bytes.Buffer
			args := []string{"policy", "simulate", "-f", "-", "--fail-on-change"}
			if asJSON {
				args = append(args, "--json")
			}

			code := cli.Run(ctx, args, command.System{
				In: strings.NewReader("modes: []\n"), Out: &out, Err: &errs,
				Getenv: func(name string) string {
					return map[string]string{"COUNTERSIGN_URL": server.URL, "COUNTERSIGN_TOKEN": "t"}[name]
				},
			})

			if code != tt.code || pages != 3 {
				t.Errorf("%s: exit code %d after %d pages, want %d: %s", name, code, pages, tt.code, errs.String())
			}
			if !asJSON {
				for _, text := range []string{"Stopped early", "4000 action(s) examined", "4000 decided differently", "policy changed meanwhile"} {
					if !strings.Contains(out.String(), text) {
						t.Errorf("%s: it does not say %q:\n%s", name, text, out.String())
					}
				}
				continue
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			var last struct {
				Summary struct {
					Partial bool
					Moved   bool `json:"policy_moved"`
					Changed int
				}
			}
			if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || len(lines) != 3 || !last.Summary.Partial || !last.Summary.Moved || last.Summary.Changed != 4000 {
				t.Errorf("%s: %v in %q", name, err, lines)
			}
		}
	}
}
