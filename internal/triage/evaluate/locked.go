package evaluate

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/corpus"
)

// resamples is the number of samples of a bootstrap.
const resamples = 1000

// evaluateLocked evaluates the locked thirds of all sets, cold and with models
// of the shipped configuration that are trained on the other two thirds.
// Intervals are of a bootstrap over the examples.
func (r *run) evaluateLocked(ctx context.Context) error {
	shipped, _, err := classify.Train(r.sources, r.Config)
	if err != nil {
		return fmt.Errorf("train on the open parts: %w", err)
	}
	for _, of := range []struct {
		mode  Mode
		model *classify.Model
	}{{Cold, r.cold}, {LockedThird, shipped}} {
		if err := ctx.Err(); err != nil {
			return err
		}
		r.addLocked(of.mode, corpus.NameMessages, judgeAll(of.model, r.messages), func(all []judged) []Figure { return append(priorities(all, 1), others(all, 1)...) })
		r.addLocked(of.mode, corpus.NameFixture, r.own.judgeAll(of.model), func(all []judged) []Figure {
			return slices.Concat(priorities(all, 1), others(all, 1), flags(all, 1))
		})
		r.addLocked(of.mode, corpus.NameLanguages, r.languages.judgeAll(of.model), func(all []judged) []Figure { return languageFigures(all, 1) })
		r.addLocked(of.mode, corpus.NameLures, r.lures.judgeAll(of.model), func(all []judged) []Figure { return flags(all, 1) })
		r.addLocked(of.mode, corpus.NamePhishing, judgeAll(of.model, r.phishing), func(all []judged) []Figure { return flags(all, 1) })
		var asked []asking
		for _, e := range r.sentences.Examples {
			asked = append(asked, asking{of.model.Requests(e.Sentence), *e.Labels.Request})
		}
		if len(asked) > 0 {
			r.add(Section{Set: corpus.NameRequests, Mode: of.mode, Examples: len(asked), Figures: bootstrap(asked, requestFigures)})
		}
	}
	return nil
}

func (r *run) addLocked(mode Mode, set string, all []judged, figures func([]judged) []Figure) {
	if len(all) > 0 {
		r.add(Section{Set: set, Mode: mode, Examples: len(all), Figures: bootstrap(all, figures), Note: "the locked third"})
	}
}

// asking is the result for a sentence.
type asking struct{ predicted, actual bool }

func requestFigures(all []asking) []Figure {
	var f found
	for _, a := range all {
		f.add(a.predicted, a.actual)
	}
	return f.figures("request", 1)
}

// bootstrap returns the figures of the examples, each with the middle 95 % of
// the same figure of samples drawn from the examples with replacement.
func bootstrap[T any](all []T, figures func([]T) []Figure) []Figure {
	out := figures(all)
	values := map[string][]float64{}
	random := rand.New(rand.NewPCG(1, uint64(len(all))))
	sample := make([]T, len(all))
	for range resamples {
		for i := range sample {
			sample[i] = all[random.IntN(len(all))]
		}
		for _, f := range figures(sample) {
			values[f.Name] = append(values[f.Name], f.Value)
		}
	}
	for i, f := range out {
		drawn := values[f.Name]
		slices.Sort(drawn)
		out[i].Low, out[i].High = drawn[len(drawn)/40], drawn[len(drawn)-1-len(drawn)/40]
		out[i].Of = cmp.Or(out[i].Of, len(all))
	}
	return out
}
