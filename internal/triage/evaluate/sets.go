package evaluate

import (
	"context"
	"slices"

	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/corpus"
	"github.com/countersign-dev/countersign/internal/triage/decide"
)

// judgedSets are the results on the project's sets of languages and lures.
type judgedSets struct{ languages, lures []judged }

// subset returns the examples of a set for which keep returns true.
func (f fixture) subset(keep func(corpus.Example) bool) fixture {
	f.source = f.source.Subset(keep)
	return f
}

// evaluateSets evaluates the project's sets of languages and lures.
func (r *run) evaluateSets(context.Context) error {
	for _, of := range []struct {
		mode    Mode
		results judgedSets
		repeats int
	}{
		{Cold, judgedSets{r.languages.judgeAll(r.cold), r.lures.judgeAll(r.cold)}, 1},
		{CrossValidated, r.crossed.sets, r.Seeds},
	} {
		if n := len(r.languages.source.Examples); n > 0 && len(of.results.languages) > 0 {
			r.add(Section{Set: corpus.NameLanguages, Mode: of.mode, Examples: n, Figures: languageFigures(of.results.languages, of.repeats)})
		}
		if n := len(r.lures.source.Examples); n > 0 && len(of.results.lures) > 0 {
			figures := append(flags(of.results.lures, of.repeats), others(of.results.lures, of.repeats)...)
			mode := of.mode
			if mode == Cold {
				mode = Tuned // phrases of rules were added after a look at the set
			}
			r.add(Section{Set: corpus.NameLures, Mode: mode, Examples: n, Figures: figures})
		}
	}
	return nil
}

// flags returns the figures of the flag of phishing.
func flags(all []judged, repeats int) []Figure {
	var flagged found
	for _, j := range all {
		if is := j.labels.Phishing; is != nil {
			flagged.add(j.signals.Phishing, *is)
		}
	}
	return aim(flagged.figures("phishing (flag)", repeats), map[string]float64{"phishing (flag) recall": .90, "phishing (flag) precision": .95})
}

// languageFigures returns the figures of all languages, and for each the share
// of messages in need of attention that are found. The ids of messages begin
// with the code of the language.
func languageFigures(all []judged, repeats int) []Figure {
	figures := priorities(all, repeats)
	var away share
	recalls := map[string]*share{}
	var names []string
	for _, j := range all {
		if j.label() == classify.Urgent {
			away.add(j.decision.Bucket == decide.Archived || j.prediction.Priority == classify.Promotional)
		}
		if !attention(j.label()) {
			continue
		}
		name := j.id[:min(2, len(j.id))]
		if recalls[name] == nil {
			recalls[name] = &share{}
			names = append(names, name)
		}
		recalls[name].add(j.prediction.NeedsAttention)
	}
	slices.Sort(names)
	figures = append(figures, away.figure("urgent, archived or labelled promotional", repeats))
	for _, name := range names {
		figures = append(figures, recalls[name].figure("attention recall "+name, repeats))
	}
	return figures
}
