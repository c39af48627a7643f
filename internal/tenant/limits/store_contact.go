package limits

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/preflight"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// Tally counts what became of entries.
type Tally struct {
	Added   int `json:"added"`
	Changed int `json:"changed"`
	Removed int `json:"removed"`
}

// PutEntries adds entries to a tenant's do-not-contact list, up to MaxEntries,
// or changes them where it has them already. Of two for the same contact the
// last holds. If one is wrong, none is stored; the error's pointers begin with
// /entries and the place of the entry. The event that tells of it counts the
// entries by kind and names none.
func PutEntries(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, entries []Entry, by string) (Tally, error) {
	contacts, err := readEntries(ctx, tx, tenant, entries)
	if err != nil || len(contacts) == 0 {
		return Tally{}, err
	}
	last := make(map[preflight.Contact]int, len(contacts))
	for i, c := range contacts {
		last[c] = i
	}
	p := &dbsqlc.DoNotContactUpsertManyParams{TenantID: uuid.UUID(tenant), CreatedBy: by}
	for i, c := range contacts {
		if last[c] != i {
			continue
		}
		e := entries[i]
		var expires time.Time
		if e.ExpiresAt != nil {
			expires = *e.ExpiresAt
		}
		p.Kinds, p.Values, p.Bares = append(p.Kinds, string(c.Kind)), append(p.Values, c.Value), append(p.Bares, bare(c))
		p.Reasons, p.Sources, p.ExpireAts = append(p.Reasons, e.Reason), append(p.Sources, e.Source), append(p.ExpireAts, expires)
	}
	rows, err := dbsqlc.New().DoNotContactUpsertMany(ctx, tx, p)
	err = violations.Fault(err)
	if err != nil {
		return Tally{}, err
	}
	var t Tally
	kinds := make(map[string]int)
	for _, r := range rows {
		kinds[r.Kind]++
		if r.Added {
			t.Added++
		} else {
			t.Changed++
		}
	}
	return t, noteEntries(ctx, tx, tenant, by, t, kinds)
}

// DeleteEntries takes entries off a tenant's do-not-contact list, up to
// MaxEntries. Only kind and value count. Those that are not on it are passed
// over.
func DeleteEntries(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, entries []Entry, by string) (Tally, error) {
	contacts, err := readEntries(ctx, tx, tenant, entries)
	if err != nil || len(contacts) == 0 {
		return Tally{}, err
	}
	p := &dbsqlc.DoNotContactDeleteManyParams{TenantID: uuid.UUID(tenant)}
	for _, c := range contacts {
		p.Kinds, p.Values = append(p.Kinds, string(c.Kind)), append(p.Values, c.Value)
	}
	rows, err := dbsqlc.New().DoNotContactDeleteMany(ctx, tx, p)
	if err != nil {
		return Tally{}, err
	}
	kinds := make(map[string]int)
	for _, r := range rows {
		kinds[r.Kind]++
	}
	t := Tally{Removed: len(rows)}
	return t, noteEntries(ctx, tx, tenant, by, t, kinds)
}

// readEntries reads entries as the tenant's settings say, or says which are
// wrong.
func readEntries(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, entries []Entry) ([]preflight.Contact, error) {
	if len(entries) > MaxEntries {
		return nil, invalid("/entries", envelope.RuleMaxItems, "must have at most %d items", MaxEntries)
	}
	settings, err := TenantOf(ctx, tx, tenant)
	if err != nil {
		return nil, err
	}
	var p problems
	contacts := make([]preflight.Contact, len(entries))
	for i, e := range entries {
		c, err := e.contact(settings)
		contacts[i] = c
		if err := p.below(fmt.Sprintf("/entries/%d", i), err); err != nil {
			return nil, err
		}
	}
	return contacts, p.err()
}

func noteEntries(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, by string, t Tally, kinds map[string]int) error {
	if t == (Tally{}) {
		return nil
	}
	return note(ctx, tx, tenant, by, audit.Item{
		Subject: "do-not-contact list changed",
		Detail:  map[string]any{"added": t.Added, "changed": t.Changed, "removed": t.Removed, "kinds": kinds},
	})
}

// EntryFilter narrows a list of entries; its zero fields do not.
type EntryFilter struct {
	Kind preflight.ContactKind
	// Prefix is what the values begin with, in any case.
	Prefix string
	// Expired takes in entries that no longer count.
	Expired bool
	// AfterKind and AfterValue are those of the last of the page before.
	AfterKind  preflight.ContactKind
	AfterValue string
	Most       int
}

// Entries returns a page of a tenant's do-not-contact list, in order of kind
// and value.
func Entries(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, f EntryFilter) ([]Entry, error) {
	rows, err := dbsqlc.New().DoNotContactList(ctx, tx, &dbsqlc.DoNotContactListParams{
		TenantID: uuid.UUID(tenant), Kind: string(f.Kind), Prefix: strings.ToLower(f.Prefix), Expired: f.Expired,
		AfterKind: string(f.AfterKind), AfterValue: f.AfterValue, Most: int64(f.Most),
	})
	if err != nil {
		return nil, err
	}
	all := make([]Entry, len(rows))
	for i, r := range rows {
		all[i] = Entry{
			Kind: preflight.ContactKind(r.Kind), Value: r.Value, Reason: r.Reason, Source: r.Source, ExpiresAt: inUTC(r.ExpiresAt),
			CreatedAt: r.CreatedAt.UTC(), CreatedBy: r.CreatedBy,
		}
	}
	return all, nil
}
