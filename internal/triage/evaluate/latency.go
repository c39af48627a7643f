package evaluate

import (
	"context"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/corpus"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// evaluateLatency measures the steps on all messages of the sets in sequence.
func (r *run) evaluateLatency(context.Context) error {
	all := slices.Concat(r.own.source.Examples, r.messages.Examples, r.phishing.Examples)
	var parse, find, predict []time.Duration
	for _, e := range all {
		start := time.Now()
		m := message.Parse(e.Raw)
		parsed := time.Now()
		about := signal.Context{Now: m.Date, Addresses: []string{e.Owner}, Domains: []string{corpus.Domain(e.Owner)}}
		found := signal.Find(m, about)
		ruled := time.Now()
		r.cold.Predict(r.cold.Features(m, about, found))
		end := time.Now()
		parse = append(parse, parsed.Sub(start))
		find = append(find, ruled.Sub(parsed))
		predict = append(predict, end.Sub(ruled))
	}
	var figures []Figure
	for _, step := range []struct {
		name  string
		times []time.Duration
	}{{"pre-processing", parse}, {"rules", find}, {"embedded models", predict}} {
		slices.Sort(step.times)
		for _, p := range []struct {
			name string
			at   int
		}{{"p50", 50}, {"p95", 95}, {"p99", 99}} {
			at := step.times[(len(step.times)-1)*p.at/100]
			figures = append(figures, Figure{Name: step.name + " " + p.name, Value: float64(at.Nanoseconds()) / 1000, Unit: "µs"})
		}
	}
	r.add(Section{Set: "all messages", Mode: Measured, Examples: len(all), Figures: figures})
	return nil
}
