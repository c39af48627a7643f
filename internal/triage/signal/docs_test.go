package signal_test

import (
	"flag"
	"strconv"
	"testing"

	"github.com/countersign-dev/countersign/internal/triage/documenttest"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

var update = flag.Bool("update", false, "rewrite the table of symbols in docs/reference/triage.md")

// table returns the table of symbols in the format of docs/reference/triage.md.
func table() string {
	var rows [][]string
	for _, r := range signal.Rules() {
		weight, identity := "", ""
		if r.Axis != signal.Kind {
			weight = strconv.FormatFloat(r.Weight, 'f', -1, 64)
		}
		if r.Identity {
			identity = "yes"
		}
		rows = append(rows, []string{"`" + string(r.Name) + "`", string(r.Axis), weight, identity, r.Meaning})
	}
	return documenttest.Table("| symbol | axis | weight | identity | holds if |", rows)
}

// TestDocumentHasTheSymbols compares the table of docs/reference/triage.md with the code.
func TestDocumentHasTheSymbols(t *testing.T) {
	t.Parallel()
	documenttest.Has(t, *update, table())
}
