package audit_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite docs/reference/events.md")

// TestEventsAreDocumented compares docs/reference/events.md with the kinds of event
// and their comments.
func TestEventsAreDocumented(t *testing.T) {
	t.Parallel()
	const page = "../../docs/reference/events.md"
	source, err := os.ReadFile("event.go")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	want.WriteString("# Kinds of event\n\nGenerated from `internal/audit` by `go test ./internal/audit -update`. Streams and subscriptions filter by them\n" +
		"([events](../events.md)); Subject and Code are fields of an event.\n\n| kind | meaning |\n| --- | --- |\n")
	kinds := regexp.MustCompile(`((?:\t// .*\n)+)\t\w+ +Kind = "([a-z_]+)"`).FindAllStringSubmatch(string(source), -1)
	for _, m := range kinds {
		_, meaning, ok := strings.Cut(strings.Join(strings.Fields(strings.ReplaceAll(m[1], "//", "")), " "), " means that ")
		if !ok {
			t.Errorf("the comment of %s is not of the form \"Name means that …\"", m[2])
		}
		fmt.Fprintf(&want, "| `%s` | %s |\n", m[2], strings.TrimSuffix(meaning, "."))
	}
	if all := strings.Count(string(source), ` Kind = "`); len(kinds) != all {
		t.Errorf("%d of %d kinds have a comment", len(kinds), all)
	}

	if *update {
		if err := os.WriteFile(page, []byte(want.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.String(), string(got)); diff != "" {
		t.Errorf("%s differs from the comments; go test -update rewrites it (-want +got):\n%s", page, diff)
	}
}
