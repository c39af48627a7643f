package settings

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// MaxRecipientBytes bounds the text at the recipient pointers of one call, in
// bytes. Parsing addresses takes time, and an agent chooses the text.
const MaxRecipientBytes = 32 << 10

// Recipients are the recipients of a set of calls, by the index of the call.
// Calls of tenants whose limits do not depend on recipients are in neither map.
type Recipients struct {
	Contacts map[int][]contact.Contact
	// Listed are the do-not-contact entries that a recipient matches. A call
	// with more recipients than can be checked counts as listed.
	Listed map[int]contact.Match
}

// FindRecipients returns the recipients of n calls. call returns the settings,
// the tool and the arguments of one of them. All do-not-contact lists are
// read by one statement, and by none where no tenant needs it.
func FindRecipients(ctx context.Context, tx pgx.Tx, n int, call func(i int) (*Settings, policy.Key, json.RawMessage)) (Recipients, error) {
	var r Recipients
	var asks []contact.Ask
	var indexes []int
	for i := range n {
		s, key, args := call(i)
		if !s.Limits.NeedsRecipients() {
			continue
		}
		contacts, readable := s.contacts(key, args)
		if !readable && s.Limits.HasDoNotContact() {
			r.list(i, contact.Match{Kind: contact.Handle, Reason: "more recipients than can be checked"})
		}
		if len(contacts) == 0 {
			continue
		}
		if r.Contacts == nil {
			r.Contacts = make(map[int][]contact.Contact)
		}
		r.Contacts[i] = contacts
		if s.Limits.HasDoNotContact() {
			asks, indexes = append(asks, contact.Ask{Tenant: s.Tenant, Contacts: contacts}), append(indexes, i)
		}
	}
	if len(asks) == 0 {
		return r, nil
	}
	matches, err := contact.Matches(ctx, tx, asks)
	if err != nil {
		return Recipients{}, fmt.Errorf("do-not-contact: %w", err)
	}
	for _, m := range matches {
		r.list(indexes[m.Ask], contact.Match{Kind: m.Kind, Reason: m.Reason})
	}
	return r, nil
}

func (r *Recipients) list(i int, m contact.Match) {
	if r.Listed == nil {
		r.Listed = make(map[int]contact.Match)
	}
	r.Listed[i] = m
}

// contacts returns the recipients of a call by the tenant's address options;
// none if the tool is unknown. It reports false if there is more text at the
// recipient pointers than MaxRecipientBytes.
func (s *Settings) contacts(key policy.Key, args json.RawMessage) ([]contact.Contact, bool) {
	t, ok := s.Tool(key)
	if !ok {
		return nil, true
	}
	found, size := contact.Find(args, t.Recipients), 0
	for _, text := range found {
		size += len(text)
	}
	if size > MaxRecipientBytes {
		return nil, false
	}
	return s.Limits.Contacts(found), true
}

// OnList returns the do-not-contact entries that n calls of the tenant match,
// by the index of the call. See FindRecipients.
func (s *Settings) OnList(ctx context.Context, tx pgx.Tx, n int, call func(i int) (policy.Key, json.RawMessage)) (map[int]contact.Match, error) {
	if !s.Limits.HasDoNotContact() {
		return nil, nil
	}
	r, err := FindRecipients(ctx, tx, n, func(i int) (*Settings, policy.Key, json.RawMessage) {
		key, args := call(i)
		return s, key, args
	})
	return r.Listed, err
}
