package tools

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/action/snapshot"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// snapshotRule is the snapshot rule of one tool.
type snapshotRule struct {
	Source   string                `json:"source"`
	Name     string                `json:"name"`
	Snapshot *catalog.SnapshotRule `json:"snapshot"`
}

// GET /api/v1/snapshot-rules lists the rules for snapshots.
func SnapshotRules(c *request.Call) error {
	var shots map[policy.Key]catalog.SnapshotRule
	err := c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		var err error
		shots, err = catalog.SnapshotRules(ctx, tx, c.By.Tenant)
		return err
	})
	if err != nil {
		return err
	}
	shown := make([]snapshotRule, 0, len(shots))
	for key, shot := range shots {
		shown = append(shown, snapshotRule{key.Source, key.Action, &shot})
	}
	slices.SortFunc(shown, func(a, b snapshotRule) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Name, b.Name))
	})
	return request.Items(c, shown)
}

// PUT /api/v1/snapshot-rules sets or deletes the snapshot rule of a tool.
func PutSnapshotRule(c *request.Call) error {
	var body snapshotRule
	if err := c.Decode(&body); err != nil {
		return err
	}
	key := policy.Key{Source: body.Source, Action: body.Name}
	what := "no snapshots of tool " + key.String()
	if body.Snapshot != nil {
		what = "snapshots of tool " + key.String() + " by " + body.Snapshot.Tool
		c.Detail = map[string]any{"tool": body.Snapshot.Tool, "required": body.Snapshot.Required}
	}
	return c.Configure(what, func(ctx context.Context, tx pgx.Tx) error {
		if body.Snapshot == nil {
			return catalog.PutSnapshotRule(ctx, tx, c.By.Tenant, key, nil)
		}
		snap, err := c.Catalog.Current(ctx, tx, c.By.Tenant)
		if err != nil {
			return err
		}
		if _, ok := snap.Tool(key); !ok {
			return fault.New(fault.NotFound, "no tool %s", key)
		}
		if err := snapshot.CheckRule(snap, key, *body.Snapshot); err != nil {
			return request.Below("/snapshot", err)
		}
		return catalog.PutSnapshotRule(ctx, tx, c.By.Tenant, key, body.Snapshot)
	})
}
