package tools

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/action/reconcile"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// verifyRule is the reconcile rule of one tool.
type verifyRule struct {
	Source string          `json:"source"`
	Name   string          `json:"name"`
	Verify *reconcile.Rule `json:"verify"`
}

// GET /api/v1/tools/verify lists the rules by which unknown outcomes are
// reconciled.
func ReconcileRules(c *request.Call) error {
	var settings []reconcile.Setting
	err := c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		var err error
		settings, err = reconcile.List(ctx, tx, c.By.Tenant)
		return err
	})
	if err != nil {
		return err
	}
	shown := make([]verifyRule, len(settings))
	for i, set := range settings {
		shown[i] = verifyRule{Source: set.Key.Source, Name: set.Key.Action, Verify: &set.Rule}
	}
	return request.Items(c, shown)
}

// PUT /api/v1/tools/verify sets or deletes the reconcile rule of a tool.
func PutReconcileRule(c *request.Call) error {
	var body verifyRule
	if err := c.Decode(&body); err != nil {
		return err
	}
	key := policy.Key{Source: body.Source, Action: body.Name}
	what := "tool " + key.String() + " not verified"
	if body.Verify != nil {
		what = "tool " + key.String() + " verified by " + body.Verify.Tool
	}
	return c.Configure(what, func(ctx context.Context, tx pgx.Tx) error {
		snap, err := c.Catalog.Current(ctx, tx, c.By.Tenant)
		if err != nil {
			return err
		}
		return request.Below("/verify", reconcile.Put(ctx, tx, snap, key, body.Verify))
	})
}
