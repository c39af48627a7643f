package policy

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestDocumentMatchesTheLayers compares the table of docs/policy.md with the
// layers, row by row.
func TestDocumentMatchesTheLayers(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}

	var want strings.Builder
	want.WriteString("| layer | looks at | set by | counts |\n| --- | --- | --- | --- |\n")
	for _, l := range layers {
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s |\n", l.name, l.looksAt, l.setBy, l.kind)
	}

	if !strings.Contains(string(page), "\n\n"+want.String()+"\n") {
		t.Errorf("docs/policy.md does not have this table:\n%s", want.String())
	}
}

// TestLayersAreInOrder checks that the base layers come first and the loosening
// one last, and that the last base layer always answers.
func TestLayersAreInOrder(t *testing.T) {
	t.Parallel()
	var kinds []string
	for _, l := range layers {
		if len(kinds) == 0 || kinds[len(kinds)-1] != string(l.kind) {
			kinds = append(kinds, string(l.kind))
		}
	}

	if got := strings.Join(kinds, " "); got != "base narrows loosens" {
		t.Errorf("the layers count as %s", got)
	}
	for _, risk := range []ToolRisk{RiskRead, RiskWrite, RiskDanger, "", "odd"} {
		if answers := inferred(nil, &Input{Risk: risk}); len(answers) != 1 || answers[0].Said == "" {
			t.Errorf("the last base layer answers %v at the risk %q", answers, risk)
		}
	}
}
