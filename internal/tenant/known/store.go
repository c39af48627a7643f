// Package known owns the addresses and domains that a tenant knows: those in calls that
// people approved, of its people and of its sources; and it marks names in calls that may
// be taken for one of them. It does not decide who may read a known name.
package known

import (
	"context"
	"encoding/json"
	"iter"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/lookalike"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
)

// Bounds of one lookup.
const (
	// maxKeys bounds the keys; names after them have the marks that need no known name.
	maxKeys = 20_000
	// maxNames bounds the names of all calls together, maxStored those that are
	// remembered of a call.
	maxNames  = 20_000
	maxStored = 100
)

// Call is an action that a person approved, with its arguments.
type Call struct {
	Action envelope.ActionID
	Args   json.RawMessage
}

// Put remembers the names in calls of a tenant.
func Put(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, calls []Call) error {
	p := &dbsqlc.KnownAddressesPutParams{TenantID: uuid.UUID(tenant)}
	for _, call := range calls {
		names := lookalike.Names(call.Args)
		for _, n := range names[:min(len(names), maxStored)] {
			for name, keys := range n.Stored() {
				for _, key := range keys {
					p.Keys, p.Names, p.ActionIds = append(p.Keys, key), append(p.Names, name), append(p.ActionIds, uuid.UUID(call.Action))
				}
			}
		}
	}
	if len(p.Keys) == 0 {
		return nil
	}
	return dbsqlc.New().KnownAddressesPut(ctx, tx, p)
}

// Marks returns the marks of the names in each of some calls, in one query. Of more
// names than it looks at, each call has an equal share.
func Marks(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, sources []catalog.Source, calls [][]lookalike.Name) ([][]lookalike.Mark, error) {
	p := &dbsqlc.KnownAddressesMatchParams{TenantID: tenant}
	marks := make([][]lookalike.Mark, len(calls))
	seen := make(map[string]bool)
	for _, n := range inTurn(calls) {
		if len(seen) > maxKeys {
			break
		}
		for _, key := range n.Keys() {
			if !seen[key] {
				seen[key] = true
				p.Keys = append(p.Keys, key)
			}
		}
		email, domain := n.Plain()
		for _, c := range []contact.Contact{{Kind: contact.Email, Value: email}, {Kind: contact.Domain, Value: domain}} {
			if c.Value != "" {
				p.Kinds, p.Values = append(p.Kinds, string(c.Kind)), append(p.Values, c.Value)
			}
		}
	}
	if len(p.Keys) == 0 {
		return marks, nil
	}
	rows, err := dbsqlc.New().KnownAddressesMatch(ctx, tx, p)
	if err != nil {
		return nil, err
	}
	x := make(index)
	for _, r := range rows {
		switch r.Kind {
		case "blocked":
			x[blockedKey+r.Name] = []lookalike.Known{{Name: r.Name, Blocked: true}}
		case "person":
			x.add(r.Name)
		default:
			x[r.Key] = append(x[r.Key], lookalike.Known{Name: r.Name})
		}
	}
	for _, s := range sources {
		x.config(s.Config)
	}
	for i, n := range inTurn(calls) {
		if m, is := lookalike.Check(n, x.near(n)); is {
			marks[i] = append(marks[i], m)
		}
	}
	return marks, nil
}

// inTurn yields the first name of each call with the call's index, then the second of
// each, and so on, up to maxNames.
func inTurn(calls [][]lookalike.Name) iter.Seq2[int, lookalike.Name] {
	return func(yield func(int, lookalike.Name) bool) {
		left := maxNames
		for place, found := 0, true; found; place++ {
			found = false
			for i, names := range calls {
				if place >= len(names) {
					continue
				}
				if found, left = true, left-1; left < 0 || !yield(i, names[place]) {
					return
				}
			}
		}
	}
}

// blockedKey begins the keys of entries of the do-not-contact list.
const blockedKey = "!"

// index holds known names by their keys.
type index map[string][]lookalike.Known

// add adds the address of a person.
func (x index) add(address string) {
	text, _ := json.Marshal(address) // strings always can
	x.config(text)
}

// config adds the names in the configuration of a source.
func (x index) config(config json.RawMessage) {
	for _, n := range lookalike.Names(config) {
		for name, keys := range n.Stored() {
			for _, key := range keys {
				x[key] = append(x[key], lookalike.Known{Name: name})
			}
		}
	}
}

// near returns the known names that a name may be taken for, the blocked ones first.
func (x index) near(n lookalike.Name) []lookalike.Known {
	email, domain := n.Plain()
	found := slices.Concat(x[blockedKey+email], x[blockedKey+domain])
	for _, key := range n.Keys() {
		for _, k := range x[key] {
			if !slices.Contains(found, k) {
				found = append(found, k)
			}
		}
	}
	return found
}
