package policy

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite docs/reference/layers.md")

// TestLayersAreDocumented compares docs/reference/layers.md with the layers.
func TestLayersAreDocumented(t *testing.T) {
	t.Parallel()
	const path = "../../../docs/reference/layers.md"
	var want strings.Builder
	want.WriteString("# Layers of policy\n\nGenerated from `internal/tenant/policy` by `go test ./internal/tenant/policy -update`, in the order in which they are\n" +
		"asked. [Policy](../policy.md#layers) has how they decide together.\n\n| layer | looks at | set by | counts |\n| --- | --- | --- | --- |\n")
	for _, l := range layers {
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s |\n", l.name, l.looksAt, l.setBy, l.kind)
	}

	if *update {
		if err := os.WriteFile(path, []byte(want.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != want.String() {
		t.Errorf("%s is out of date; go test -update rewrites it. want:\n%s", path, want.String())
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
