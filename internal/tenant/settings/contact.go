package settings

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/action/preflight"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// MaxRecipientBytes bounds the text at the recipient places of one call.
// Reading addresses takes time, and an agent chooses the text.
const MaxRecipientBytes = 32 << 10

// Contacts returns whom a call of a tool addresses, by the tenant's way to
// read addresses; nobody if the tool is not there. It reports false if there
// is more text at those places than it reads: then nobody can say.
func (s *Settings) Contacts(key policy.Key, args json.RawMessage) ([]preflight.Contact, bool) {
	t, ok := s.Tool(key)
	if !ok {
		return nil, true
	}
	found, size := preflight.Find(args, t.Recipients), 0
	for _, text := range found {
		size += len(text)
	}
	if size > MaxRecipientBytes {
		return nil, false
	}
	return s.Limits.Contacts(found), true
}

// OnList finds which of n calls address somebody on the tenant's do-not-contact
// list, or more recipients than can be checked, by their place. call gives the
// tool and the arguments of one. It costs nothing where the tenant has no such
// list: call is then never asked. Where it has, it is one look for all of them.
func (s *Settings) OnList(ctx context.Context, tx pgx.Tx, n int, call func(i int) (policy.Key, json.RawMessage)) (map[int]preflight.Match, error) {
	if !s.Limits.HasDoNotContact() {
		return nil, nil
	}
	found := make(map[int]preflight.Match)
	var asks []limits.Ask
	var places []int
	for i := range n {
		contacts, readable := s.Contacts(call(i))
		if !readable {
			found[i] = preflight.Match{Kind: preflight.ContactHandle, Reason: "more recipients than can be checked"}
		}
		if len(contacts) > 0 {
			asks, places = append(asks, limits.Ask{Tenant: s.Tenant, Contacts: contacts}), append(places, i)
		}
	}
	matches, err := limits.Matches(ctx, tx, asks)
	if err != nil {
		return nil, fmt.Errorf("do-not-contact: %w", err)
	}
	for _, m := range matches {
		found[places[m.Ask]] = preflight.Match{Kind: m.Kind, Reason: m.Reason}
	}
	return found, nil
}
