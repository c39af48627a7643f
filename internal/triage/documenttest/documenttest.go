// Package documenttest compares docs/reference/triage.md with the tables in the
// code of triage.
package documenttest

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// document is the path of the page from a package of triage.
const document = "../../../docs/reference/triage.md"

// Table returns a Markdown table with a header line.
func Table(head string, rows [][]string) string {
	var b strings.Builder
	b.WriteString(head + "\n|" + strings.Repeat(" --- |", strings.Count(head, "|")-1) + "\n")
	for _, row := range rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
	}
	return b.String()
}

// Has fails a test of a package of triage unless the document contains the
// tables; with update it writes them there. Their header lines must be present.
func Has(t *testing.T, update bool, tables ...string) {
	t.Helper()
	raw, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for _, want := range tables {
		head, _, _ := strings.Cut(want, "\n")
		at := strings.Index(text, head+"\n")
		if at < 0 {
			t.Errorf("docs/reference/triage.md has no table %q", head)
			continue
		}
		length := strings.Index(text[at:]+"\n\n", "\n\n") + 1
		got := text[at:min(at+length, len(text))]
		if update {
			text = text[:at] + want + text[at+len(got):]
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("docs/reference/triage.md differs from the code; go test -update rewrites it (-want +got):\n%s", diff)
		}
	}
	if update {
		if err := os.WriteFile(document, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
