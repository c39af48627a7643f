package main

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// result holds the counts of a run.
type result struct {
	// Requests are those of the agents; Refused those that were not accepted.
	Requests, Refused int
	// Sent and Unknown count the accepted actions by their end. Lost have none, or
	// are sent without an effect. Doubled had two effects, or two ends.
	Sent, Unknown, Lost, Doubled int
	// ShortUnknown are unknown though their calls are shorter than every grace.
	ShortUnknown int
	// Took is the longest time from SIGTERM to the end, by program.
	Took map[string]time.Duration
	// Examples name some of the problems.
	Examples []string
}

const (
	header = "run                       | requests | refused | sent | unknown | of them short | lost | doubled | API ended within | workers within | conclusion"
	row    = "%-25s | %8d | %7d | %4d | %7d | %13d | %4d | %7d | %16s | %14s | %s"
	// mostExamples bounds result.Examples.
	mostExamples = 5
)

func (r result) row(name, conclusion string) string {
	return fmt.Sprintf(row, name, r.Requests, r.Refused, r.Sent, r.Unknown, r.ShortUnknown, r.Lost, r.Doubled, short(r.Took["api"]), short(r.Took["worker"]), conclusion)
}

// compare compares the records of the agents, the tool and the database.
func compare(l *load, t *tool, stored map[string]end, took map[string]time.Duration) result {
	r := result{Requests: l.requests, Refused: len(l.refused), Took: took}
	r.Examples = append(r.Examples, l.refused[:min(len(l.refused), mostExamples)]...)
	for _, n := range slices.Sorted(maps.Keys(l.accepted)) {
		p, e, effects := l.accepted[n], stored[externalID(n)], t.effectsOf(n)
		before := r.Lost + r.Doubled + r.ShortUnknown
		switch e.status {
		case "sent":
			r.Sent++
			if effects == 0 {
				r.Lost++
			}
		case "unknown":
			r.Unknown++
			if p.took < longCall || p.tool != toolOnce {
				r.ShortUnknown++
			}
		default:
			r.Lost++
		}
		if effects > 1 || e.ends > 1 {
			r.Doubled++
		}
		if r.Lost+r.Doubled+r.ShortUnknown > before && len(r.Examples) < mostExamples {
			r.Examples = append(r.Examples, fmt.Sprintf("action %d of %s, a call of %s: %q after %d ends and %d effects", n, p.tool, p.took, e.status, e.ends, effects))
		}
	}
	return r
}
