package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/countersign-dev/countersign/envelope"
)

// outcome is the result of a run.
type outcome struct {
	evidence
	totals     []total
	properties []property
	// exits counts the workers that ended by themselves, repeated the
	// submissions that had to be made again.
	exits, repeated int
	// took is from the start to the end of the last envelope, worst the
	// longest recovery from an injection.
	took, worst time.Duration
}

// broken reports whether a property does not hold.
func (o outcome) broken() bool {
	return slices.ContainsFunc(o.properties, func(p property) bool { return len(p.broken) > 0 })
}

// printProgress prints one line of progress.
func (t *faultRun) printProgress(at time.Time, now state, away bool) {
	note := ""
	if away {
		note = "  the database is away"
	}
	fmt.Fprintf(t.stdout, "%5.0fs  submitted %6d  sent %6d  unknown %4d  leased %4d  injections %3d%s\n",
		at.Sub(t.began).Seconds(), t.agent.submitted.Load(), now.ended[string(envelope.StatusSent)],
		now.ended[string(envelope.StatusUnknown)], len(now.held), len(t.injections.list()), note)
}

// namedAtMost is how many of those that break a property are named.
const namedAtMost = 20

// print writes what one run came to.
func (o outcome) print(w io.Writer) {
	fmt.Fprintf(w, "\n%s: %d workers with %d calls each, lease %s, seed %d, %.1f s\n",
		o.fault.name, o.plan.workers, o.plan.concurrency, o.plan.lease, o.plan.seed, o.took.Seconds())
	line := func(label, format string, args ...any) {
		fmt.Fprintf(w, "  %-11s"+format+"\n", append([]any{label}, args...)...)
	}
	for _, t := range o.totals {
		line(string(t.class), "%d sent, %d conflict, %d dead, %d unknown, %d not ended; effects %d, lost %d, doubled %d, of unknown %d",
			t.sent, t.conflict, t.dead, t.unknown, t.open, t.effects, t.lost, t.doubled, t.effectsOfUnknowns)
	}
	line("calls", "%d arrived, %d turned away with 429", sum(o.server.Arrived), o.server.TurnedAway)
	line("signs", "%s", o.describeSigns())
	line("", "%d workers ended by themselves; %d submissions repeated", o.exits, o.repeated)
	line("recovery", "what was in work had ended %.1f s after an injection was over (worst of %d)", o.worst.Seconds(), len(o.injections))
	for _, p := range o.properties {
		if len(p.broken) == 0 {
			fmt.Fprintf(w, "  holds      %s\n", p.text)
			continue
		}
		fmt.Fprintf(w, "  BROKEN     %s: %d times\n", p.text, len(p.broken))
		for _, what := range p.broken[:min(namedAtMost, len(p.broken))] {
			fmt.Fprintf(w, "               %s\n", what)
		}
		if more := len(p.broken) - namedAtMost; more > 0 {
			fmt.Fprintf(w, "               and %d more\n", more)
		}
	}
}

// describeSigns returns the signs of the fault in words.
func (o outcome) describeSigns() string {
	signs := make([]string, len(o.fault.wantSigns))
	for i, sign := range o.fault.wantSigns {
		signs[i] = fmt.Sprintf("%d %s", o.signs[sign], sign)
	}
	return strings.Join(signs, "; ")
}

// printTable writes a line per fault and class, as a table of Markdown.
func printTable(w io.Writer, all []outcome, skipped []omission) {
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
	for _, o := range all {
		for i, t := range o.totals {
			fault, recovery, took, felt := "", "", "", ""
			if i == 0 {
				fault, felt = o.fault.name, o.describeSigns()
				recovery, took = fmt.Sprintf("%.1f s", o.worst.Seconds()), fmt.Sprintf("%.0f s", o.took.Seconds())
			}
			if i == 0 && o.broken() {
				fault += " BROKEN"
			}
			row(fault, t.class, t.envelopes, t.effects, t.sent+t.conflict, t.unknown, t.dead, t.lost, t.doubled, recovery, took, felt)
		}
	}
	_ = table.Flush() // a table that cannot be written has no reader
	for _, s := range skipped {
		fmt.Fprintf(w, "left out: %s: %s\n", s.fault, s.why)
	}
}

func sum(counts map[int]int) int {
	n := 0
	for _, c := range counts {
		n += c
	}
	return n
}

// record is a line of bench/chaos.jsonl: what became of the envelopes of one
// class under one fault.
type record struct {
	Fault                string            `json:"fault"`
	Class                envelope.Effect   `json:"class"`
	Envelopes            int               `json:"envelopes"`
	Effects              int               `json:"effects"`
	Sent                 int               `json:"sent"`
	Unknown              int               `json:"unknown"`
	EffectsOfUnknown     int               `json:"effects_of_unknown"`
	Failed               int               `json:"failed"`
	Lost                 int               `json:"lost"`
	Doubled              int               `json:"doubled"`
	Injections           int               `json:"injections"`
	Felt                 map[string]int    `json:"signs"`
	WorstRecoverySeconds float64           `json:"worst_recovery_seconds"`
	Seconds              float64           `json:"seconds"`
	Broken               []string          `json:"broken,omitempty"`
	Workers              int               `json:"workers"`
	Concurrency          int               `json:"concurrency"`
	LeaseSeconds         float64           `json:"lease_seconds"`
	Seed                 uint64            `json:"seed"`
	Machine              string            `json:"machine"`
	Versions             map[string]string `json:"versions"`
	Time                 time.Time         `json:"time"`
}

// records returns the lines of one run.
func (o outcome) records(versions map[string]string) []record {
	felt := make(map[string]int)
	for _, sign := range o.fault.wantSigns {
		felt[sign] = o.signs[sign]
	}
	var broken []string
	for _, p := range o.properties {
		if len(p.broken) > 0 {
			broken = append(broken, p.text)
		}
	}
	all := make([]record, len(o.totals))
	for i, t := range o.totals {
		all[i] = record{
			Fault: o.fault.name, Class: t.class, Envelopes: t.envelopes, Effects: t.effects, Sent: t.sent + t.conflict,
			Unknown: t.unknown, EffectsOfUnknown: t.effectsOfUnknowns, Failed: t.dead, Lost: t.lost, Doubled: t.doubled,
			Injections: len(o.injections), Felt: felt, WorstRecoverySeconds: round(o.worst), Seconds: round(o.took), Broken: broken,
			Workers: o.plan.workers, Concurrency: o.plan.concurrency, LeaseSeconds: o.plan.lease.Seconds(),
			Seed: o.plan.seed, Machine: machine(), Versions: versions, Time: time.Now().UTC(),
		}
	}
	return all
}

// round returns seconds with two digits.
func round(d time.Duration) float64 { return math.Round(d.Seconds()*100) / 100 }

// appendRecords adds lines to a file, which is made if it is missing.
func appendRecords(path string, all []record) error {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	for _, r := range all {
		if err := enc.Encode(r); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteString(b.String())
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	return err
}
