package cascade

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/triage/documenttest"
)

var update = flag.Bool("update", false, "rewrite the tables of docs/reference/triage.md")

// tables returns the tables of the document for this package.
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
		documenttest.Table("| tier | rule | asked | because |", wanted),
		documenttest.Table("| tier | question | key | codes |", codes),
		documenttest.Table("| of an answer | value |", [][]string{
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
	documenttest.Has(t, *update, tables()...)
}
