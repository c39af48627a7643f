package dav_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/source/dav"
	"github.com/countersign-dev/countersign/internal/source/rest"
)

var update = flag.Bool("update", false, "rewrite the table of docs/reference/dav-tools.md")

// TestToolsAreDocumented compares the table of docs/reference/dav-tools.md with the
// definitions of the tools.
func TestToolsAreDocumented(t *testing.T) {
	t.Parallel()
	const page = "../../../docs/reference/dav-tools.md"
	const head = "| tool | class | does | reverted by |\n| --- | --- | --- | --- |\n"
	tools, err := open(t, dav.Config{
		Calendars: map[string]string{"a": "https://dav.example/"}, AddressBooks: map[string]string{"b": "https://dav.example/"}, Token: rest.NewSecret("hush"),
	}).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	for _, tool := range tools {
		reversal := ""
		if tool.Reversal != nil {
			reversal = "`" + tool.Reversal.Tool + "`"
		}
		fmt.Fprintf(&table, "| `%s` | `%s` | %s | %s |\n", tool.Name, tool.Effect, tool.Description, reversal)
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, after, found := strings.Cut(string(got), head)
	_, after, ended := strings.Cut(after, "\n\n")
	if !found || !ended {
		t.Fatalf("%s has no table of tools", page)
	}
	want := before + head + table.String() + "\n" + after

	if *update {
		if err := os.WriteFile(page, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s differs from the definitions; go test -update rewrites it (-want +got):\n%s", page, diff)
	}
}
