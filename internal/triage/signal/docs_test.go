package signal_test

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/triage/signal"
)

var update = flag.Bool("update", false, "rewrite the table of symbols in docs/triage.md")

const document = "../../../docs/triage.md"

// table writes the symbols as docs/triage.md has them.
func table() string {
	var b strings.Builder
	b.WriteString("| symbol | axis | weight | identity | holds if |\n| --- | --- | --- | --- | --- |\n")
	for _, r := range signal.Rules() {
		weight, identity := "", ""
		if r.Axis != signal.Kind {
			weight = strconv.FormatFloat(r.Weight, 'f', -1, 64)
		}
		if r.Identity {
			identity = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", r.Name, r.Axis, weight, identity, r.Meaning)
	}
	return b.String()
}

// TestDocumentHasTheSymbols compares the table of docs/triage.md with the code.
func TestDocumentHasTheSymbols(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(raw), "| symbol | axis |")
	if !ok {
		t.Fatal("docs/triage.md has no table of symbols")
	}
	got, after, ok := strings.Cut("| symbol | axis |"+rest, "\n\n")
	if !ok {
		t.Fatal("the table of symbols does not end")
	}
	got += "\n"
	if diff := cmp.Diff(table(), got); diff != "" && !*update {
		t.Errorf("docs/triage.md differs from the code; go test -update rewrites it (-want +got):\n%s", diff)
	}
	if *update {
		if err := os.WriteFile(document, []byte(before+table()+"\n"+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
