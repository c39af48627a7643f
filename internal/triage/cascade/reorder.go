package cascade

import (
	"context"
	"fmt"
	"slices"
)

// Packs returns the packs of several messages in which a tier would be asked
// about all of the given ones.
func (c *Cascade) Packs(tier Tier, mails []Mail) [][]Mail {
	turns := make([]*turn, len(mails))
	for i, m := range mails {
		turns[i] = &turn{mail: m}
	}
	var out [][]Mail
	for _, pack := range packs(turns, c.most(tier)) {
		if len(pack) < 2 {
			continue
		}
		some := make([]Mail, len(pack))
		for i, t := range pack {
			some[i] = t.mail
		}
		out = append(out, some)
	}
	return out
}

// Reorder asks a tier about the same messages in one pack twice, the second
// time in reverse order, and returns the number of changed answers and of all.
// Changes show the influence of the place in the pack.
func (c *Cascade) Reorder(ctx context.Context, tier Tier, mails []Mail) (changed, of int, err error) {
	endpoint, ok := c.config.Endpoints[tier]
	if !ok {
		return 0, 0, fmt.Errorf("the tier %s has no model", tier)
	}
	if most := specOf(tier).pack; len(mails) > most {
		return 0, 0, fmt.Errorf("a question of the tier %s has %d messages at most", tier, most)
	}
	forward, err := endpoint.together(ctx, tier, mails)
	if err != nil {
		return 0, 0, err
	}
	turned := slices.Clone(mails)
	slices.Reverse(turned)
	backward, err := endpoint.together(ctx, tier, turned)
	if err != nil {
		return 0, 0, err
	}
	slices.Reverse(backward)
	for i := range forward {
		for j, choice := range forward[i].Choices {
			of++
			if choice.Code != backward[i].Choices[j].Code {
				changed++
			}
		}
	}
	return changed, of, nil
}

// together asks one question about messages in the given order.
func (s Endpoint) together(ctx context.Context, tier Tier, mails []Mail) ([]Reply, error) {
	q, err := specOf(tier).ask(mails)
	if err != nil {
		return nil, err
	}
	answer, err := s.Asker.Ask(ctx, q)
	if err != nil {
		return nil, err
	}
	return specOf(tier).replies(answer, len(mails), nil)
}
