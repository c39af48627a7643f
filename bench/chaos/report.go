package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
)

// tell prints one line of progress.
func (t *trial) tell(at time.Time, now standing, away bool) {
	note := ""
	if away {
		note = "  the database is away"
	}
	fmt.Fprintf(t.stdout, "%5.0fs  submitted %6d  sent %6d  unknown %4d  leased %4d  kills %3d%s\n",
		at.Sub(t.began).Seconds(), t.agent.submitted.Load(), now.ended[string(envelope.StatusSent)],
		now.ended[string(envelope.StatusUnknown)], len(now.held), t.faults.count(blowKill), note)
}

// namedAtMost is how many of those that break a property are named.
const namedAtMost = 20

// print writes the table of one trial.
func (o outcome) print(w io.Writer) {
	kills, orphans := 0, 0
	var afterKill, afterRestart, away []time.Duration
	for _, f := range o.faults {
		if f.kind == blowRestart {
			afterRestart, away = append(afterRestart, f.recovery()), append(away, f.took)
			continue
		}
		kills++
		orphans += len(f.orphans)
		if len(f.orphans) > 0 {
			afterKill = append(afterKill, f.recovery())
		}
	}
	fmt.Fprintf(w, "\nclass %s: %d envelopes, %d workers with %d calls each, lease %s, seed %d, %.1f s\n",
		o.plan.class, o.plan.n, o.plan.workers, o.plan.concurrency, o.plan.lease, o.plan.seed, o.took.Seconds())
	line := func(label, format string, args ...any) {
		fmt.Fprintf(w, "  %-11s"+format+"\n", append([]any{label}, args...)...)
	}
	line("envelopes", "%d sent, %d conflict, %d dead, %d unknown, %d not ended", o.sent, o.conflict, o.dead, o.unknown, o.open)
	line("effects", "%d, lost %d, doubled %d, of unknown %d", o.effects, o.lost, o.doubled, o.effectsOfUnknown())
	line("calls", "%d arrived, %d turned away with 429", sum(o.world.Arrived), o.world.TurnedAway)
	line("faults", "%d workers killed, %d envelopes left behind by them; %d workers ended by themselves; %d submissions repeated", kills, orphans, o.exits, o.repeated)
	if len(away) > 0 {
		line("database", "%d restarts, away for %.1f s at most; what was in flight was settled or looked at after %.1f s at most",
			len(away), slices.Max(away).Seconds(), slices.Max(afterRestart).Seconds())
	}
	if len(afterKill) > 0 {
		slices.Sort(afterKill)
		line("recovery", "what a killed worker held was looked at after %.1f s (median), %.1f s (worst)",
			afterKill[len(afterKill)/2].Seconds(), slices.Max(afterKill).Seconds())
	}
	line("", "all had ended %.1f s after the last fault", o.recovered.Seconds())
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

func (o outcome) effectsOfUnknown() int {
	n := 0
	for number, f := range (evidence{plan: o.plan, envelopes: o.envelopes}).byNumber(&properties{}) {
		if f.Status == string(envelope.StatusUnknown) {
			n += o.world.Effects[number]
		}
	}
	return n
}

func sum(counts map[int]int) int {
	n := 0
	for _, c := range counts {
		n += c
	}
	return n
}

// record is a line of bench/chaos.jsonl: one fault and what became of the
// envelopes it hit, or (fault "all") the whole trial.
type record struct {
	Fault            string            `json:"fault"`
	Class            envelope.Effect   `json:"class"`
	Envelopes        int               `json:"envelopes"`
	Effects          int               `json:"effects"`
	Lost             int               `json:"lost"`
	Doubled          int               `json:"doubled"`
	Unknown          int               `json:"unknown"`
	SecondsToRecover float64           `json:"seconds_to_recover"`
	Kills            int               `json:"kills,omitzero"`
	Broken           []string          `json:"broken,omitempty"`
	Workers          int               `json:"workers"`
	Concurrency      int               `json:"concurrency"`
	LeaseSeconds     float64           `json:"lease_seconds"`
	Seed             uint64            `json:"seed"`
	Machine          string            `json:"machine"`
	Versions         map[string]string `json:"versions"`
	Time             time.Time         `json:"time"`
}

// records returns the lines of one trial.
func (o outcome) records(versions map[string]string) []record {
	base := record{
		Class: o.plan.class, Workers: o.plan.workers, Concurrency: o.plan.concurrency, LeaseSeconds: o.plan.lease.Seconds(),
		Seed: o.plan.seed, Machine: machine(), Versions: versions,
	}
	byAction := make(map[uuid.UUID]found, len(o.envelopes))
	for _, f := range o.envelopes {
		byAction[f.Action] = f
	}
	var all []record
	kills := 0
	for _, f := range o.faults {
		r := base
		r.Fault, r.Time, r.SecondsToRecover = f.kind, f.at.UTC(), round(f.recovery())
		hit := f.orphans
		if f.kind == blowRestart {
			hit = slices.Collect(maps.Keys(f.taken))
		} else {
			kills++
		}
		part := evidence{plan: o.plan, world: o.world, inHand: inHand(o.faults)}
		var t total
		for _, h := range hit {
			env := byAction[h.Action]
			var n int
			if _, err := fmt.Sscanf(env.External, "n-%d", &n); err != nil {
				r.Lost++
				continue
			}
			effects := o.world.Effects[n]
			r.Effects += effects
			if effects > 1 {
				r.Doubled++
			}
			if part.envelope(&t, &properties{}, "", env, effects) {
				r.Lost++
			}
		}
		r.Envelopes, r.Unknown = len(hit), t.unknown
		all = append(all, r)
	}
	whole := base
	whole.Fault, whole.Time, whole.Kills = "all", time.Now().UTC(), kills
	whole.Envelopes, whole.Effects, whole.Lost, whole.Doubled = o.plan.n, o.effects, o.lost, o.doubled
	whole.Unknown, whole.SecondsToRecover = o.unknown, round(o.recovered)
	for _, p := range o.properties {
		if len(p.broken) > 0 {
			whole.Broken = append(whole.Broken, p.text)
		}
	}
	return append(all, whole)
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
		return err //nolint:wrapcheck // it names the file
	}
	_, err = file.WriteString(b.String())
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	return err //nolint:wrapcheck // it names the file
}
