package settings

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/tenant/document"
)

// storedDocument returns all sections of a tenant's policy.
func storedDocument(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (d Document, err error) {
	if d.Modes, err = Modes(ctx, tx, tenant); err != nil {
		return d, fmt.Errorf("modes: %w", err)
	}
	if d.Danger, err = Danger(ctx, tx, tenant); err != nil {
		return d, fmt.Errorf("danger: %w", err)
	}
	if d.Rules, err = Rules(ctx, tx, tenant); err != nil {
		return d, fmt.Errorf("rules: %w", err)
	}
	if d.Preferences, err = Preferences(ctx, tx, tenant, ""); err != nil {
		return d, fmt.Errorf("preferences: %w", err)
	}
	if d.Reviews, err = Reviews(ctx, tx, tenant); err != nil {
		return d, fmt.Errorf("reviews: %w", err)
	}
	return d, nil
}

// Export returns all sections of a tenant's policy, without last changes.
// Applying the result changes nothing.
func Export(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (Document, error) {
	d, err := storedDocument(ctx, tx, tenant)
	for i := range d.Modes {
		d.Modes[i].LastChange = LastChange{}
	}
	for i := range d.Rules {
		d.Rules[i].LastChange = LastChange{}
	}
	for i := range d.Preferences {
		d.Preferences[i].SetBy, d.Preferences[i].LastChange = uuid.Nil, LastChange{}
	}
	for i := range d.Reviews {
		d.Reviews[i].LastChange = LastChange{}
	}
	return d, err
}

// Apply replaces a tenant's policy by a document, atomically and with one event,
// and returns the changes in the order of the sections. With dry it changes
// nothing and returns the changes that it would make. It waits for concurrent
// changes.
func (c *Cache) Apply(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, doc Document, by envelope.Actor, dry bool) ([]document.Change, error) {
	if err := dbsqlc.New().TenantLock(ctx, tx, tenant); err != nil {
		return nil, err
	}
	snap, err := c.Current(ctx, tx, tenant)
	if err != nil {
		return nil, err
	}
	if err := snap.CheckDocument(doc); err != nil {
		return nil, err
	}
	stored, err := Export(ctx, tx, tenant)
	if err != nil {
		return nil, err
	}
	changes := document.Changes{Dry: dry}
	if err := snap.applyDocument(ctx, tx, &changes, stored, doc, by); err != nil {
		return nil, err
	}
	if items := changes.Items("policy "); len(items) > 0 {
		err = audit.Write(ctx, tx, audit.Event{Tenant: tenant, Kind: audit.Configured, Actor: by, Items: items})
	}
	return changes.List, err
}

// applyDocument replaces the stored policy by a document.
func (s *Settings) applyDocument(ctx context.Context, tx pgx.Tx, c *document.Changes, stored, doc Document, by envelope.Actor) error {
	modes := document.Section[Mode]{
		Name: sectionModes, Noun: nounMode, Key: Mode.label,
		Put: func(m Mode) error {
			return PutMode(ctx, tx, s.Tenant, m.Automation, m.Pattern, envelope.Mode(m.Mode), by)
		},
		Remove: func(m Mode) error { return DeleteMode(ctx, tx, s.Tenant, m.Automation, m.Pattern) },
	}
	rules := document.Section[Rule]{
		Name: sectionRules, Noun: nounRule, Key: Rule.label,
		Put:    func(r Rule) error { return PutRule(ctx, tx, s, r, by) },
		Remove: func(r Rule) error { return DeleteRule(ctx, tx, s.Tenant, r.ID) },
	}
	preferences := document.Section[Preference]{
		Name: sectionPreferences, Noun: nounPreference, Key: Preference.label,
		Put:    func(p Preference) error { return PutPreference(ctx, tx, s.Tenant, p, by) },
		Remove: func(p Preference) error { return DeletePreference(ctx, tx, s.Tenant, p.Employee, p.Pattern) },
	}
	reviews := document.Section[ReviewRule]{
		Name: sectionReviews, Noun: nounReview, Key: ReviewRule.label,
		Prepare: func(r ReviewRule) (ReviewRule, error) { return r.settled(), nil },
		Put:     func(r ReviewRule) error { return PutReview(ctx, tx, s.Tenant, r, by) },
		Remove:  func(r ReviewRule) error { return DeleteReview(ctx, tx, s.Tenant, r.Pattern, r.Risk) },
	}
	if err := apply(c, modes, stored.Modes, doc.Modes); err != nil {
		return err
	}
	if err := s.applyDanger(ctx, tx, c, stored.Danger, doc.Danger); err != nil {
		return err
	}
	if err := apply(c, rules, stored.Rules, doc.Rules); err != nil {
		return err
	}
	if err := apply(c, preferences, stored.Preferences, doc.Preferences); err != nil {
		return err
	}
	return apply(c, reviews, stored.Reviews, doc.Reviews)
}

// applyDanger sets the mode of danger if the document has one.
func (s *Settings) applyDanger(ctx context.Context, tx pgx.Tx, c *document.Changes, stored, wanted envelope.Mode) error {
	if wanted == "" {
		return nil
	}
	type entry struct {
		Mode envelope.Mode `json:"mode"`
	}
	return c.Record(sectionDanger, sectionDanger, "", entry{stored}, entry{wanted}, func() error { return PutDanger(ctx, tx, s.Tenant, wanted) })
}

func apply[E any](c *document.Changes, s document.Section[E], stored, wanted []E) error {
	s.Store(stored)
	return s.Apply(c, wanted)
}
