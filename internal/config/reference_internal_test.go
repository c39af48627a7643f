package config

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite docs/reference/settings.md")

// TestSettingsAreDocumented compares docs/reference/settings.md with the
// variables of every process.
func TestSettingsAreDocumented(t *testing.T) {
	t.Parallel()
	const path = "../../docs/reference/settings.md"
	var page strings.Builder
	page.WriteString("# Environment variables\n\nGenerated from `internal/config` by `go test ./internal/config -update`. " +
		"The `--help` of each process has the same\nlist. The command line takes `COUNTERSIGN_URL`, `COUNTERSIGN_TOKEN` and, for commands on the database, `DATABASE_URL`.\n")
	for _, c := range []Command{&API{}, &Worker{}, &Triage{}} {
		fmt.Fprintf(&page, "\n## %s\n\n| variable | default | meaning |\n| --- | --- | --- |\n", c.name())
		for _, v := range c.variables() {
			standard := cmp.Or(v.standard, "none")
			if v.required {
				standard = "required"
			}
			fmt.Fprintf(&page, "| `%s` | %s | %s |\n", v.name, standard, v.about)
		}
	}

	if *update {
		if err := os.WriteFile(path, []byte(page.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := diff.Diff(page.String(), string(got)); d != "" {
		t.Errorf("%s differs from the variables; go test -update rewrites it (-want +got):\n%s", path, d)
	}
}
