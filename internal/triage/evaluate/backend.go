package evaluate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/countersign-dev/countersign/internal/triage/cascade"
	"github.com/countersign-dev/countersign/internal/triage/model"
)

// Backend is a set of language models to evaluate, by tier.
type Backend struct {
	// Name is the title of its figures.
	Name      string
	Endpoints map[cascade.Tier]cascade.Endpoint
	// Calibrations are the calibrations of its models.
	Calibrations cascade.Calibrations
}

// OpenBackend returns the models of a set as a back end. It fails if any of
// them is unavailable.
func OpenBackend(ctx context.Context, name string, set *model.Set) (Backend, error) {
	b := Backend{Name: name, Endpoints: map[cascade.Tier]cascade.Endpoint{}}
	for _, tier := range cascade.Tiers() {
		t, ok := set.Tier(string(tier))
		if !ok {
			continue
		}
		if err := t.Ready(ctx); err != nil {
			return Backend{}, err
		}
		b.Endpoints[tier] = cascade.Endpoint{Asker: t, Server: t.Name(), Model: t.Model(), Slots: t.Slots(), Pack: t.Pack}
	}
	if len(b.Endpoints) == 0 {
		return Backend{}, fmt.Errorf("%s gives none of the tiers t1, t2a and t2b a model", name)
	}
	return b, nil
}

// remembering is a back end that caches answers, so that several figures can
// use a question that is asked once.
type remembering struct {
	Backend
	memos map[cascade.Tier]*memo
}

// newRemembering returns a back end with an empty cache. It calls answered for each
// answer of its models.
func newRemembering(b Backend, answered func(cascade.Tier)) *remembering {
	out := &remembering{Backend: b, memos: map[cascade.Tier]*memo{}}
	for tier, endpoint := range b.Endpoints {
		out.memos[tier] = &memo{asker: endpoint.Asker, answers: map[string]remembered{}, answered: func() { answered(tier) }}
	}
	return out
}

// tiers returns the tiers with a model, in the order of asking.
func (b *remembering) tiers() []cascade.Tier {
	return slices.DeleteFunc(cascade.Tiers(), func(t cascade.Tier) bool { return b.memos[t] == nil })
}

// cascade returns a cascade of some tiers, and the cost of its questions.
func (b *remembering) cascade(tiers ...cascade.Tier) (*cascade.Cascade, *cost) {
	spent := &cost{calls: map[cascade.Tier]int{}}
	endpoints := maps.Clone(b.Endpoints)
	maps.DeleteFunc(endpoints, func(t cascade.Tier, _ cascade.Endpoint) bool { return !slices.Contains(tiers, t) })
	for tier, endpoint := range endpoints {
		endpoint.Asker = counting{b.memos[tier], tier, spent}
		endpoints[tier] = endpoint
	}
	return cascade.New(cascade.Config{Endpoints: endpoints, Calibrations: b.Calibrations}), spent
}

// recall returns a cascade of a tier that only uses cached answers: other
// questions count as failed.
func (b *remembering) recall(calibrations cascade.Calibrations, tier cascade.Tier) *cascade.Cascade {
	endpoint := b.Endpoints[tier]
	endpoint.Asker = recalled{b.memos[tier]}
	return cascade.New(cascade.Config{Endpoints: map[cascade.Tier]cascade.Endpoint{tier: endpoint}, Calibrations: calibrations})
}

// memo asks each question of a tier once.
type memo struct {
	asker    cascade.Asker
	answered func()

	mutex   sync.Mutex
	answers map[string]remembered
}

type remembered struct {
	answer model.Answer
	err    error
}

func (m *memo) of(q model.Question) (remembered, bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	r, ok := m.answers[q.User]
	return r, ok
}

// Ask implements cascade.Asker.
func (m *memo) Ask(ctx context.Context, q model.Question) (model.Answer, error) {
	if r, ok := m.of(q); ok {
		return r.answer, r.err
	}
	a, err := m.asker.Ask(ctx, q)
	if ctx.Err() == nil && (err == nil || final(err) != "") {
		m.mutex.Lock()
		m.answers[q.User] = remembered{a, err}
		m.mutex.Unlock()
		m.answered()
	}
	return a, err
}

// final returns the kind of an error that the question itself caused, or "" if
// a retry might succeed.
func final(err error) model.Kind {
	if wrong, ok := errors.AsType[*model.Error](err); ok {
		switch wrong.Kind {
		case model.TooLong, model.Cut, model.Invalid:
			return wrong.Kind
		case model.Unavailable, model.WrongModel, model.Remote, model.Disobedient:
		}
	}
	return ""
}

// recalled answers from a memo.
type recalled struct{ memo *memo }

// Ask implements cascade.Asker.
func (k recalled) Ask(_ context.Context, q model.Question) (model.Answer, error) {
	if r, ok := k.memo.of(q); ok {
		return r.answer, r.err
	}
	return model.Answer{}, &model.Error{Kind: model.Invalid, Why: "it was not asked"}
}

// cost is the cost of questions.
type cost struct {
	mutex sync.Mutex
	calls map[cascade.Tier]int
	// invalid, cut and long count questions with an invalid answer, with a
	// truncated one, and those that did not fit the context.
	invalid, cut, long int
	// prompt, completion and cached are token counts of the answers; uncounted
	// counts answers whose server does not report cached tokens.
	prompt, completion, cached, uncounted int
	took                                  time.Duration
}

// wrong returns the number of questions without a valid answer.
func (c *cost) wrong() int { return c.invalid + c.cut + c.long }

func (c *cost) total() int {
	sum := 0
	for _, n := range c.calls {
		sum += n
	}
	return sum
}

func (c *cost) add(tier cascade.Tier, a model.Answer, err error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	kind := final(err)
	if err != nil && kind == "" {
		return
	}
	c.calls[tier]++
	switch kind {
	case model.Invalid:
		c.invalid++
	case model.Cut:
		c.cut++
	case model.TooLong:
		c.long++
	case model.Unavailable, model.WrongModel, model.Remote, model.Disobedient:
	default:
		c.prompt += a.PromptTokens
		c.completion += a.CompletionTokens
		c.cached += max(0, a.CachedTokens)
		c.uncounted += count(a.CachedTokens < 0)
		c.took += a.Took
	}
}

// counting counts the cost of a tier's questions.
type counting struct {
	asker cascade.Asker
	tier  cascade.Tier
	spent *cost
}

// Ask implements cascade.Asker.
func (c counting) Ask(ctx context.Context, q model.Question) (model.Answer, error) {
	a, err := c.asker.Ask(ctx, q)
	c.spent.add(c.tier, a, err)
	return a, err
}
