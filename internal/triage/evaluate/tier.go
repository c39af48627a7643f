package evaluate

import (
	"context"
	"slices"

	"github.com/countersign-dev/countersign/internal/triage/cascade"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/model"
)

// The names of the questions with labels.
const (
	questionShow     = "show"
	questionAct      = "act"
	questionCategory = "category"
	questionPriority = "priority"
	questionScore    = "score"
)

// evaluateTier asks a tier about every message, regardless of lower tiers, and
// compares its answers with the labels, with the embedded models and with the
// merged result, on the messages that have an answer.
func (r *run) evaluateTier(ctx context.Context, b *remembering, tier cascade.Tier, s set) answers {
	mails := s.everyMail(tier)
	c, spent := b.cascade(tier)
	results := c.Ask(ctx, mails)
	replies := answersOf(tier, results)
	open, kind := unanswered(results)
	var figures []Figure
	switch tier {
	case cascade.T1:
		figures = s.aboutShow(replies)
	case cascade.T2a:
		figures = s.aboutUnderstanding(replies)
	case cascade.T2b:
		figures = s.aboutNeed(replies)
	}
	raw := replies
	if name := replies.model(); name != "" {
		raw = answersOf(tier, b.recall(cascade.Raw(name), tier).Ask(context.WithoutCancel(ctx), mails))
	}
	figures = append(figures, s.calibration(tier, replies, raw)...)
	figures = append(figures, spent.failures(replies)...)
	answered := len(slices.DeleteFunc(slices.Clone(replies), func(r cascade.Reply) bool { return !r.Answered() }))
	r.addAsked(ctx, s.name+", "+b.Name+", "+string(tier), answered, open, kind, figures)
	return replies
}

// unanswered counts the messages with a tier that the server left open.
func unanswered(results []cascade.Result) (n int, kind model.Kind) {
	for _, result := range results {
		if len(result.Open) > 0 {
			n, kind = n+1, result.Kind
		}
	}
	return n, kind
}

// model returns the model's own name in the answers, or "" without any.
func (a answers) model() string {
	for _, r := range a {
		if r.Answered() {
			return r.Model
		}
	}
	return ""
}

// shares holds the shares of a tier, of the embedded models and of both, on the
// same messages; founds holds the same for yes-or-no questions.
type shares struct{ tier, embedded, both share }

func (s *shares) add(tier, embedded, both bool) {
	s.tier.add(tier)
	s.embedded.add(embedded)
	s.both.add(both)
}

func (s shares) figures(name string, tier cascade.Tier) []Figure {
	if s.tier.of+s.embedded.of+s.both.of == 0 {
		return nil
	}
	return []Figure{s.tier.figure(name+": "+string(tier), 1), s.embedded.figure(name+": embedded models", 1), s.both.figure(name+": both", 1)}
}

type founds struct{ tier, embedded, both found }

func (f *founds) add(is, tier, embedded, both bool) {
	f.tier.add(tier, is)
	f.embedded.add(embedded, is)
	f.both.add(both, is)
}

func (f founds) figures(name string, tier cascade.Tier) []Figure {
	if f.tier == (found{}) {
		return nil
	}
	recall := shares{f.tier.recall(), f.embedded.recall(), f.both.recall()}
	precision := shares{f.tier.precision(), f.embedded.precision(), f.both.precision()}
	return append(recall.figures(name+" recall", tier), precision.figures(name+" precision", tier)...)
}

// aboutShow compares whether messages are worth showing; for the embedded
// models, whether the decision without a model does not archive them.
func (s set) aboutShow(replies answers) []Figure {
	var show founds
	for i, e := range s.examples {
		if c, ok := replies.choice(i, questionShow); ok {
			both := cascade.Decide(e.facts, replies[i:i+1])
			show.add(e.shown(), c.Code == "Y", e.decision.Bucket != decide.Archived, both.Bucket != decide.Archived)
		}
	}
	return show.figures("worth showing", cascade.T1)
}

// aboutUnderstanding compares act, category and priority.
func (s set) aboutUnderstanding(replies answers) []Figure {
	var act, category, exact, within shares
	var need founds
	for i, e := range s.examples {
		merged := cascade.Merge(e.prediction, replies[i:i+1])
		if c, ok := replies.choice(i, questionAct); ok && e.labels.Act != "" {
			act.add(c.Value == e.labels.Act, string(e.prediction.Act) == e.labels.Act, string(merged.Act) == e.labels.Act)
		}
		if c, ok := replies.choice(i, questionCategory); ok && e.labels.Category != "" {
			category.add(c.Value == e.labels.Category, string(e.prediction.Category) == e.labels.Category, string(merged.Category) == e.labels.Category)
		}
		if c, ok := replies.choice(i, questionPriority); ok && e.labels.Priority != "" {
			is := e.label()
			exact.add(classify.Priority(c.Value) == is, e.prediction.Priority == is, merged.Priority == is)
			within.add(withinOne(classify.Priority(c.Value), is), withinOne(e.prediction.Priority, is), withinOne(merged.Priority, is))
			need.add(attention(is), attention(classify.Priority(c.Value)), attention(e.prediction.Priority), attention(merged.Priority))
		}
	}
	return slices.Concat(
		act.figures("act exact", cascade.T2a), category.figures("category exact", cascade.T2a),
		exact.figures("priority exact", cascade.T2a), within.figures("priority within one", cascade.T2a),
		need.figures("attention (as chosen)", cascade.T2a),
	)
}

// aboutNeed compares whether the message needs its owner. No set has labels of
// scores: a score above the lowest should find urgent mail and mail that needs
// a response.
func (s set) aboutNeed(replies answers) []Figure {
	var need founds
	for i, e := range s.examples {
		if c, ok := replies.choice(i, questionScore); ok && e.labels.Priority != "" {
			both := cascade.Merge(e.prediction, replies[i:i+1])
			need.add(attention(e.label()), c.Code != "L", e.prediction.NeedsAttention, both.NeedsAttention)
		}
	}
	return need.figures("needs its owner", cascade.T2b)
}

// failures returns the figures about missing and invalid answers.
func (c *cost) failures(replies answers) []Figure {
	failed := 0
	for _, r := range replies {
		failed += count(r.Failed != "")
	}
	calls := c.total()
	return []Figure{
		share{c.invalid, calls}.figure("answers that left their schema", 1), share{c.cut, calls}.figure("answers without an end", 1),
		share{c.long, calls}.figure("questions that were too long", 1),
		{Name: "packs asked again in halves", Value: float64(max(0, c.wrong()-failed)), Unit: "packs"},
		{Name: "failed alone", Value: float64(failed), Unit: "messages"},
	}
}
