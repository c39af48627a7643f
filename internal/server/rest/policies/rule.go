package policies

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// GET /api/v1/policy/rules lists the rules.
func Rules(c *request.Call) error { return request.List(c, settings.Rules) }

// PUT /api/v1/policy/rules/{id} sets a rule.
func PutRule(c *request.Call) error {
	rule := settings.Rule{Enabled: true}
	if err := c.Decode(&rule); err != nil {
		return err
	}
	rule.ID = c.R.PathValue("id")
	c.Detail = map[string]any{
		"automation": rule.Automation, "key": rule.Pattern, "expression": rule.Expression, "mode": rule.Mode, "reason": rule.Reason, "enabled": rule.Enabled,
	}
	return c.Configure("policy rule "+rule.ID+" set", func(ctx context.Context, tx pgx.Tx) error {
		snap, err := c.Catalog.Current(ctx, tx, c.By.Tenant)
		if err != nil {
			return err
		}
		return settings.PutRule(ctx, tx, snap, rule, c.By.Name)
	})
}

// DELETE /api/v1/policy/rules/{id} deletes a rule.
func DeleteRule(c *request.Call) error {
	id := c.R.PathValue("id")
	return c.Configure("policy rule "+id+" removed", func(ctx context.Context, tx pgx.Tx) error {
		return settings.DeleteRule(ctx, tx, c.By.Tenant, id)
	})
}
