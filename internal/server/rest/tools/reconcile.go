package tools

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/reconcile"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// reconcileRules is the collection of reconcile rules, by tool.
var reconcileRules = request.Collection[wire.ReconcileRule]{
	Name: "reconcile-rules", Noun: "reconcile rule",
	Read: func(ctx context.Context, tx pgx.Tx, c *request.Call) ([]wire.ReconcileRule, error) {
		all, err := reconcile.List(ctx, tx, c.By.Tenant, c.Tool())
		all = slices.DeleteFunc(all, func(r reconcile.ToolRule) bool { return c.By.Tools != nil && !policy.Covers(c.By.Tools, r.Key) })
		return request.Map(all, func(r reconcile.ToolRule) wire.ReconcileRule {
			return wire.ReconcileRule{
				Tool: r.Key.String(), Read: r.Key.Source + ":" + r.Rule.Tool, Args: r.Rule.Args, Happened: r.Rule.Happened, Resend: r.Rule.Resend,
			}
		}), err
	},
	Key:  func(r wire.ReconcileRule) string { return r.Tool },
	ETag: func(r *wire.ReconcileRule) *string { return &r.ETag },
}

// readOf returns the name of the tool that reads around, or after, the calls
// of another tool. Both are of one source.
func readOf(text string, of policy.Key) (string, error) {
	key, err := policy.ParseKey(text)
	if err != nil || key.Source != of.Source {
		return "", request.Invalid("/read", envelope.RuleFormat, "must be a tool of the source "+of.Source+", as source:name")
	}
	return key.Action, nil
}

// ReconcileRules handles GET /api/v1/reconcile-rules. It lists the rules by
// which unknown outcomes are reconciled.
func ReconcileRules(c *request.Call) error { return reconcileRules.List(c) }

// PutReconcileRule handles PUT /api/v1/tools/{tool}/reconcile-rule. It sets the
// reconcile rule of a tool.
func PutReconcileRule(c *request.Call, body wire.ReconcileRule, key policy.Key) error {
	read, err := readOf(body.Read, key)
	if err != nil {
		return err
	}
	return reconcileRules.Put(c, key.String(), "tool "+key.String()+" reconciled by "+read, func(ctx context.Context, tx pgx.Tx) error {
		snap, err := c.Catalog.Current(ctx, tx, c.By.Tenant)
		if err != nil {
			return err
		}
		rule := reconcile.Rule{Tool: read, Args: body.Args, Happened: body.Happened, Resend: body.Resend}
		return request.Moved("/tool", "/read", reconcile.Put(ctx, tx, snap, key, &rule))
	})
}

// DeleteReconcileRule handles DELETE /api/v1/tools/{tool}/reconcile-rule. It
// deletes the reconcile rule of a tool.
func DeleteReconcileRule(c *request.Call, key policy.Key) error {
	return reconcileRules.Delete(c, key.String(), "tool "+key.String()+" without a reconcile rule", func(ctx context.Context, tx pgx.Tx) error {
		if err := reconcileRules.Require(ctx, tx, c, key.String()); err != nil {
			return err
		}
		snap, err := c.Catalog.Current(ctx, tx, c.By.Tenant)
		if err != nil {
			return err
		}
		return reconcile.Put(ctx, tx, snap, key, nil)
	})
}
