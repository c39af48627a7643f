package decide

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/documenttest"
)

var update = flag.Bool("update", false, "rewrite the tables of docs/reference/triage.md")

// levelRow is a row of the table of levels.
type levelRow struct {
	level                           Level
	name, reading, writing, sending string
}

func levels() []levelRow {
	return []levelRow{
		{L0, "manual", "the agent is silent", "–", "–"},
		{L1, "query only", "answers when asked", "–", "–"},
		{L2, "suggest per message", "label, archive and draft are proposed", "each is approved by its owner", "–"},
		{L3, "batch suggest", "as L2, reviewed sorted", "approved in batches", "–"},
		{L4, "act with undo", "as L3", "label, flag, snooze, draft, and archive of low priority, each with an undo", "–"},
		{L5, "autonomous", "scheduled runs", "as L4, and trash with an undo", "–"},
		{L6, "delegated", "defined, not offered", "", ""},
	}
}

// tables returns the tables of the document in order.
func tables() []string {
	var levelRows, actionRows, cohortRows, actTable, loweringRows, vetoRows [][]string
	for _, row := range levels() {
		levelRows = append(levelRows, []string{row.level.String(), row.name, row.reading, row.writing, row.sending})
	}
	for _, row := range actions() {
		alone := "never"
		if row.alone != never {
			alone = row.alone.String()
		}
		moves := ""
		if row.moves {
			moves = "yes"
		}
		actionRows = append(actionRows, []string{"`" + string(row.action) + "`", "`" + row.tool + "`", row.propose.String(), alone, moves})
	}
	for i, row := range cohorts() {
		cohortRows = append(cohortRows, []string{fmt.Sprint(i + 1), "`" + string(row.cohort) + "`", row.match, row.level.String()})
	}
	groups := []group{groupBulk, groupTransactional, groupNear, groupFar}
	head := "| act |"
	for _, g := range groups {
		head += " " + string(g) + " |"
	}
	for _, act := range acts() {
		cells := []string{"`" + string(act) + "`"}
		for _, g := range groups {
			cells = append(cells, actRows()[act][g].words())
		}
		actTable = append(actTable, cells)
	}
	for _, row := range lowerings() {
		loweringRows = append(loweringRows, []string{"`" + row.name + "`", row.because})
	}
	for _, row := range vetoes() {
		vetoRows = append(vetoRows, []string{"`" + row.name + "`", row.because})
	}
	return []string{
		documenttest.Table("| level | name | reading | writing | sending |", levelRows),
		documenttest.Table("| action | tool | proposed from | left to policy from | moves the message |", actionRows),
		documenttest.Table("| order | cohort | matches if | level |", cohortRows),
		documenttest.Table(head, actTable),
		documenttest.Table("| lowers | because |", loweringRows),
		documenttest.Table("| veto | because |", vetoRows),
	}
}

func (r actRow) words() string {
	words := []string{string(r.bucket)}
	if r.deadline {
		words = append(words, "actionable if it names a deadline")
	}
	if r.amended {
		words = append(words, "actionable if it changes what waits for its owner")
	}
	if r.raised {
		words = append(words, "or what is informational")
	}
	if r.draft {
		words = append(words, "draft")
	}
	if r.confirm {
		words = append(words, "nothing automatic")
	}
	if r.hint != "" {
		words = append(words, "hint `"+string(r.hint)+"`")
	}
	return strings.Join(words, ", ")
}

// acts are all acts, in the order of the document.
func acts() []classify.Act {
	return []classify.Act{
		classify.Request, classify.Deliver, classify.FYI, classify.Propose, classify.Meet, classify.Commit, classify.Amend,
	}
}

func TestDocumentHasTheTables(t *testing.T) {
	t.Parallel()
	documenttest.Has(t, *update, tables()...)
}

func TestTablesAreComplete(t *testing.T) {
	t.Parallel()

	for _, act := range acts() {
		for _, row := range cohorts() {
			if actRows()[act][groupOf(row.cohort)].bucket == "" {
				t.Errorf("%s in %s has no bucket", act, row.cohort)
			}
		}
	}
	for level := L0; level <= L6; level++ {
		if levels()[level].level != level {
			t.Errorf("row %d of the levels is %v", level, levels()[level].level)
		}
	}
	confirmed := []Action{Send, Unsubscribe, RSVP, Quarantine}
	for _, row := range actions() {
		if got, want := AlwaysConfirmed(row.action), slices.Contains(confirmed, row.action); got != want {
			t.Errorf("AlwaysConfirmed(%s) = %v, want %v", row.action, got, want)
		}
	}
	if !AlwaysConfirmed("no such action") {
		t.Errorf("an action that is in no table happens without a person")
	}
	if len(acts()) != 7 || !slices.Contains(acts(), classify.Commit) {
		t.Errorf("acts are %v", acts())
	}
}

func TestLevelText(t *testing.T) {
	t.Parallel()

	for level := L0; level <= L6; level++ {
		text, err := level.MarshalText()
		var got Level
		if err != nil || got.UnmarshalText(text) != nil || got != level {
			t.Errorf("%v becomes %q and %v, %v", int(level), text, got, err)
		}
	}
	for _, text := range []string{"", "L", "L7", "5", "L-1", "L55", "x5"} {
		var got Level
		if got.UnmarshalText([]byte(text)) == nil {
			t.Errorf("UnmarshalText(%q) = %v, want an error", text, got)
		}
	}
}
