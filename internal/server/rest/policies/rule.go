package policies

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// rule is a rule with its entity tag.
type rule struct {
	settings.Rule
	ETag string `json:"etag"`
}

// GET /api/v1/policy/rules lists the rules.
func Rules(c *request.Call) error {
	return request.List(c, func(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) ([]rule, error) {
		rules, err := settings.Rules(ctx, tx, tenant)
		shown := make([]rule, len(rules))
		for i, r := range rules {
			shown[i].Rule = r
			if err == nil {
				shown[i].ETag, err = request.ETagOf(r)
			}
		}
		return shown, err
	})
}

// currentRule returns a function that reads the rule in the path; nil if there
// is none.
func currentRule(c *request.Call) func(context.Context, pgx.Tx) (any, error) {
	return func(ctx context.Context, tx pgx.Tx) (any, error) {
		rules, err := settings.Rules(ctx, tx, c.By.Tenant)
		for _, r := range rules {
			if r.ID == c.R.PathValue("id") {
				return r, err
			}
		}
		return nil, err
	}
}

// PUT /api/v1/policy/rules/{id} sets a rule.
func PutRule(c *request.Call) error {
	var r settings.Rule
	if err := c.Decode(&r); err != nil {
		return err
	}
	r.ID = c.R.PathValue("id")
	c.Detail = map[string]any{
		"automation_id": r.Automation, "tool": r.Pattern, "expression": r.Expression, "mode": r.Mode, "reason": r.Reason, "enabled": r.Enabled,
	}
	return c.Configure("policy rule "+r.ID+" set", func(ctx context.Context, tx pgx.Tx) error {
		if err := c.CheckMatch(ctx, tx, currentRule(c)); err != nil {
			return err
		}
		snap, err := c.Catalog.Current(ctx, tx, c.By.Tenant)
		if err != nil {
			return err
		}
		return settings.PutRule(ctx, tx, snap, r, c.By.Name)
	})
}

// DELETE /api/v1/policy/rules/{id} deletes a rule.
func DeleteRule(c *request.Call) error {
	id := c.R.PathValue("id")
	return c.Configure("policy rule "+id+" removed", func(ctx context.Context, tx pgx.Tx) error {
		if err := c.CheckMatch(ctx, tx, currentRule(c)); err != nil {
			return err
		}
		return settings.DeleteRule(ctx, tx, c.By.Tenant, id)
	})
}
