package evaluate

import (
	"context"
	"hash/fnv"

	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/corpus"
)

// crossValidate calls each with every model and the part that the model was
// trained without.
func (r *run) crossValidate(ctx context.Context, each func(m *classify.Model, held func(corpus.Example) bool)) error {
	set, err := classify.Prepare(r.sources, r.Config)
	if err != nil {
		return err
	}
	for seed := range r.Seeds {
		for part := range r.Folds {
			if err := ctx.Err(); err != nil {
				return err
			}
			held := func(e corpus.Example) bool { return fold(e.ID, seed, r.Folds) == part }
			m, _, err := set.Train(func(source string, e corpus.Example) bool { return !r.labelled(source) || !held(e) })
			if err != nil {
				return err
			}
			each(m, held)
		}
	}
	return nil
}

// fold returns the fold of an example, which depends on its id and the seed.
func fold(id string, seed, folds int) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte{byte(seed)})
	_, _ = h.Write([]byte(id))
	sum := h.Sum64()
	return int((sum ^ sum>>32) % uint64(folds))
}

// crossValidated holds the models' results on held-out examples.
type crossValidated struct {
	messages, phishing []judged
	requests           found
	sets               judgedSets
}

func (r *run) crossValidateAll(ctx context.Context) (crossValidated, error) {
	var out crossValidated
	err := r.crossValidate(ctx, func(m *classify.Model, held func(corpus.Example) bool) {
		out.messages = append(out.messages, judgeAll(m, r.messages.Subset(held))...)
		out.phishing = append(out.phishing, judgeAll(m, r.phishing.Subset(held))...)
		out.sets.languages = append(out.sets.languages, r.languages.subset(held).judgeAll(m)...)
		out.sets.lures = append(out.sets.lures, r.lures.subset(held).judgeAll(m)...)
		for _, e := range r.sentences.Subset(held).Examples {
			out.requests.add(m.Requests(e.Sentence), *e.Labels.Request)
		}
	})
	return out, err
}

func judgeAll(m *classify.Model, source corpus.Source) []judged {
	out := make([]judged, 0, len(source.Examples))
	for _, e := range source.Examples {
		out = append(out, judge(m, e))
	}
	return out
}

// published are the figures of AMD's GAIA e-mail agent, which has not seen the
// messages; exact and within one are of 250 messages of the same kinds.
func published() map[string]float64 {
	return map[string]float64{
		"exact": .781, "within one": .845,
		"attention (as chosen) recall": 1, "attention (as chosen) accuracy": .799,
		"needs_response recall": 1, "urgent recall": .938, "fyi recall": .765, "promotional recall": .679, "personal recall": .364,
	}
}

func withPublished(figures []Figure) []Figure {
	for i := range figures {
		figures[i].Published = published()[figures[i].Name]
	}
	return figures
}

// aims are the aims of the shipped models, coldAims those of cold ones.
func aims() map[string]float64 {
	return map[string]float64{
		"exact": .86, "within one": .94, "attention (over its cut) recall": .97, "attention (over its cut) precision": .72,
		"urgent (by the bucket) recall": .95, "urgent (by the bucket) precision": .65, "personal recall": .75,
	}
}

func coldAims() map[string]float64 {
	return map[string]float64{"within one": .85, "attention (over its cut) recall": .95, "urgent (by the bucket) recall": .80}
}

// evaluateMessages evaluates everything that is cross-validated, since the same
// models serve all of it, and the cold figures for comparison.
func (r *run) evaluateMessages(ctx context.Context) error {
	if len(r.messages.Examples)+len(r.phishing.Examples)+len(r.sentences.Examples)+len(r.languages.source.Examples)+len(r.lures.source.Examples) == 0 {
		return nil
	}
	if n := len(r.messages.Examples); n > 0 {
		all := judgeAll(r.cold, r.messages)
		figures := append(priorities(all, 1), others(all, 1)...)
		r.add(Section{Set: r.messages.Name, Mode: Cold, Examples: n, Figures: withPublished(aim(figures, coldAims()))})
	}
	crossed, err := r.crossValidateAll(ctx)
	if err != nil {
		return err
	}
	r.crossed = crossed
	if n := len(r.messages.Examples); n > 0 {
		figures := append(priorities(crossed.messages, r.Seeds), others(crossed.messages, r.Seeds)...)
		r.add(Section{Set: r.messages.Name, Mode: CrossValidated, Examples: n, Figures: aim(figures, aims())})
	}
	return nil
}

// evaluatePhishing evaluates phishing against harmless mail that resembles it.
func (r *run) evaluatePhishing(context.Context) error {
	n := len(r.phishing.Examples)
	if n == 0 {
		return nil
	}
	all := judgeAll(r.cold, r.phishing)
	r.add(Section{
		Set: r.phishing.Name, Mode: Tuned, Examples: n, Figures: others(all, 1),
		Note: "none of the set was in training, but symbols of rules that were changed after a look at the set are features",
	})
	r.addFlags(r.phishing.Name, all)
	r.add(Section{
		Set: r.phishing.Name, Mode: CrossValidated, Examples: n, Figures: others(r.crossed.phishing, r.Seeds),
	})
	return nil
}

// evaluateRequests evaluates single sentences.
func (r *run) evaluateRequests(context.Context) error {
	n := len(r.sentences.Examples)
	if n == 0 {
		return nil
	}
	var cold found
	for _, e := range r.sentences.Examples {
		cold.add(r.cold.Requests(e.Sentence), *e.Labels.Request)
	}
	for _, of := range []struct {
		mode    Mode
		found   found
		repeats int
	}{{Cold, cold, 1}, {CrossValidated, r.crossed.requests, r.Seeds}} {
		figures := append(of.found.figures("request", of.repeats), of.found.accuracy().figure("accuracy", of.repeats))
		r.add(Section{
			Set: r.sentences.Name, Mode: of.mode, Examples: n, Figures: aim(figures, map[string]float64{"request F1": .80}),
			Note: "the kinds of features of sentences were chosen by cross-validation on this set, also for the cold figures",
		})
	}
	return nil
}
