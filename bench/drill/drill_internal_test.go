package main

import (
	"os"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/bench/chaos/counting"
	"github.com/countersign-dev/countersign/bench/chaos/database"
)

// TestRunbook reads the runbook, all of whose commands are executed: there is no other code
// in its sections.
func TestRunbook(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)

	blocks, err := parseRunbook(page)

	if err != nil {
		t.Fatal(err)
	}
	_, runbook, _ := strings.Cut(page, "\n### Restore or move a database\n")
	runbook, _, ok := strings.Cut(runbook, "\n### Prepare\n")
	if n := strings.Count(runbook, "\n```") / 2; !ok || n != len(blocks) {
		t.Errorf("the runbook has %d blocks of code, and %d are executed", n, len(blocks))
	}
	for name, change := range map[string][2]string{
		"a kind without its block":      {"# drill: snapshot", "# a snapshot"},
		"a block that is not drilled":   {"# drill: snapshot", "# drill: snapshots"},
		"a block twice":                 {"# drill: snapshot", "# drill: base backup"},
		"a restore without a paragraph": {"\n\nmkdir -m 700", "\nmkdir -m 700"},
	} {
		changed := strings.Replace(page, change[0], change[1], 1)
		if _, err := parseRunbook(changed); changed == page || err == nil {
			t.Errorf("%s: it is accepted", name)
		}
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	lost, moved := kind{}, kind{planned: true}
	statuses := func(all ...string) (actions []database.Action) {
		for i, status := range all {
			if status != "" {
				actions = append(actions, database.Action{ExternalID: []string{"n-7", "n-8"}[i], Status: status})
			}
		}
		return actions
	}
	for name, test := range map[string]struct {
		kind    kind
		actions []database.Action
		effects map[int]int
		before  int
		want    string // part of the only violation; empty for none
	}{
		"one sent, one unknown that had been sent": {lost, statuses("sent", "unknown"), map[int]int{7: 1, 8: 1}, 0, ""},
		"one sent, one to approve":                 {lost, statuses("sent", "pending"), map[int]int{7: 1, 8: 1}, 0, ""},
		"a move":                                   {moved, statuses("sent", "sent"), map[int]int{7: 1, 8: 1}, 1, ""},
		"an effect that happened twice":            {moved, statuses("sent", "sent"), map[int]int{7: 1, 8: 2}, 1, "n-8 took effect 2 times"},
		"an unknown one that happened twice":       {lost, statuses("sent", "unknown"), map[int]int{7: 1, 8: 2}, 0, "n-8 took effect 2 times"},
		"a lost action":                            {moved, statuses("sent", ""), map[int]int{7: 1}, 0, "n-8 is lost"},
		"an action that is sent without effect":    {moved, statuses("sent", "sent"), map[int]int{7: 1}, 1, "n-8 is sent and took no effect"},
		"an action that failed":                    {moved, statuses("sent", "failed"), map[int]int{7: 1}, 0, "n-8 is failed"},
		"a move that needs a person":               {moved, statuses("sent", "unknown"), map[int]int{7: 1}, 0, "1 actions need a person after a move"},
		"nothing that was lost had been sent":      {lost, statuses("sent", "unknown"), map[int]int{7: 1}, 0, "proves nothing"},
		"nothing that went on":                     {lost, statuses("sent", "unknown"), map[int]int{7: 1, 8: 1}, 1, "no action went on"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			v := judge(test.kind, 7, 2, test.actions, &counting.Counts{Effects: test.effects, Arrived: test.effects}, test.before)

			if (test.want == "") != (len(v.broken) == 0) || test.want != "" && (len(v.broken) != 1 || !strings.Contains(v.broken[0], test.want)) {
				t.Errorf("violations: %q, want %q", v.broken, test.want)
			}
		})
	}
}
