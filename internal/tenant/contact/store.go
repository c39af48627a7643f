package contact

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// PutEntries inserts or updates entries of a tenant's do-not-contact list, at
// most MaxEntries. Of several for the same contact the last one counts. If one
// is invalid, none is stored; the error's pointers begin with /entries and the
// index of the entry. The event counts the entries by kind, without their
// values.
func PutEntries(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, entries []Entry, by envelope.Actor) (wire.ContactCount, error) {
	contacts, err := readEntries(ctx, tx, tenant, entries)
	if err != nil || len(contacts) == 0 {
		return wire.ContactCount{}, err
	}
	last := make(map[Contact]int, len(contacts))
	for i, c := range contacts {
		last[c] = i
	}
	p := &dbsqlc.DoNotContactUpsertManyParams{TenantID: tenant, CreatedBy: string(by)}
	for i, c := range contacts {
		if last[c] != i {
			continue
		}
		e := entries[i]
		p.Kinds, p.Values, p.Bares = append(p.Kinds, string(c.Kind)), append(p.Values, c.Value), append(p.Bares, withoutPlus(c))
		p.Reasons, p.Sources, p.ExpireAts = append(p.Reasons, e.Reason), append(p.Sources, e.Source), append(p.ExpireAts, postgres.OrZero(e.ExpiresAt))
	}
	rows, err := dbsqlc.New().DoNotContactUpsertMany(ctx, tx, p)
	if err != nil {
		return wire.ContactCount{}, violations.Fault(err)
	}
	var t wire.ContactCount
	kinds := make(map[string]int)
	for _, r := range rows {
		kinds[r.Kind]++
		if r.Added {
			t.Added++
		} else {
			t.Changed++
		}
	}
	return t, recordEntries(ctx, tx, tenant, by, "", t, kinds)
}

// DeleteEntries deletes entries from a tenant's do-not-contact list, at most
// MaxEntries. Only kind and value are used. Missing entries are ignored. The
// note is the actor's reason, for the audit log.
func DeleteEntries(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, entries []Entry, note string, by envelope.Actor) (wire.ContactCount, error) {
	contacts, err := readEntries(ctx, tx, tenant, entries)
	if err != nil || len(contacts) == 0 {
		return wire.ContactCount{}, err
	}
	p := &dbsqlc.DoNotContactDeleteManyParams{TenantID: tenant}
	for _, c := range contacts {
		p.Kinds, p.Values = append(p.Kinds, string(c.Kind)), append(p.Values, c.Value)
	}
	rows, err := dbsqlc.New().DoNotContactDeleteMany(ctx, tx, p)
	if err != nil {
		return wire.ContactCount{}, err
	}
	kinds := make(map[string]int)
	for _, r := range rows {
		kinds[r.Kind]++
	}
	t := wire.ContactCount{Removed: len(rows)}
	return t, recordEntries(ctx, tx, tenant, by, note, t, kinds)
}

// Ends returns the expiry of those of the entries that are in effect, by
// contact; nil means never. Only kind and value are used. Invalid entries are
// ignored.
func Ends(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, entries []Entry) (map[Contact]*time.Time, error) {
	options, err := optionsOf(ctx, tx, tenant)
	if err != nil {
		return nil, err
	}
	p := &dbsqlc.DoNotContactEndsParams{TenantID: tenant}
	for _, e := range entries {
		if c, err := e.parse(options); err == nil {
			p.Kinds, p.Values = append(p.Kinds, string(c.Kind)), append(p.Values, c.Value)
		}
	}
	rows, err := dbsqlc.New().DoNotContactEnds(ctx, tx, p)
	ends := make(map[Contact]*time.Time, len(rows))
	for _, r := range rows {
		ends[Contact{Kind: Kind(r.Kind), Value: r.Value}] = r.ExpiresAt
	}
	return ends, err
}

// optionsOf returns the parsing options of a tenant.
func optionsOf(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (Options, error) {
	row, err := dbsqlc.New().TenantSettings(ctx, tx, tenant)
	return Options{Region: row.PhoneRegion, PlusAddressing: row.PlusAddressing}, postgres.Found(err, fault.New(fault.NotFound, "no tenant %s", tenant))
}

// readEntries parses entries by the tenant's options. The error lists the
// invalid ones.
func readEntries(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, entries []Entry) ([]Contact, error) {
	if len(entries) > MaxEntries {
		return nil, check.Invalid("/entries", envelope.RuleMaxItems, "must have at most %d items", MaxEntries)
	}
	options, err := optionsOf(ctx, tx, tenant)
	if err != nil {
		return nil, err
	}
	var p check.Problems
	contacts := make([]Contact, len(entries))
	for i, e := range entries {
		c, err := e.parse(options)
		contacts[i] = c
		if err := p.Below(fmt.Sprintf("/entries/%d", i), err); err != nil {
			return nil, err
		}
	}
	return contacts, p.Err()
}

func recordEntries(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, by envelope.Actor, note string, t wire.ContactCount, kinds map[string]int) error {
	if t == (wire.ContactCount{}) {
		return nil
	}
	return audit.Write(ctx, tx, audit.Event{Tenant: tenant, Kind: audit.Configured, Actor: by, Items: []audit.Item{{
		Subject: "do-not-contact list changed", Note: note,
		Detail: map[string]any{"added": t.Added, "changed": t.Changed, "removed": t.Removed, "kinds": kinds},
	}}})
}

// EntryFilter selects entries; zero fields match all.
type EntryFilter struct {
	Kind Kind
	// Prefix is the beginning of the values, in any case.
	Prefix string
	// Expired includes expired entries.
	Expired bool
	// AfterKind and AfterValue are those of the last entry of the previous page.
	AfterKind  Kind
	AfterValue string
	Most       int
}

// Entries returns a page of a tenant's do-not-contact list, ordered by kind and
// value.
func Entries(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, f EntryFilter) ([]Entry, error) {
	rows, err := dbsqlc.New().DoNotContactList(ctx, tx, &dbsqlc.DoNotContactListParams{
		TenantID: tenant, Kind: string(f.Kind), Prefix: strings.ToLower(f.Prefix), Expired: f.Expired,
		AfterKind: string(f.AfterKind), AfterValue: f.AfterValue, Most: int64(f.Most),
	})
	return postgres.Map(rows, err, func(r dbsqlc.DoNotContactListRow) Entry {
		return Entry{
			Kind: Kind(r.Kind), Value: r.Value, Reason: r.Reason, Source: r.Source, ExpiresAt: postgres.UTC(r.ExpiresAt),
			CreatedAt: r.CreatedAt.UTC(), CreatedBy: envelope.Actor(r.CreatedBy),
		}
	})
}

// Matches looks up a batch's recipients in the do-not-contact lists of their
// tenants, in one statement. Expired entries do not match. The result is
// unordered, and has several matches for an Ask that matches several entries.
func Matches(ctx context.Context, tx pgx.Tx, asks []Ask) ([]Found, error) {
	p := &dbsqlc.DoNotContactMatchParams{}
	for i, ask := range asks {
		for _, c := range ask.Contacts {
			p.Indexes = append(p.Indexes, int32(i))
			p.TenantIds = append(p.TenantIds, uuid.UUID(ask.Tenant))
			p.Kinds, p.Values, p.Bares = append(p.Kinds, string(c.Kind)), append(p.Values, c.Value), append(p.Bares, withoutPlus(c))
		}
	}
	if len(p.Indexes) == 0 {
		return nil, nil
	}
	rows, err := dbsqlc.New().DoNotContactMatch(ctx, tx, p)
	return postgres.Map(rows, err, func(r dbsqlc.DoNotContactMatchRow) Found {
		return Found{int(r.Index), Match{Kind(r.Kind), r.Reason}}
	})
}

// Check looks up all contacts that a text may mean in a tenant's do-not-contact
// list, as for the recipient of an action.
func Check(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, text string) (wire.ContactCheck, error) {
	result := wire.ContactCheck{Readings: []wire.ContactReading{}}
	options, err := optionsOf(ctx, tx, tenant)
	if err != nil {
		return result, err
	}
	var asks []Ask
	for _, c := range Recipients(text, options) {
		asks = append(asks, Ask{Tenant: tenant, Contacts: []Contact{c}})
		result.Readings = append(result.Readings, wire.ContactReading{Kind: string(c.Kind), Value: c.Value})
	}
	found, err := Matches(ctx, tx, asks)
	for _, f := range found {
		reading := &result.Readings[f.Ask]
		reading.Listed, reading.Reason = true, cmp.Or(reading.Reason, f.Reason)
		result.Listed = true
	}
	return result, err
}

// violations are the faults for constraints that a caller's input can violate.
var violations = postgres.Violations{
	"do_not_contact_tenant_id_fkey": fault.New(fault.NotFound, "no such tenant"),
	"do_not_contact_kind_check":     fault.New(fault.Invalid, "an entry's kind must be email, domain, phone or handle"),
}
