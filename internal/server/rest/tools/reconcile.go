package tools

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/action/reconcile"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// toolRule is the reconcile rule of one tool.
type toolRule struct {
	Source string          `json:"source"`
	Name   string          `json:"name"`
	Rule   *reconcile.Rule `json:"rule"`
}

// GET /api/v1/reconcile-rules lists the rules by which unknown outcomes are
// reconciled.
func ReconcileRules(c *request.Call) error {
	var settings []reconcile.ToolRule
	err := c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		var err error
		settings, err = reconcile.List(ctx, tx, c.By.Tenant)
		return err
	})
	if err != nil {
		return err
	}
	shown := make([]toolRule, len(settings))
	for i, set := range settings {
		shown[i] = toolRule{Source: set.Key.Source, Name: set.Key.Action, Rule: &set.Rule}
	}
	return request.Items(c, shown)
}

// PUT /api/v1/reconcile-rules sets or deletes the reconcile rule of a tool.
func PutReconcileRule(c *request.Call) error {
	var body toolRule
	if err := c.Decode(&body); err != nil {
		return err
	}
	key := policy.Key{Source: body.Source, Action: body.Name}
	what := "tool " + key.String() + " without a reconcile rule"
	if body.Rule != nil {
		what = "tool " + key.String() + " reconciled by " + body.Rule.Tool
	}
	return c.Configure(what, func(ctx context.Context, tx pgx.Tx) error {
		snap, err := c.Catalog.Current(ctx, tx, c.By.Tenant)
		if err != nil {
			return err
		}
		return request.Below("/rule", reconcile.Put(ctx, tx, snap, key, body.Rule))
	})
}
