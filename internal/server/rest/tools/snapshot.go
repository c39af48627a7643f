package tools

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/action/snapshot"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// snapshotRules is the collection of snapshot rules, by tool.
var snapshotRules = request.Collection[wire.SnapshotRule]{
	Name: "snapshot-rules", Noun: "snapshot rule",
	Read: func(ctx context.Context, tx pgx.Tx, c *request.Call) ([]wire.SnapshotRule, error) {
		all, err := catalog.SnapshotRules(ctx, tx, c.By.Tenant, c.Tool())
		shown := make([]wire.SnapshotRule, 0, len(all))
		for key, r := range all {
			if c.By.Tools != nil && !policy.Covers(c.By.Tools, key) {
				continue
			}
			shown = append(shown, wire.SnapshotRule{Tool: key.String(), Read: key.Source + ":" + r.Tool, Args: r.Args, Required: r.Required})
		}
		return shown, err
	},
	Key:  func(r wire.SnapshotRule) string { return r.Tool },
	ETag: func(r *wire.SnapshotRule) *string { return &r.ETag },
}

// SnapshotRules handles GET /api/v1/snapshot-rules. It lists the rules for
// snapshots.
func SnapshotRules(c *request.Call) error { return snapshotRules.List(c) }

// PutSnapshotRule handles PUT /api/v1/tools/{tool}/snapshot-rule. It sets the
// snapshot rule of a tool.
func PutSnapshotRule(c *request.Call, body wire.SnapshotRule, key policy.Key) error {
	read, err := readOf(body.Read, key)
	if err != nil {
		return err
	}
	c.Detail = map[string]any{"tool": read, "required": body.Required}
	return snapshotRules.Put(c, key.String(), "snapshots of tool "+key.String()+" by "+read, func(ctx context.Context, tx pgx.Tx) error {
		snap, err := c.Catalog.Current(ctx, tx, c.By.Tenant)
		if err != nil {
			return err
		}
		if _, ok := snap.Tool(key); !ok {
			return catalog.ErrNoTool
		}
		rule := catalog.SnapshotRule{Tool: read, Args: body.Args, Required: body.Required}
		if err := snapshot.CheckRule(snap, key, rule); err != nil {
			return request.Moved("/tool", "/read", err)
		}
		return catalog.PutSnapshotRule(ctx, tx, c.By.Tenant, key, &rule)
	})
}

// DeleteSnapshotRule handles DELETE /api/v1/tools/{tool}/snapshot-rule. It
// deletes the snapshot rule of a tool.
func DeleteSnapshotRule(c *request.Call, key policy.Key) error {
	return snapshotRules.Delete(c, key.String(), "no snapshots of tool "+key.String(), func(ctx context.Context, tx pgx.Tx) error {
		return catalog.PutSnapshotRule(ctx, tx, c.By.Tenant, key, nil)
	})
}
