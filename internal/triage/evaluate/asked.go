package evaluate

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/internal/triage/cascade"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/corpus"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/model"
)

// example is a message to ask models about, with triage's prediction and
// decision without them.
type example struct {
	judged
	facts    decide.Facts
	decision decide.Decision
	mail     cascade.Mail
}

// shown reports whether the message is worth showing by its labels.
func (e example) shown() bool {
	if e.labels.Bucket != "" {
		return e.labels.Bucket != string(decide.Archived)
	}
	return e.label() != classify.Promotional
}

// set is a set of examples to ask models about.
type set struct {
	name     string
	examples []example
}

// askedSets returns the sets with labels for the models' questions.
func (r *run) askedSets() []set {
	own, mail := set{name: "fixture"}, set{name: r.messages.Name}
	for _, e := range limited(r.own.source.Examples, r.Limit) {
		j, facts := r.own.facts(r.cold, e)
		own.add(e, j, facts)
	}
	for _, e := range limited(r.messages.Examples, r.Limit) {
		j, facts := unknown(r.cold, e)
		mail.add(e, j, facts)
	}
	return slices.DeleteFunc([]set{own, mail}, func(s set) bool { return len(s.examples) == 0 })
}

func (s *set) add(e corpus.Example, j judged, facts decide.Facts) {
	d := decide.Decide(facts)
	s.examples = append(s.examples, example{j, facts, d, cascade.Mail{
		ID: uuid.NewSHA1(uuid.Nil, []byte(e.ID)), Account: uuid.NewSHA1(uuid.Nil, []byte(e.Owner)), Subject: j.message.Subject, Body: j.message.Body,
		Prediction: j.prediction, Decision: d, Signals: j.signals, Settings: facts.Settings,
	}})
}

// limited returns at most the given number of examples, selected by their ids;
// 0 means all. A larger selection includes a smaller one.
func limited(all []corpus.Example, most int) []corpus.Example {
	if most == 0 || len(all) <= most {
		return all
	}
	at := func(e corpus.Example) uint64 {
		h := fnv.New64a()
		_, _ = h.Write([]byte(e.ID))
		return h.Sum64() * 0x9e3779b97f4a7c15
	}
	sorted := slices.SortedFunc(slices.Values(all), func(a, b corpus.Example) int { return cmp.Or(cmp.Compare(at(a), at(b)), cmp.Compare(a.ID, b.ID)) })
	return sorted[:most]
}

// everyMail returns messages prepared so that a tier is asked about all of
// them, except those about which no model is ever asked.
func (s set) everyMail(tier cascade.Tier) []cascade.Mail {
	mails := make([]cascade.Mail, 0, len(s.examples))
	for _, e := range s.examples {
		m := e.mail
		m.Prediction, m.Decision = classify.Prediction{Attention: 0.5}, decide.Decision{Cohort: m.Decision.Cohort}
		if tier == cascade.T2b {
			// T2b is asked only after T2a. This reply has no valid answer.
			m.Replies = []cascade.Reply{{Tier: cascade.T2a, Prompt: cascade.Prompt(cascade.T2a), Choices: []cascade.Choice{{}}}}
		}
		mails = append(mails, m)
	}
	return mails
}

// answers holds a tier's replies about the messages of a set, in order; without
// choices if there is no answer.
type answers []cascade.Reply

func answersOf(tier cascade.Tier, results []cascade.Result) answers {
	out := make(answers, len(results))
	for i, result := range results {
		for _, reply := range result.Replies {
			if reply.Tier == tier {
				out[i] = reply
			}
		}
	}
	return out
}

// choice returns the answer to a question about a message.
func (a answers) choice(i int, question string) (cascade.Choice, bool) {
	at := slices.IndexFunc(a[i].Choices, func(c cascade.Choice) bool { return c.Question == question })
	if at < 0 || !a[i].Answered() {
		return cascade.Choice{}, false
	}
	return a[i].Choices[at], true
}

// evaluateBackends asks the models of every back end about every set. After the
// end of ctx, the figures cover the answers so far.
func (r *run) evaluateBackends(ctx context.Context) error {
	for _, s := range r.askedSets() {
		var first map[cascade.Tier]answers
		for _, backend := range r.Backends {
			if ctx.Err() != nil {
				return nil
			}
			b := newRemembering(backend, r.progress(s.name+", "+backend.Name))
			replies := map[cascade.Tier]answers{}
			for _, tier := range b.tiers() {
				if ctx.Err() != nil {
					return nil
				}
				replies[tier] = r.evaluateTier(ctx, b, tier, s)
			}
			if ctx.Err() != nil {
				return nil
			}
			r.evaluateCascade(ctx, b, s)
			r.evaluateStability(ctx, b, s, replies, first)
			if first == nil {
				first = replies
			}
		}
	}
	return nil
}

// progressInterval is the number of answers between two reports of progress.
const progressInterval = 10

// progress returns a function to call for every answer.
func (r *run) progress(of string) func(cascade.Tier) {
	var answers atomic.Int64
	return func(tier cascade.Tier) {
		if n := answers.Add(1); r.Progress != nil && n%progressInterval == 0 {
			r.Progress(fmt.Sprintf("%s, %s: %d questions answered", of, tier, n))
		}
	}
}

// addAsked adds a section about the models' answers. Its note reports missing
// answers and an interruption.
func (r *run) addAsked(ctx context.Context, set string, examples, open int, kind model.Kind, figures []Figure) {
	note := ""
	switch {
	case ctx.Err() != nil:
		note = "partial: it was interrupted"
	case open > 0:
		note = fmt.Sprintf("partial: %d messages have no answer, since the server failed (%s)", open, cmp.Or(string(kind), "unavailable"))
	}
	r.report.Partial = r.report.Partial || note != ""
	r.add(Section{Set: set, Mode: Asked, Examples: examples, Figures: figures, Note: note})
}
