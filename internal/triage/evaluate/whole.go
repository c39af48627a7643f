package evaluate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/triage/cascade"
)

// evaluateCascade asks the questions that triage would ask, and compares the
// decision with that without models. It uses cached answers and counts their
// cost here.
func (r *run) evaluateCascade(ctx context.Context, b *remembering, s set) {
	mails := make([]cascade.Mail, len(s.examples))
	for i, e := range s.examples {
		mails[i] = e.mail
	}
	c, spent := b.cascade(b.tiers()...)
	results := c.Ask(ctx, mails)
	open, kind := unanswered(results)
	var bucket, act, category, exact, within shares
	var need founds
	var changed share
	asked := map[cascade.Tier]*share{}
	for _, tier := range b.tiers() {
		asked[tier] = &share{}
	}
	for i, e := range s.examples {
		if len(results[i].Open) > 0 {
			continue
		}
		replies := results[i].Replies
		d, merged := cascade.Decide(e.facts, replies), cascade.Merge(e.prediction, replies)
		changed.add(d.Bucket != e.decision.Bucket)
		for tier, of := range asked {
			of.add(slices.ContainsFunc(replies, func(r cascade.Reply) bool { return r.Tier == tier }))
		}
		compare := func(t *shares, is, without, with string) {
			if is != "" {
				t.embedded.add(without == is)
				t.both.add(with == is)
			}
		}
		compare(&bucket, e.labels.Bucket, string(e.decision.Bucket), string(d.Bucket))
		compare(&act, e.labels.Act, string(e.prediction.Act), string(merged.Act))
		compare(&category, e.labels.Category, string(e.prediction.Category), string(merged.Category))
		compare(&exact, e.labels.Priority, string(e.prediction.Priority), string(merged.Priority))
		within.embedded.add(withinOne(e.prediction.Priority, e.label()))
		within.both.add(withinOne(merged.Priority, e.label()))
		need.embedded.add(e.prediction.NeedsAttention, attention(e.label()))
		need.both.add(merged.NeedsAttention, attention(e.label()))
	}
	figures := slices.Concat(
		compared(bucket, "bucket exact"), compared(act, "act exact"), compared(category, "category exact"), compared(exact, "priority exact"),
		compared(within, "priority within one"),
		compared(shares{embedded: need.embedded.recall(), both: need.both.recall()}, "attention (over its cut) recall"),
		compared(shares{embedded: need.embedded.precision(), both: need.both.precision()}, "attention (over its cut) precision"),
		[]Figure{changed.figure("bucket changed by models", 1)},
	)
	for _, tier := range b.tiers() {
		figures = append(figures, asked[tier].figure("asked "+string(tier), 1))
	}
	r.addAsked(ctx, s.name+", "+b.Name+", as triage asks", len(mails), open, kind, append(figures, spent.per(len(mails))...))
}

// compared returns the figures without models and with them.
func compared(t shares, name string) []Figure {
	if t.both.of == 0 {
		return nil
	}
	return []Figure{t.embedded.figure(name+": embedded models", 1), t.both.figure(name+": with models", 1)}
}

// per returns the cost per 100 messages.
func (c *cost) per(messages int) []Figure {
	hundred := func(name string, n int, unit string) Figure {
		return Figure{Name: name, Value: 100 * float64(n) / float64(max(1, messages)), Unit: unit + " per 100 messages"}
	}
	var figures []Figure
	for _, tier := range cascade.Tiers() {
		if n := c.calls[tier]; n > 0 {
			figures = append(figures, hundred("calls of "+string(tier), n, "calls"))
		}
	}
	figures = append(figures, hundred("calls", c.total(), "calls"), hundred("prompts", c.prompt, "tokens"), hundred("answers", c.completion, "tokens"))
	if c.uncounted == 0 {
		figures = append(figures, hundred("prompts from the cache", c.cached, "tokens"))
	}
	return append(figures, hundred("time of all calls, one after the other", int(c.took.Milliseconds()), "ms"))
}

// evaluateStability measures how many answers change: with another back end,
// when everything is asked again, and in reversed packs.
func (r *run) evaluateStability(ctx context.Context, b *remembering, s set, replies, first map[cascade.Tier]answers) {
	var figures []Figure
	var wrong error
	for _, tier := range b.tiers() {
		if first != nil && first[tier] != nil {
			figures = append(figures, differing(tier, first[tier], replies[tier], "than "+r.Backends[0].Name)...)
		}
		if !r.Repeat || ctx.Err() != nil {
			continue
		}
		again := newRemembering(b.Backend, r.progress(s.name+", "+b.Name+", again"))
		c, _ := again.cascade(tier)
		figures = append(figures, differing(tier, replies[tier], answersOf(tier, c.Ask(ctx, s.everyMail(tier))), "when asked again")...)
		turned, err := b.turned(ctx, tier, s)
		wrong = errors.Join(wrong, err)
		if turned.of > 0 {
			figures = append(figures, turned.figure(string(tier)+": answers that change in packs in reverse", 1))
		}
	}
	if len(figures) > 0 {
		r.addAsked(ctx, s.name+", "+b.Name+", stability", len(s.examples), count(wrong != nil), "", figures)
	}
}

// turned asks about every pack in reverse. An error is the server's.
func (b *remembering) turned(ctx context.Context, tier cascade.Tier, s set) (share, error) {
	c, _ := b.cascade(tier)
	var sum share
	for _, pack := range c.Packs(tier, s.asked(c, tier)) {
		changed, of, err := c.Reorder(ctx, tier, pack)
		switch {
		case err == nil:
			sum.right, sum.of = sum.right+changed, sum.of+of
		case final(err) == "":
			return sum, fmt.Errorf("ask about packs in reverse: %w", err)
		}
	}
	return sum, nil
}

// asked returns the messages that a tier is asked about.
func (s set) asked(c *cascade.Cascade, tier cascade.Tier) []cascade.Mail {
	return slices.DeleteFunc(s.everyMail(tier), func(m cascade.Mail) bool { return !slices.Contains(c.Wanted(m), tier) })
}

// differing returns how many of the messages with both answers have different
// ones, in total and for each question.
func differing(tier cascade.Tier, a, b answers, how string) []Figure {
	var whole share
	questions := cascade.Questions(tier)
	each := make([]share, len(questions))
	for i := range a {
		if !a[i].Answered() || !b[i].Answered() {
			continue
		}
		same := true
		for at, question := range questions {
			one, _ := a.choice(i, question)
			other, _ := b.choice(i, question)
			each[at].add(one.Code != other.Code)
			same = same && one.Code == other.Code
		}
		whole.add(!same)
	}
	if whole.of == 0 {
		return nil
	}
	figures := []Figure{whole.figure(string(tier)+": messages answered otherwise "+how, 1)}
	for at, question := range questions {
		figures = append(figures, each[at].figure(strings.Join([]string{string(tier), question, "otherwise", how}, " "), 1))
	}
	return figures
}
