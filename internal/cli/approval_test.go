package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// TestApprovals goes through every command with which people decide.
func TestApprovals(t *testing.T) {
	t.Parallel()
	shared := open(t)
	for _, test := range []struct {
		name string
		run  func(*fixture)
	}{
		{"the inbox", looksIntoTheInbox},
		{"hidden characters", showsHiddenCharacters},
		{"look-alikes", showsLookalikes},
		{"edits", editsArguments},
		{"approves with other arguments", approvesOtherArguments},
		{"many at once", decidesManyAtOnce},
		{"always", approvesForever},
		{"two people", needsTwoPeople},
		{"refuses before sending", refusesDecisions},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := *shared
			d.t = t
			test.run(&d)
		})
	}
}

func looksIntoTheInbox(d *fixture) {
	d.want(d.operator("inbox"), command.ExitOK, "Nothing waits for a person")
	id := d.propose("Inbox")

	d.want(d.operator("inbox"), command.ExitOK, id, "notes:notes.create", "approval", "title Inbox")
	page := decode[wire.Page[wire.InboxItem]](d.t, d.want(d.operator("inbox", "--json"), command.ExitOK).out)
	if len(page.Items) != 1 || page.Items[0].Kind != "approval" || page.Items[0].ETag == "" {
		d.t.Errorf("inbox = %+v", page)
	}
	d.want(d.operator("inbox", "--kind", "approval,unknown", "--risk", "low,medium,high", "--tool", "notes.create", "--escalated=false", "--expires-before", "90d", "--order", "risk"), command.ExitOK, id)
	d.want(d.operator("inbox", "--kind", "unknown"), command.ExitOK, "Nothing waits for a person")
	d.want(d.operator("inbox", "--counts"), command.ExitOK, "1 wait: 1 for approval, 0 questions, 0 reviews", "notes:notes.create")
	d.want(d.operator("inbox", "--counts", "--order", "risk"), command.ExitUsage, "--counts cannot be combined")
	counts := decode[wire.InboxCounts](d.t, d.want(d.operator("inbox", "--counts", "--json"), command.ExitOK).out)
	if counts.Total != 1 || !page.Items[0].MayDecide {
		d.t.Errorf("counts = %+v of %+v", counts, page)
	}
	d.want(d.operator("approve", id, "--etag", strings.Repeat("A", 24)), command.ExitFailed, "read it again")
	d.want(d.operator("approve", id, "--etag", page.Items[0].ETag, "--wait"), command.ExitOK, "completed")
	d.want(d.agent("inbox"), command.ExitFailed, "role agent")
}

// showsHiddenCharacters proposes and denies with characters that do not show.
func showsHiddenCharacters(d *fixture) {
	const hidden, shown = "a\u200bb\u202ec\U000e0041d\u3164e", `a\u{200B}b\u{202E}c\u{E0041}d\u{3164}e`
	id := d.propose(hidden)
	exact := decode[wire.Action](d.t, d.want(d.operator("get", "--json", id), command.ExitOK).out)
	if !strings.Contains(string(exact.Envelope.Args), hidden) {
		d.t.Errorf("with --json the arguments are %s", exact.Envelope.Args)
	}
	said := func(s result, code int) {
		d.t.Helper()
		d.want(s, code, shown)
		if strings.ContainsAny(s.out+s.err, "\u200b\u202e\U000e0041\u3164") {
			d.t.Errorf("hidden characters are shown as they are: %q", s.out+s.err)
		}
	}

	said(d.operator("inbox"), command.ExitOK)
	said(d.operator("get", id), command.ExitOK)
	said(d.operator("executions", "show", id), command.ExitOK)
	said(d.agent("actions", "run", "notes:notes.create", "title="+hidden, "body=x", "--dry-run"), command.ExitOK)
	d.want(d.operator("edit", id, "--set", "title=Plain"), command.ExitOK)
	said(d.operator("get", id), command.ExitOK)
	said(d.operator("deny", id, "--etag", decode[wire.Action](d.t, d.operator("get", "--json", id).out).Decision.ETag, "--note", hidden), command.ExitOK)
	said(d.operator("get", id), command.ExitAction)
}

// showsLookalikes proposes look-alike addresses behind a long headline, one with a
// character that does not show.
func showsLookalikes(d *fixture) {
	id := d.propose(strings.Repeat("long ", 30) + "a@аpple.com b@pay\u200bpal.com c@gооgle.com d@micrоsoft.com")
	marks := []string{"[! /title: a@аpple.com looks like apple.com", `[! /title: b@pay\u{200B}pal.com has invisible characters`, "[! /title: c@gооgle.com looks like google.com", "[! /title: d@micrоsoft.com looks like microsoft.com"}
	d.want(d.operator("inbox"), command.ExitOK, append(marks[:3:3], "[! 1 more]")...)
	d.want(d.operator("get", id), command.ExitOK, marks...)
	exact := decode[wire.Action](d.t, d.want(d.operator("get", "--json", id), command.ExitOK).out)
	if len(exact.Lookalikes) != len(marks) || exact.Lookalikes[0].Pointer != "/title" || exact.Lookalikes[3].Pointer != "/title" {
		d.t.Errorf("with --json the look-alikes are %+v", exact.Lookalikes)
	}
	if own := d.want(d.agent("get", id), command.ExitOK); strings.Contains(own.out, "[!") {
		d.t.Errorf("an agent reads look-alikes: %s", own.out)
	}
	d.want(d.operator("deny", id), command.ExitOK)
}

func editsArguments(d *fixture) {
	id := d.propose("Typpo")
	d.want(d.operator("edit", id, "--set", "title=Typo", "--note", "one p"), command.ExitOK, id, "A person must decide")
	d.want(d.operator("get", id), command.ExitOK, `"title":"Typo"`, "as proposed", "Typpo", "edited by demo operator", "etag")
	d.want(d.operator("inbox"), command.ExitOK, "edited by demo operator")
	d.want(d.operator("edit", id, "--set", `title={"a":1}`, "--args", `{"title":5,"body":"x"}`, "--json"), command.ExitUsage, "/args/title")
	d.want(d.operator("edit", id), command.ExitUsage, "--args or --set")
	d.want(d.operator("approve", id, "--wait"), command.ExitUsage, "was edited by", "--etag")
	etag := decode[wire.Action](d.t, d.want(d.operator("get", "--json", id), command.ExitOK).out).Decision.ETag
	d.want(d.operator("approve", id, "--etag", etag, "--wait"), command.ExitOK, "completed")
	d.want(d.operator("edit", id, "--set", "title=Late"), command.ExitFailed, "does not wait for a decision: it was approved by demo operator")
}

func approvesOtherArguments(d *fixture) {
	file := filepath.Join(d.dir, "note.json")
	if err := os.WriteFile(file, []byte(`{"title":"From a file","body":"y"}`), 0o600); err != nil {
		d.t.Fatal(err)
	}
	for _, flags := range [][]string{{"--args", "@" + file}, {"--args", `{"title":"In a flag","body":"z"}`, "--set", "title=In flags"}} {
		id := d.propose("Other")
		d.want(d.operator(append([]string{"approve", id, "--wait"}, flags...)...), command.ExitOK, "completed")
		a := decode[wire.Action](d.t, d.want(d.operator("get", id, "--json"), command.ExitOK).out)
		if a.Decision.Edited == nil || !strings.Contains(string(a.Decision.Edited.ProposedArgs), "Other") || strings.Contains(string(a.Envelope.Args), "Other") {
			d.t.Errorf("approved %s, proposed %+v", a.Envelope.Args, a.Decision.Edited)
		}
	}
}

func decidesManyAtOnce(d *fixture) {
	one, two, three := d.propose("One"), d.propose("Two"), d.propose("Three")
	d.want(d.operator("approve", one, two, "--note", "both"), command.ExitOK, one, two, "approved")
	d.want(d.operator("approve", one, three), command.ExitFailed, "refused", "does not wait for a decision: it was approved by demo operator", "approved")
	four, five := d.propose("Four"), d.propose("Five")
	s := d.want(d.operator("deny", four, five, "--json"), command.ExitOK, `"result":"denied"`)
	if lines := strings.Split(strings.TrimSpace(s.out), "\n"); len(lines) != 2 {
		d.t.Errorf("two denials are %d lines:\n%s", len(lines), s.out)
	}
}

func approvesForever(d *fixture) {
	id := d.propose("Again")
	d.want(d.operator("approve", id, "--always=1h", "--scope", "session", "--pin", "/title", "--wait"), command.ExitOK, "completed")
	d.want(d.agent("submit", "--tool", "notes:notes.create", "--args", `{"title":"Again","body":"b"}`, "--wait"), command.ExitOK, "completed")
	d.want(d.agent("submit", "--tool", "notes:notes.create", "--args", `{"title":"Other","body":"b"}`), command.ExitOK, "A person must decide")

	id = d.propose("Exactly")
	waits := d.propose("Exactly")
	d.want(d.operator("approve", id, "--always", "--preview"), command.ExitOK, "exactly {", "Exactly", "1 of ", "would have run", waits)
	d.want(d.operator("approve", id, "--always", "--loose", "/title", "--preview"), command.ExitOK, "any /title")
	d.want(d.operator("approve", id, "--always", "--loose", "/cc", "--preview"), command.ExitUsage, "/cc")
	d.want(d.operator("get", id), command.ExitOK, "pending")
}

func needsTwoPeople(d *fixture) {
	d.want(d.admin("review", "set", "notes:*", "--approvals", "2", "--wait", "1h", "--warn", "10m", "--escalate", "0s"), command.ExitOK, "notes:*")
	d.want(d.operator("review", "list"), command.ExitOK, "notes:*", "low", "1h", "10m", "never")
	d.want(d.admin("review", "set", "notes:*", "--wait", "2h", "--warn", ""), command.ExitOK, "notes:*")
	if list := d.operator("review", "list", "--json"); !strings.Contains(list.out, `"approvals":2,"wait":"2h","escalate":"0s"`) {
		d.t.Errorf("what no flag names is %s; it should be as it was, and the warning left to other rules", list.out)
	}
	id := d.propose("Dear")
	d.want(d.operator("approve", id), command.ExitOK, "1 of 2 people agree")
	d.want(d.operator("approve", id), command.ExitFailed, "somebody else")
	d.want(d.operator("get", id), command.ExitOK, "1 of 2 people agree")
	d.want(d.operator("inbox"), command.ExitOK, "1 of 2 approvals")
	d.want(d.admin("approve", id, "--wait"), command.ExitOK, "completed")
	d.want(d.operator("review", "delete", "notes:*"), command.ExitFailed, "role operator")
	d.want(d.admin("review", "delete", "notes:*"), command.ExitOK, "removed")
	d.want(d.admin("review", "delete", "notes:*"), command.ExitFailed, "no review")
}

func refusesDecisions(d *fixture) {
	const id = "019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b"
	for _, args := range [][]string{
		{"approve", id, id, "--set", "a=1"}, {"approve", id, "--pin", "/a"}, {"approve", id, "--loose", "/a"}, {"approve", id, "--preview"}, {"approve", id, id, "--always", "--preview"}, {"approve", id, "--always=soon"}, {"approve", id, "--always", "--scope", "world"},
		{"inbox", "x"}, {"inbox", "--limit", "0"}, {"inbox", "--kind", "mail"}, {"inbox", "--order", "size"}, {"edit"}, {"edit", id, id}, {"edit", "x", "--set", "a=1"},
		{"review", "set"}, {"review", "set", "*", "--risk", "danger"}, {"review", "set", "*", "--wait", "long"}, {"review", "delete"}, {"review", "delete", "*", "--risk", "x"},
	} {
		d.want(d.operator(args...), command.ExitUsage, "countersign: ", "--help")
	}
}
