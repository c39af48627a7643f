package cli_test

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

// TestCatalogCommands goes through the commands of sources and tools against a
// real API with a worker behind it, in the order of a test.
func TestCatalogCommands(t *testing.T) {
	t.Parallel()
	d := open(t)

	for _, test := range []struct {
		name string
		run  func(*fixture)
	}{
		{"finds tools", findsTools}, {"accepts a change", acceptsAChange}, {"says what is known better", describesTools}, {"sources", setsSources},
	} {
		t.Run(test.name, func(t *testing.T) {
			here := *d
			here.t, here.dir = t, t.TempDir()
			test.run(&here)
		})
	}
}

func findsTools(d *fixture) {
	d.want(d.operator("tools", "list"), command.ExitOK, "TOOL", "notes:notes.create", "require_approval")
	d.want(d.operator("tools", "list", "--source", "notes", "--risk", "read", "--limit", "1"), command.ExitOK, "notes:notes.")
	d.want(d.operator("tools", "list", "--source", "none"), command.ExitOK, "No matching tools.")
	s := d.want(d.agent("tools", "search", "create", "note", "--json"), command.ExitOK)
	if first, _, _ := strings.Cut(s.out, "\n"); !strings.Contains(decode[wire.Tool](d.t, first).Tool, "create") {
		d.t.Errorf("the best of the search is %s", first)
	}
	d.want(d.agent("tools", "show", "notes:notes.create"), command.ExitOK, "full name", "notes.notes.create", "Arguments:", `"title"`)
	d.want(d.agent("tools", "show", "none"), command.ExitFailed, "no such tool")
	d.want(d.agent("tools", "search"), command.ExitUsage, "words to search for")
	d.want(d.agent("tools", "list", "--risk", "huge"), command.ExitUsage, "--risk must be")
	d.want(d.agent("tools", "list", "--limit", "2000"), command.ExitUsage, "--limit must be")
}

func acceptsAChange(d *fixture) {
	d.want(d.operator("tools", "diff", "notes:notes.create"), command.ExitOK, "is unchanged since it was accepted")
	db := dbtest.Connect(d.t, d.database)
	// As if it had been accepted with another description.
	if _, err := db.Exec(d.t.Context(), `UPDATE tools SET accepted_digest = set_byte(accepted_digest, 7, 255 - get_byte(accepted_digest, 7)),
		accepted = jsonb_set(accepted, '{description}', to_jsonb($1::text)) WHERE name = 'notes.create'`, "Was\u200b \u001b[31mred."); err != nil {
		d.t.Fatal(err)
	}

	d.want(d.operator("tools", "list"), command.ExitOK, "drifted (text)")
	shown := d.want(d.operator("tools", "diff", "notes:notes.create"), command.ExitOK,
		"has changed since it was accepted (text)", "/description  (text, WITH INVISIBLE CHARACTERS)", `  - "Was\u{200B} \u{001B}[31mred."`, "To accept it as shown:")
	if strings.ContainsAny(shown.out, "\u200b\u001b") {
		d.t.Errorf("the diff lets through what does not show: %q", shown.out)
	}
	diff := decode[wire.ToolDiff](d.t, d.want(d.operator("tools", "diff", "notes:notes.create", "--json"), command.ExitOK).out)
	d.want(d.operator("tools", "accept", "notes:notes.create"), command.ExitUsage, "countersign tools diff notes:notes.create")
	d.want(d.admin("tools", "accept", "notes:notes.create", "--digest", *diff.AcceptedDigest), command.ExitFailed, "has changed since it was shown")
	d.want(d.operator("tools", "accept", "notes:notes.create", "--digest", diff.Digest), command.ExitFailed, "it needs the role admin or owner")
	d.want(d.admin("tools", "accept", "notes:notes.create", "--digest", diff.Digest), command.ExitOK, "accepted notes:notes.create")
	d.want(d.operator("tools", "diff", "notes:notes.create"), command.ExitOK, "is unchanged since it was accepted")
	d.want(d.operator("tools", "diff", "notes"), command.ExitUsage, "source:name")
	d.want(d.agent("tools", "diff", "notes:notes.create"), command.ExitFailed, "role")
}

func describesTools(d *fixture) {
	d.want(d.operator("tools", "override", "notes:notes.create", "--risk", "danger", "--max-attempts", "3"), command.ExitOK, "set tool notes:notes.create")
	d.want(d.operator("tools", "show", "notes:notes.create"), command.ExitOK, "danger, effect once, at most 3 attempts", "deny")
	d.want(d.admin("tools", "override", "notes:notes.create"), command.ExitOK)
	d.want(d.admin("tools", "describe", "notes:notes.create", "--module", "wiki", "--side-effect", "a note is there",
		"--reverse-by", "notes:notes.list", "--reverse-args", `{"id":"$outputs/id"}`), command.ExitOK, "described notes:notes.create")
	d.want(d.operator("tools", "show", "wiki.notes.create"), command.ExitOK, "wiki.notes.create", "a note is there", `by notes:notes.list {"id":"$outputs/id"}`)
	d.want(d.operator("tools", "describe", "notes:notes.create", "--reverse-by", "notes:none"), command.ExitUsage, "reversal")
	d.want(d.operator("tools", "describe", "notes:notes.create", "--reverse-args", "{}"), command.ExitUsage, "--reverse-by")
	d.want(d.operator("tools", "describe", "notes:notes.create", "--reverse-by", "a:b", "--reverse-args", "{"), command.ExitUsage, "--reverse-args must be")
	d.want(d.operator("tools", "describe", "notes:notes.create", "--side-effect", "x", "--no-side-effects"), command.ExitUsage, "not both")
	d.want(d.operator("tools", "override", "notes:notes.create", "--effect", "twice"), command.ExitUsage, "--effect must be")
	d.want(d.operator("tools", "describe", "notes:notes.create"), command.ExitOK)
}

func setsSources(d *fixture) {
	const secret = "hunter2-secret"
	credentials := d.file("crm.json", `{"header":{"Authorization":"Bearer `+secret+`"}}`)
	s := d.want(d.admin("source", "set", "crm", "--kind", "mcp", "--config", `{"transport":"http","url":"http://127.0.0.1:9/mcp"}`,
		"--default-risk", "danger", "--drift-guard", "interface", "--quarantine", "--wait", "0"), command.ExitOK, "stored source crm", "not listed yet")
	d.want(d.admin("source", "list"), command.ExitOK, "SOURCE", "crm", "interface, quarantine", "notes")
	listed := d.want(d.operator("source", "refresh", "notes"), command.ExitOK, "listed notes: ok")
	d.want(d.operator("source", "refresh", "none"), command.ExitFailed, "no source none")
	d.want(d.operator("source", "refresh", "crm", "--wait", "1ms"), command.ExitOK, "are not listed yet")
	d.want(d.admin("source", "set", "crm", "--kind", "mcp", "--config", "{"), command.ExitUsage, "--config must be")
	d.want(d.admin("source", "set", "crm", "--config", "{}"), command.ExitUsage, "--kind is required")
	d.want(d.admin("source", "set", "crm", "--kind", "mcp", "--config", "{}"), command.ExitUsage, "/config")
	d.want(d.admin("source", "set", "crm", "--kind", "mcp", "--drift-guard", "none"), command.ExitUsage, "--drift-guard must be")
	with := d.admin("source", "set", "crm", "--kind", "mcp", "--config", `{"transport":"http","url":"http://127.0.0.1:9/mcp"}`, "--credentials", "@"+credentials, "--off")
	if strings.Contains(with.out+with.err+s.out+listed.out, secret) {
		d.t.Error("a command shows a credential")
	}
	d.want(d.operator("source", "delete", "crm"), command.ExitFailed, "role")
	d.want(d.admin("source", "delete", "crm"), command.ExitOK, "removed source crm")
	d.want(d.admin("source", "delete", "crm"), command.ExitFailed, "no source crm")
}
