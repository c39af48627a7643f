package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/decision"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/source/breaker"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// claimedBatch is a set of leased actions with what they are rechecked
// against, all as of the claim.
type claimedBatch struct {
	at       time.Time
	items    []outbox.Item
	settings map[envelope.TenantID]*settings.Settings
	// actions are what policy and the checks know of the items.
	actions []*decision.Action
	// openBreakers are the breakers that are not closed, anywhere in the
	// fleet. probes are the sources for which this worker makes the one call
	// that finds out whether the source is back.
	openBreakers map[breaker.Source]breaker.OpenBreaker
	probes       map[breaker.Source]bool
}

// claim leases a batch and reads, in the same transaction, what holds now:
// the tenants' settings, the do-not-contact lists, and the breakers.
func (p *Pipeline) claim(ctx context.Context, requests []outbox.ClaimRequest) (claimedBatch, error) {
	var c claimedBatch
	err := p.tx(ctx, func(tx pgx.Tx) error {
		var err error
		c = claimedBatch{settings: make(map[envelope.TenantID]*settings.Settings)}
		if c.items, err = outbox.Claim(ctx, tx, requests, p.cfg.Lease); err != nil || len(c.items) == 0 {
			return err
		}
		broken, err := p.readSettings(ctx, tx, &c)
		if err != nil {
			return err
		}
		c.actions = make([]*decision.Action, len(c.items))
		for i := range c.items {
			c.actions[i] = actionOf(&c.items[i], c.settings[c.items[i].Tenant])
		}
		if err := decision.FindRecipients(ctx, tx, c.actions); err != nil {
			return err
		}
		return p.readBreakers(ctx, tx, &c, broken)
	})
	if err != nil {
		return claimedBatch{}, err
	}
	c.at = time.Now()
	p.inFlight.add(c.items, c.at)
	return c, nil
}

// readSettings reads the settings of the tenants of the batch. It returns the
// tenants that have a breaker which is not closed.
func (p *Pipeline) readSettings(ctx context.Context, tx pgx.Tx, c *claimedBatch) (broken []envelope.TenantID, err error) {
	var tenants []envelope.TenantID
	for i := range c.items {
		if t := c.items[i].Tenant; c.settings[t] == nil {
			c.settings[t] = &settings.Settings{}
			tenants = append(tenants, t)
		}
	}
	states, err := settings.States(ctx, tx, tenants)
	if err != nil {
		return nil, err
	}
	for _, t := range tenants {
		if c.settings[t], err = p.catalog.At(ctx, tx, t, states[t].Version); err != nil {
			return nil, fmt.Errorf("settings of tenant %s: %w", t, err)
		}
		if states[t].BreakerOpen {
			broken = append(broken, t)
		}
	}
	return broken, nil
}

// probeTimeout is the time after which another worker may probe a source, if
// the worker that was to probe it has not reported.
const probeTimeout = time.Minute

// readBreakers reads the breakers of tenants, and acquires the right to probe
// the sources whose breakers have been open for long enough.
func (p *Pipeline) readBreakers(ctx context.Context, tx pgx.Tx, c *claimedBatch, broken []envelope.TenantID) error {
	if len(broken) == 0 {
		return nil
	}
	breakers, err := breaker.NotClosed(ctx, tx, broken...)
	if err != nil {
		return fmt.Errorf("breakers: %w", err)
	}
	c.openBreakers = make(map[breaker.Source]breaker.OpenBreaker, len(breakers))
	for _, b := range breakers {
		c.openBreakers[b.Source] = b
	}
	due := make(map[breaker.Source]bool)
	var probe []breaker.Source
	for i := range c.items {
		it := &c.items[i]
		src := sourceOf(it)
		if b, ok := c.openBreakers[src]; ok && !b.Until.After(it.ClaimedAt) && !due[src] {
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
