package cascade

import (
	"context"
	"errors"
	"sync"

	"github.com/countersign-dev/countersign/internal/triage/model"
)

// turn is a message that is being asked about. One goroutine at a time owns it.
type turn struct {
	mail Mail
	kind model.Kind
}

// round is one call of Ask.
type round struct {
	*Cascade
	mutex sync.Mutex
	// stopped holds the tiers whose server is unavailable, and why; the kind is
	// empty if asking was interrupted.
	stopped map[Tier]model.Kind
}

// Ask asks the wanted questions about messages and returns one result for each,
// in order. If a server is unavailable, the rest of its tier stays open without
// another attempt, and the following tiers wait.
//
// The packs depend only on the messages. No question is asked after the
// context has ended.
func (c *Cascade) Ask(ctx context.Context, mails []Mail) []Result {
	r := &round{Cascade: c, stopped: map[Tier]model.Kind{}}
	turns := make([]*turn, len(mails))
	kinds := map[kind][]*turn{}
	for i, m := range mails {
		m.Replies = append([]Reply(nil), m.Replies...)
		turns[i] = &turn{mail: m}
		kinds[kindOf(m)] = append(kinds[kindOf(m)], turns[i])
	}
	if c.phased {
		for _, tier := range Tiers() {
			r.askTier(ctx, tier, turns)
		}
	} else {
		var group sync.WaitGroup
		for _, some := range kinds {
			group.Go(func() {
				for _, tier := range Tiers() {
					r.askTier(ctx, tier, some)
				}
			})
		}
		group.Wait()
	}
	results := make([]Result, len(turns))
	for i, t := range turns {
		results[i] = Result{ID: t.mail.ID, Replies: t.mail.Replies, Open: c.Wanted(t.mail), Kind: t.kind}
	}
	return results
}

// askTier asks a tier about the messages for which it is next.
func (r *round) askTier(ctx context.Context, tier Tier, turns []*turn) {
	if _, ok := r.config.Endpoints[tier]; !ok {
		return
	}
	var next []*turn
	for _, t := range turns {
		if wanted := r.Wanted(t.mail); len(wanted) > 0 && wanted[0] == tier {
			next = append(next, t)
		}
	}
	var group sync.WaitGroup
	for _, pack := range packs(next, r.most(tier)) {
		group.Go(func() { r.askPack(ctx, tier, pack) })
	}
	group.Wait()
}

// most returns the largest number of messages in a question of a tier.
func (c *Cascade) most(tier Tier) int {
	most := specOf(tier).pack
	if pack := c.config.Endpoints[tier].Pack; pack > 0 {
		most = min(most, pack)
	}
	return most
}

// askPack asks a tier about several messages together. If the answer is
// invalid, it asks about each half.
func (r *round) askPack(ctx context.Context, tier Tier, pack []*turn) {
	replies, missing := r.askOnce(ctx, tier, pack)
	switch {
	case missing == nil:
		for i, t := range pack {
			t.mail.Replies = append(t.mail.Replies, replies[i])
		}
	case missing.open:
		for _, t := range pack {
			t.kind = missing.kind
		}
	case len(pack) > 1:
		half := (len(pack) + 1) / 2
		r.askPack(ctx, tier, pack[:half])
		r.askPack(ctx, tier, pack[half:])
	default:
		t := pack[0]
		t.mail.Replies = append(t.mail.Replies, Reply{Tier: tier, Prompt: specOf(tier).version, Pack: 1, Failed: missing.kind})
	}
}

// unanswered is the reason for a missing answer. open reports whether a later
// attempt may succeed; otherwise the question itself is the cause.
type unanswered struct {
	kind model.Kind
	open bool
}

// askOnce asks one question when a slot is free.
func (r *round) askOnce(ctx context.Context, tier Tier, pack []*turn) ([]Reply, *unanswered) {
	slots := r.slots[tier]
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		return nil, &unanswered{open: true}
	}
	if kind, stopped := r.stoppedBy(tier); stopped {
		return nil, &unanswered{kind, true}
	}
	if ctx.Err() != nil {
		return nil, &unanswered{open: true}
	}
	s, mails := specOf(tier), make([]Mail, len(pack))
	for i, t := range pack {
		mails[i] = t.mail
	}
	q, err := s.ask(mails)
	if err != nil {
		return nil, r.stop(tier, "")
	}
	answer, err := r.config.Endpoints[tier].Asker.Ask(ctx, q)
	if err != nil {
		return nil, r.failed(ctx, tier, err)
	}
	replies, err := s.replies(answer, len(pack), r.config.Calibrations)
	if err != nil {
		return nil, &unanswered{kind: model.Invalid}
	}
	return replies, nil
}

// failed classifies an error. An error that is not from the model's server
// means only that nothing was asked.
func (r *round) failed(ctx context.Context, tier Tier, err error) *unanswered {
	wrong, ok := errors.AsType[*model.Error](err)
	if !ok || ctx.Err() != nil {
		return r.stop(tier, "")
	}
	switch wrong.Kind {
	case model.TooLong, model.Cut, model.Invalid:
		return &unanswered{kind: wrong.Kind}
	case model.Unavailable, model.WrongModel, model.Remote, model.Disobedient:
	}
	return r.stop(tier, wrong.Kind)
}

func (r *round) stop(tier Tier, kind model.Kind) *unanswered {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if _, ok := r.stopped[tier]; !ok {
		r.stopped[tier] = kind
	}
	return &unanswered{r.stopped[tier], true}
}

func (r *round) stoppedBy(tier Tier) (model.Kind, bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	kind, ok := r.stopped[tier]
	return kind, ok
}
