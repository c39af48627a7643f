package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/preflight"
	"github.com/countersign-dev/countersign/internal/source/breaker"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// claimed is a batch with what it is judged by, all as of the claim.
type claimedBatch struct {
	at    time.Time
	items []outbox.Item
	snaps map[envelope.TenantID]*settings.Settings
	// contacts are whom an item addresses, and matches the entries of the
	// do-not-contact list among them, by the place of the item. Both are empty
	// for tenants whose limits do not ask.
	contacts map[int][]preflight.Contact
	matches  map[int]preflight.Match
	// alone are the sources that the fleet leaves alone, and probes those for
	// which this worker makes the one call that shows whether they are well.
	openBreakers map[breaker.Source]breaker.Standing
	probes       map[breaker.Source]bool
}

// claim leases a batch and reads, in the same transaction, what holds now:
// the versions of policy, catalog and limits, who must not be contacted, and
// which sources are left alone.
func (p *Pipeline) claim(ctx context.Context, wants []outbox.ClaimRequest) (claimedBatch, error) {
	var c claimedBatch
	err := p.tx(ctx, func(tx pgx.Tx) error {
		var err error
		c = claimedBatch{snaps: make(map[envelope.TenantID]*settings.Settings)}
		if c.items, err = outbox.Claim(ctx, tx, wants, p.cfg.Lease); err != nil || len(c.items) == 0 {
			return err
		}
		ailing, err := p.readSnapshots(ctx, tx, &c)
		if err != nil {
			return err
		}
		if err := c.readMatches(ctx, tx); err != nil {
			return err
		}
		return p.readBreakers(ctx, tx, &c, ailing)
	})
	if err != nil {
		return claimedBatch{}, err
	}
	c.at = time.Now()
	p.inFlight.add(c.items, c.at)
	return c, nil
}

// readSnapshots reads what the tenants of the batch have set up. It returns
// those with a source that may have to be left alone.
func (p *Pipeline) readSnapshots(ctx context.Context, tx pgx.Tx, c *claimedBatch) (ailing []envelope.TenantID, err error) {
	var tenants []envelope.TenantID
	for i := range c.items {
		if t := c.items[i].Tenant; c.snaps[t] == nil {
			c.snaps[t] = &settings.Settings{}
			tenants = append(tenants, t)
		}
	}
	states, err := settings.States(ctx, tx, tenants)
	if err != nil {
		return nil, err
	}
	for _, t := range tenants {
		if c.snaps[t], err = p.catalog.At(ctx, tx, t, states[t].Version); err != nil {
			return nil, fmt.Errorf("catalog of tenant %s: %w", t, err)
		}
		if states[t].Ailing {
			ailing = append(ailing, t)
		}
	}
	return ailing, nil
}

// readMatches finds whom the items address, where that matters, and asks the
// do-not-contact lists about all of them at once.
func (c *claimedBatch) readMatches(ctx context.Context, tx pgx.Tx) error {
	var asks []limits.Ask
	var places []int
	for i := range c.items {
		it := &c.items[i]
		snap := c.snaps[it.Tenant]
		if !snap.Limits.NeedsRecipients() {
			continue
		}
		contacts, readable := snap.Contacts(key(it), it.Args)
		if !readable && snap.Limits.HasDoNotContact() {
			c.addMatch(i, preflight.Match{Kind: preflight.ContactHandle, Reason: "more recipients than can be checked"})
		}
		if len(contacts) == 0 {
			continue
		}
		if c.contacts == nil {
			c.contacts = make(map[int][]preflight.Contact)
		}
		c.contacts[i] = contacts
		if snap.Limits.HasDoNotContact() {
			asks, places = append(asks, limits.Ask{Tenant: it.Tenant, Contacts: contacts}), append(places, i)
		}
	}
	if len(asks) == 0 {
		return nil
	}
	matches, err := limits.Matches(ctx, tx, asks)
	if err != nil {
		return fmt.Errorf("do-not-contact: %w", err)
	}
	for _, m := range matches {
		c.addMatch(places[m.Ask], preflight.Match{Kind: m.Kind, Reason: m.Reason})
	}
	return nil
}

func (c *claimedBatch) addMatch(i int, m preflight.Match) {
	if c.matches == nil {
		c.matches = make(map[int]preflight.Match)
	}
	c.matches[i] = m
}

// probeLapse is after which time a worker that makes a probe counts as gone.
const probeTimeout = time.Minute

// readCircuits reads which sources are left alone, and asks for the right to
// probe those whose time is over.
func (p *Pipeline) readBreakers(ctx context.Context, tx pgx.Tx, c *claimedBatch, ailing []envelope.TenantID) error {
	if len(ailing) == 0 {
		return nil
	}
	standing, err := breaker.Of(ctx, tx, ailing...)
	if err != nil {
		return fmt.Errorf("breakers: %w", err)
	}
	c.openBreakers = make(map[breaker.Source]breaker.Standing, len(standing))
	for _, s := range standing {
		c.openBreakers[s.Source] = s
	}
	due := make(map[breaker.Source]bool)
	var probe []breaker.Source
	for i := range c.items {
		it := &c.items[i]
		src := breaker.Source{Tenant: it.Tenant, ID: it.Source}
		if s, ok := c.openBreakers[src]; ok && !s.Until.After(it.ClaimedAt) && !due[src] {
			due[src] = true
			probe = append(probe, src)
		}
	}
	if len(probe) == 0 {
		return nil
	}
	c.probes, err = breaker.Probe(ctx, tx, probe, p.cfg.ID, probeTimeout)
	return err
}
