package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/countersign-dev/countersign/bench/chaos/database"
	"github.com/countersign-dev/countersign/bench/machine"
	"github.com/countersign-dev/countersign/envelope"
)

// outcome is the result of a run.
type outcome struct {
	evidence
	totals     []total
	properties violations
	// exits counts the workers that ended by themselves, repeated the
	// repeated submissions.
	exits, repeated int
	// took is from the start to the end of the last action.
	took time.Duration
}

// broken returns the properties that do not hold.
func (o outcome) broken() []property {
	return slices.DeleteFunc(allProperties(), func(p property) bool { return len(o.properties[p]) == 0 })
}

// printProgress prints one line of progress.
func (t *faultRun) printProgress(at time.Time, now database.State, down bool) {
	note := ""
	if down {
		note = "  the database is away"
	}
	fmt.Fprintf(t.stdout, "%5.0fs  submitted %6d  sent %6d  unknown %4d  leased %4d  injections %3d%s\n",
		at.Sub(t.began).Seconds(), t.agent.Submitted.Load(), now.Ended[string(envelope.StatusSent)],
		now.Ended[string(envelope.StatusUnknown)], len(now.Leases), len(t.injections.list()), note)
}

// namedAtMost bounds the printed violations of a property.
const namedAtMost = 20

// print writes the result of one run.
func (o outcome) print(w io.Writer) {
	fmt.Fprintf(w, "\n%s: %d workers with %d calls each, lease %s, seed %d, %.1f s\n",
		o.fault.name, o.plan.workers, o.plan.concurrency, o.plan.lease, o.plan.seed, o.took.Seconds())
	line := func(label, format string, args ...any) {
		fmt.Fprintf(w, "  %-11s"+format+"\n", append([]any{label}, args...)...)
	}
	for _, t := range o.totals {
		line(string(t.Class), "%d sent, %d conflict, %d dead, %d unknown, %d not ended; effects %d, lost %d, doubled %d, of unknown %d",
			t.Sent-t.Conflict, t.Conflict, t.Failed, t.Unknown, t.Open, t.Effects, t.Lost, t.Doubled, t.EffectsOfUnknown)
	}
	line("calls", "%d arrived, %d turned away with 429", sum(o.server.Arrived), o.server.Rejected)
	line("signs", "%s", o.describeSigns())
	line("", "%d workers ended by themselves; %d submissions repeated", o.exits, o.repeated)
	line("recovery", "what was in work had ended %.1f s after an injection was over (worst of %d)", o.worst().Seconds(), len(o.injections))
	for _, p := range allProperties() {
		found := slices.Sorted(slices.Values(o.properties[p]))
		if len(found) == 0 {
			fmt.Fprintf(w, "  holds      %s\n", p)
			continue
		}
		fmt.Fprintf(w, "  BROKEN     %s: %d times\n", p, len(found))
		for _, what := range found[:min(namedAtMost, len(found))] {
			fmt.Fprintf(w, "               %s\n", what)
		}
		if more := len(found) - namedAtMost; more > 0 {
			fmt.Fprintf(w, "               and %d more\n", more)
		}
	}
}

// describeSigns returns the signs of the fault in words.
func (o outcome) describeSigns() string {
	signs := make([]string, len(o.fault.signs))
	for i, sign := range o.fault.signs {
		signs[i] = fmt.Sprintf("%d %s", o.signs[sign], sign)
	}
	return strings.Join(signs, "; ")
}

// report prints the results, and a line per fault and class as a table of
// Markdown.
func (s *suite) report() {
	w := s.stdout
	for _, o := range s.all {
		o.print(w)
	}
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	row := func(cells ...any) {
		for _, c := range cells {
			fmt.Fprintf(table, "| %v\t", c)
		}
		fmt.Fprintln(table, "|")
	}
	row("fault", "class", "actions", "effects", "sent", "unknown", "failed", "lost", "duplicated", "worst recovery", "took", "signs of the fault")
	row("---", "---", "---:", "---:", "---:", "---:", "---:", "---:", "---:", "---:", "---:", "---")
	for _, o := range s.all {
		for i, t := range o.totals {
			fault, recovery, took, signs := "", "", "", ""
			if i == 0 {
				fault, signs = o.fault.name, o.describeSigns()
				recovery, took = fmt.Sprintf("%.1f s", o.worst().Seconds()), fmt.Sprintf("%.0f s", o.took.Seconds())
			}
			if i == 0 && len(o.broken()) > 0 {
				fault += " BROKEN"
			}
			row(fault, t.Class, t.Envelopes, t.Effects, t.Sent, t.Unknown, t.Failed, t.Lost, t.Doubled, recovery, took, signs)
		}
	}
	_ = table.Flush() // a table that cannot be written has no reader
	for _, left := range s.skipped {
		fmt.Fprintf(w, "left out: %s: %s\n", left.fault, left.why)
	}
}

func sum(counts map[int]int) int {
	n := 0
	for _, c := range counts {
		n += c
	}
	return n
}

// record is a line of results/chaos.jsonl: the actions of one class under one
// fault.
type record struct {
	Fault string `json:"fault"`
	total
	Injections           int               `json:"injections"`
	Signs                map[string]int    `json:"signs"`
	WorstRecoverySeconds float64           `json:"worst_recovery_seconds"`
	Seconds              float64           `json:"seconds"`
	Broken               []property        `json:"broken,omitempty"`
	Workers              int               `json:"workers"`
	Concurrency          int               `json:"concurrency"`
	LeaseSeconds         float64           `json:"lease_seconds"`
	Seed                 uint64            `json:"seed"`
	Machine              string            `json:"machine"`
	Versions             map[string]string `json:"versions"`
	Time                 time.Time         `json:"time"`
}

// records returns the lines of one run.
func (o outcome) records(postgres string) []record {
	signs := make(map[string]int)
	for _, sign := range o.fault.signs {
		signs[sign] = o.signs[sign]
	}
	versions := machine.Versions("github.com/riverqueue/river", "github.com/modelcontextprotocol/go-sdk", "github.com/Shopify/toxiproxy/v2")
	versions["postgres"] = postgres
	all := make([]record, len(o.totals))
	for i, t := range o.totals {
		all[i] = record{
			Fault: o.fault.name, total: t,
			Injections: len(o.injections), Signs: signs, WorstRecoverySeconds: round(o.worst()), Seconds: round(o.took), Broken: o.broken(),
			Workers: o.plan.workers, Concurrency: o.plan.concurrency, LeaseSeconds: o.plan.lease.Seconds(),
			Seed: o.plan.seed, Machine: machine.Describe(), Versions: versions, Time: time.Now().UTC(),
		}
	}
	return all
}

// round returns seconds with two digits.
func round(d time.Duration) float64 { return math.Round(d.Seconds()*100) / 100 }
