package cascade

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the tables of docs/triage.md")

const document = "../../../docs/triage.md"

// table returns a table in Markdown.
func table(head string, rows [][]string) string {
	var b strings.Builder
	b.WriteString(head + "\n|" + strings.Repeat(" --- |", strings.Count(head, "|")-1) + "\n")
	for _, row := range rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
	}
	return b.String()
}

// tables returns the tables of the document that are of this package.
func tables() []string {
	var wanted, codes [][]string
	add := func(tier string, rows []wantedRow) {
		for _, row := range rows {
			wanted = append(wanted, []string{tier, "`" + row.rule + "`", map[bool]string{true: "yes", false: "no"}[row.ask], row.because})
		}
	}
	add("all", never())
	for _, tier := range Tiers() {
		add(string(tier), wantedRows(tier)[len(never()):])
		for _, q := range specOf(tier).questions {
			var list []string
			for _, c := range q.codes {
				list = append(list, "`"+c.code+"` "+c.value)
			}
			codes = append(codes, []string{string(tier), q.name, "`" + q.key + "`", strings.Join(list, ", ")})
		}
	}
	return []string{
		table("| tier | rule | asked | because |", wanted),
		table("| tier | question | key | codes |", codes),
		table("| of an answer | value |", [][]string{
			{"confidence without a calibration, at most", fmt.Sprint(Cap)},
			{"confidence without log-probabilities, or where the codes have too little of the probability", fmt.Sprint(Fixed)},
			{"weight without a calibration", fmt.Sprint(halfWeight)},
			{"share of the probability that the codes need to have", fmt.Sprint(minMass)},
			{"confidence from which a calibrated answer alone may put a message out of sight", fmt.Sprint(awayFrom)},
			{"need for attention that T2b is asked about", fmt.Sprintf("%v to %v", nearFrom, nearTo)},
		}),
	}
}

func TestDocumentHasTheTables(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)

	for _, want := range tables() {
		head, _, _ := strings.Cut(want, "\n")
		at := strings.Index(text, head+"\n")
		if at < 0 {
			t.Errorf("docs/triage.md has no table %q", head)
			continue
		}
		length := strings.Index(text[at:]+"\n\n", "\n\n") + 1
		got := text[at:min(at+length, len(text))]
		if *update {
			text = text[:at] + want + text[at+len(got):]
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("docs/triage.md differs from the code; go test -update rewrites it (-want +got):\n%s", diff)
		}
	}
	if *update {
		if err := os.WriteFile(document, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
