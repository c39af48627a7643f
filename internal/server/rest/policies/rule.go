package policies

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// rules is the collection of rules about arguments.
var rules = request.Collection[wire.Rule]{
	Name: "rules", Noun: "rule",
	Read: func(ctx context.Context, tx pgx.Tx, c *request.Call) ([]wire.Rule, error) {
		all, err := settings.Rules(ctx, tx, c.By.Tenant, c.Named("id")...)
		return request.Map(all, func(r settings.Rule) wire.Rule {
			return wire.Rule{
				ID: r.ID, Automation: r.Automation, Tool: r.Pattern, Expression: r.Expression, Mode: envelope.Mode(r.Mode), Reason: r.Reason,
				Enabled: r.Enabled, Change: r.LastChange,
			}
		}), err
	},
	Key:  func(r wire.Rule) string { return r.ID },
	ETag: func(r *wire.Rule) *string { return &r.ETag },
}

// Rules handles GET /api/v1/policy/rules. It lists the rules.
func Rules(c *request.Call) error { return rules.List(c) }

// PutRule handles PUT /api/v1/policy/rules/{id}. It sets a rule.
func PutRule(c *request.Call) error {
	in := wire.Rule{Enabled: true}
	if err := c.Decode(&in); err != nil {
		return err
	}
	r := settings.Rule{
		ID: c.R.PathValue("id"), Automation: in.Automation, Pattern: in.Tool, Expression: in.Expression, Mode: string(in.Mode),
		Reason: in.Reason, Enabled: in.Enabled,
	}
	c.Detail = map[string]any{
		"automation_id": r.Automation, "tool": r.Pattern, "expression": r.Expression, "mode": r.Mode, "reason": r.Reason, "enabled": r.Enabled,
	}
	if err := c.CheckTools(r.Pattern); err != nil {
		return err
	}
	return rules.Put(c, r.ID, "policy rule "+r.ID+" set", func(ctx context.Context, tx pgx.Tx) error {
		snap, err := c.Catalog.Current(ctx, tx, c.By.Tenant)
		if err != nil {
			return err
		}
		return settings.PutRule(ctx, tx, snap, r, c.By.Actor())
	})
}

// DeleteRule handles DELETE /api/v1/policy/rules/{id}. It deletes a rule.
func DeleteRule(c *request.Call) error {
	id := c.R.PathValue("id")
	return rules.Delete(c, id, "policy rule "+id+" removed", func(ctx context.Context, tx pgx.Tx) error {
		return settings.DeleteRule(ctx, tx, c.By.Tenant, id)
	})
}
