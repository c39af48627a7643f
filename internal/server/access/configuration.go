package access

import (
	"context"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/reconcile"
	"github.com/countersign-dev/countersign/internal/action/subscription"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/pause"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// Configuration is the part of a tenant's configuration that decides whether,
// when and how often actions run, without the do-not-contact list.
type Configuration struct {
	Policy        settings.Document
	Sessions      []settings.SessionMode
	Grants        []settings.Grant
	Limits        limits.Document
	Sources       []catalog.Source
	Tools         []*catalog.Tool
	Snapshots     map[policy.Key]catalog.SnapshotRule
	Reconciles    []reconcile.ToolRule
	Subscriptions []subscription.Subscription
	Pauses        []wire.Pause
}

// ReadConfiguration reads the current configuration of a tenant in the
// transaction.
func ReadConfiguration(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (Configuration, error) {
	var c Configuration
	for _, part := range []struct {
		name string
		read func() error
	}{
		{"policy", func() (err error) {
			if c.Policy, err = settings.Export(ctx, tx, tenant); err == nil {
				c.Policy.Preferences, err = settings.Preferences(ctx, tx, tenant, "") // with who set them
			}
			return err
		}},
		{"session modes", func() (err error) { c.Sessions, err = settings.SessionModes(ctx, tx, tenant, ""); return err }},
		{"grants", func() (err error) {
			c.Grants, err = settings.Grants(ctx, tx, tenant, settings.GrantFilter{Most: settings.MaxGrants})
			return err
		}},
		{"limits", func() (err error) { c.Limits, err = limits.Export(ctx, tx, tenant); return err }},
		{"catalog", func() error {
			all, err := catalog.Load(ctx, tx, tenant)
			if err != nil {
				return err
			}
			c.Sources, c.Tools = all.Sources(), all.Tools()
			c.Snapshots, err = catalog.SnapshotRules(ctx, tx, tenant, policy.Key{})
			return err
		}},
		{"reconcile rules", func() (err error) { c.Reconciles, err = reconcile.List(ctx, tx, tenant, policy.Key{}); return err }},
		{"subscriptions", func() (err error) {
			c.Subscriptions, err = subscription.List(ctx, tx, tenant)
			for i := range c.Subscriptions {
				c.Subscriptions[i].Behind = 0 // the lag, which is not a setting
			}
			return err
		}},
		{"pauses", func() (err error) {
			c.Pauses, err = pause.List(ctx, tx, tenant, pause.Filter{Active: true, Most: math.MaxInt32})
			return err
		}},
	} {
		if err := part.read(); err != nil {
			return c, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return c, nil
}
