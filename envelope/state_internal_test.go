package envelope

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStatesDrawing(t *testing.T) {
	t.Parallel()
	const path = "../docs/reference/states.md"
	want := drawing()

	if *Update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is not what the table says; run go test ./envelope -update (-want +got):\n%s", path, diff)
	}
}

func TestTransitionsAreUnambiguous(t *testing.T) {
	t.Parallel()

	for i, a := range transitions {
		if !a.from.Valid() || !a.to.Valid() {
			t.Errorf("transition %d goes from %q to %q, want valid statuses", i, a.from, a.to)
		}
		for _, b := range transitions[:i] {
			if a.from == b.from && a.event == b.event {
				t.Errorf("%q takes %q in two ways, want one", a.from, a.event)
			}
		}
	}
}

// drawing renders the tables of transitions, approvals and phases as a page.
func drawing() string {
	var page strings.Builder
	page.WriteString("# States of an action\n\n" +
		"Generated from the tables of `envelope` by `go test ./envelope -update`.\n\n" +
		"## Status\n\n```mermaid\nstateDiagram-v2\n    [*] --> pending\n")
	for _, t := range transitions {
		fmt.Fprintf(&page, "    %s --> %s : %s\n", t.from, t.to, t.event)
	}
	for _, s := range []Status{StatusSent, StatusConflict, StatusSkipped, StatusFailed} {
		fmt.Fprintf(&page, "    %s --> [*]\n", s)
	}
	page.WriteString("```\n\n| from | event | to | when |\n| --- | --- | --- | --- |\n")
	for _, t := range transitions {
		fmt.Fprintf(&page, "| %s | `%s` | %s | %s |\n", t.from, t.event, t.to, t.when)
	}

	page.WriteString("\nThe table binds. Go sets a status by `envelope.Next` or by the settlements of `internal/action/outbox`, which ask it.\n" +
		"Statements set one without asking; `moves_test.go` there lists each of them with its moves and fails if a statement that\n" +
		"writes a status is not listed, if one makes a move that is not in this table, or if nothing makes a move that is. Under\n" +
		"concurrency the row lock and the lease's fence decide which of two moves is made.\n")

	approvals := []Approval{ApprovalAuto, ApprovalRequired, ApprovalGranted, ApprovalDenied, ApprovalExpired}
	page.WriteString("\n## Approval\n\n```mermaid\nstateDiagram-v2\n    [*] --> auto\n    [*] --> required\n    [*] --> denied : by policy\n")
	for _, from := range approvals {
		for _, d := range []Decision{DecisionGrant, DecisionDeny, DecisionExpire} {
			if to, err := NextApproval(from, d); err == nil {
				fmt.Fprintf(&page, "    %s --> %s : %s\n", from, to, d)
			}
		}
	}
	page.WriteString("```\n\n## Phase\n\nThe state of an action in one word, by status and approval. A skipped action whose code is `undone` is `undone`, whatever its approval.\n\n| |")
	for _, a := range approvals {
		fmt.Fprintf(&page, " %s |", a)
	}
	page.WriteString("\n| --- |" + strings.Repeat(" --- |", len(approvals)) + "\n")
	for _, s := range []Status{StatusPending, StatusSending, StatusSent, StatusConflict, StatusFailed, StatusSkipped, StatusUnknown} {
		fmt.Fprintf(&page, "| %s |", s)
		for _, a := range approvals {
			fmt.Fprintf(&page, " %s |", PhaseOf(a, s, ""))
		}
		page.WriteString("\n")
	}
	page.WriteString("\n## Other words for the same state\n\n" +
		"The envelope's `result.status` and the status in the execution log, by phase.\n\n" +
		"| phase | `result.status` | execution log |\n| --- | --- | --- |\n" +
		"| pending | pending | pending |\n| approved | pending | pending |\n| executing | sending | executing |\n" +
		"| completed | sent, conflict | success |\n| denied | skipped | denied |\n| failed | failed | error |\n" +
		"| expired | skipped | expired |\n| skipped | skipped | skipped |\n" +
		"| undone | skipped | skipped; denied if it waited for a person |\n| unknown | unknown | unknown |\n")
	return page.String()
}
