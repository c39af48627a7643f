package tools

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// toolDescription is the description that people give a tool.
type toolDescription struct {
	Module, Entity, Action string
	SideEffects            *[]string         `json:"side_effects"`
	Reversal               *catalog.Reversal `json:"reversal"`
	Headline               string            `json:"headline"`
}

// Describe handles PUT /api/v1/tools/{tool}/description. It sets the names,
// side effects and reversal of a tool.
func Describe(c *request.Call, in toolDescription, key policy.Key) error {
	d := catalog.Description{
		Name: catalog.FullName{Module: in.Module, Entity: in.Entity, Action: in.Action}, SideEffects: in.SideEffects, Reversal: in.Reversal, Headline: in.Headline,
	}
	c.Detail = map[string]any{"module": request.NilIfZero(in.Module), "entity": request.NilIfZero(in.Entity), "action": request.NilIfZero(in.Action), "side_effects": in.SideEffects, "headline": request.NilIfZero(in.Headline)}
	if in.Reversal != nil {
		c.Detail["reversal"] = in.Reversal.Tool.String()
	}
	return setTool(c, key, "tool "+key.String()+" described", func(ctx context.Context, tx pgx.Tx) error {
		if err := checkReversal(ctx, tx, c, key, in.Reversal); err != nil {
			return err
		}
		return catalog.DescribeTool(ctx, tx, c.By.Tenant, key, d)
	})
}

// checkReversal rejects a reversal by a tool that does not exist, or by the
// tool itself.
func checkReversal(ctx context.Context, tx pgx.Tx, c *request.Call, of policy.Key, r *catalog.Reversal) error {
	if r == nil {
		return nil
	}
	if r.Tool == of {
		return request.Invalid("/reversal/tool", "other", "must be another tool than the one that it reverts")
	}
	snap, err := c.Catalog.Current(ctx, tx, c.By.Tenant)
	if err != nil {
		return err
	}
	if back, ok := snap.Tool(r.Tool); !ok || !back.Within(c.By.Tools) {
		return request.Invalid("/reversal/tool", envelope.RuleEnum, "must be an existing tool, as source:name; list the tools to see them")
	}
	return nil
}
