package settings

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

// ExportPolicy returns the policy of a tenant, every section of it.
// ApplyPolicy of it changes nothing.
func Export(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (Document, error) {
	modes, err := Modes(ctx, tx, tenant)
	if err != nil {
		return Document{}, fmt.Errorf("modes: %w", err)
	}
	rules, err := Rules(ctx, tx, tenant)
	if err != nil {
		return Document{}, fmt.Errorf("rules: %w", err)
	}
	preferences, err := Preferences(ctx, tx, tenant)
	if err != nil {
		return Document{}, fmt.Errorf("preferences: %w", err)
	}
	reviews, err := Reviews(ctx, tx, tenant)
	if err != nil {
		return Document{}, fmt.Errorf("reviews: %w", err)
	}
	return Document{
		Modes: new(each(&modes, func(m Mode) ModeEntry { return ModeEntry{m.Automation, m.Pattern, m.Mode} })),
		Rules: new(each(&rules, func(r Rule) RuleEntry {
			return RuleEntry{r.ID, r.Automation, r.Pattern, r.Expression, r.Mode, r.Reason, &r.Enabled}.settled()
		})),
		Preferences: new(each(&preferences, func(p Preference) PreferenceEntry { return PreferenceEntry{p.Employee, p.Pattern} })),
		Reviews: new(each(&reviews, func(r ReviewRule) ReviewEntry {
			return ReviewEntry{r.Pattern, r.Risk, r.Approvals, (*envelope.Duration)(r.Wait), (*envelope.Duration)(r.Warn), (*envelope.Duration)(r.Escalate)}
		})),
	}, nil
}

// ApplyPolicy makes a tenant's policy what the document says, all of it or
// nothing, with one event that tells of it, and returns what changed in the
// order of the sections. With dry it says what would change, and changes
// nothing. It waits for the changes that others are making.
func (c *Cache) Apply(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, doc Document, by string, dry bool) ([]limits.Change, error) {
	if err := dbsqlc.New().TenantLock(ctx, tx, uuid.UUID(tenant)); err != nil {
		return nil, err
	}
	snap, err := c.Current(ctx, tx, tenant)
	if err != nil {
		return nil, err
	}
	if err := snap.CheckDocument(doc); err != nil {
		return nil, err
	}
	was, err := Export(ctx, tx, tenant)
	if err != nil {
		return nil, err
	}
	var changes []limits.Change
	for _, apply := range []func() ([]limits.Change, error){
		func() ([]limits.Change, error) {
			return applySection(sectionModes, *was.Modes, each(doc.Modes, same), dry,
				func(e ModeEntry) error {
					return PutMode(ctx, tx, tenant, e.Automation, e.Key, envelope.Mode(e.Mode), by)
				},
				func(e ModeEntry) error { return DeleteMode(ctx, tx, tenant, e.Automation, e.Key) })
		},
		func() ([]limits.Change, error) {
			return applySection(sectionRules, *was.Rules, each(doc.Rules, RuleEntry.settled), dry,
				func(e RuleEntry) error { return PutRule(ctx, tx, snap, e.rule(), by) },
				func(e RuleEntry) error { return DeleteRule(ctx, tx, tenant, e.ID) })
		},
		func() ([]limits.Change, error) {
			return applySection(sectionPreferences, *was.Preferences, each(doc.Preferences, same), dry,
				func(e PreferenceEntry) error { return PutPreference(ctx, tx, tenant, e.preference(), by) },
				func(e PreferenceEntry) error { return DeletePreference(ctx, tx, tenant, e.Employee, e.Key) })
		},
		func() ([]limits.Change, error) {
			return applySection(sectionReviews, *was.Reviews, each(doc.Reviews, ReviewEntry.settled), dry,
				func(e ReviewEntry) error { return PutReview(ctx, tx, tenant, e.review(), by) },
				func(e ReviewEntry) error { return DeleteReview(ctx, tx, tenant, e.Key, e.Risk) })
		},
	} {
		made, err := apply()
		if err != nil {
			return nil, err
		}
		changes = append(changes, made...)
	}
	if dry {
		return changes, nil
	}
	return changes, tellOf(ctx, tx, tenant, by, changes)
}

// applySection makes a section what a document says: first it removes what is
// not in it any more, then it writes what is new or has changed. A section that
// is nil is left alone.
func applySection[E interface{ label() string }](section string, was, is []E, dry bool, put, remove func(E) error) ([]limits.Change, error) {
	if is == nil {
		return nil, nil
	}
	wanted, stored := make(map[string]bool, len(is)), make(map[string]E, len(was))
	for _, e := range is {
		wanted[e.label()] = true
	}
	var changes []limits.Change
	record := func(name string, was, is any, write func() error) error {
		c, err := limits.ChangeOf(section, name, was, is)
		if err != nil {
			return err
		}
		changes = append(changes, c)
		if dry || c.Kind == limits.Unchanged {
			return nil
		}
		return write()
	}
	for _, e := range was {
		stored[e.label()] = e
		if wanted[e.label()] {
			continue
		}
		if err := record(e.label(), e, nil, func() error { return remove(e) }); err != nil {
			return nil, err
		}
	}
	for _, e := range is {
		var before any
		if old, ok := stored[e.label()]; ok {
			before = old
		}
		if err := record(e.label(), before, e, func() error { return put(e) }); err != nil {
			return nil, err
		}
	}
	return changes, nil
}

// tellOf writes one event that tells who changed what.
func tellOf(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, by string, changes []limits.Change) error {
	var items []audit.Item
	for _, c := range changes {
		if c.Kind == limits.Unchanged {
			continue
		}
		it := audit.Item{Subject: "policy " + c.Section + " " + c.Name + " " + string(c.Kind), Detail: make(map[string]any)}
		if c.Was != nil {
			it.Detail["was"] = c.Was
		}
		if c.Is != nil {
			it.Detail["is"] = c.Is
		}
		items = append(items, it)
	}
	if len(items) == 0 {
		return nil
	}
	return audit.Write(ctx, tx, audit.Event{Tenant: tenant, Kind: audit.Configured, Actor: by, Items: items})
}
