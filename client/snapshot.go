package client

import (
	"context"
	"net/http"

	"github.com/countersign-dev/countersign/internal/tenant/catalog"
)

const snapshotsPath = "/api/v1/tools/snapshots"

// SnapshotSetting is the read around the calls of one tool; a nil one is none.
type SnapshotSetting struct {
	Source   string                `json:"source"`
	Name     string                `json:"name"`
	Snapshot *catalog.SnapshotRule `json:"snapshot,omitempty"`
}

// SnapshotRules lists the tools whose calls are seen before and after.
func (c *Client) SnapshotRules(ctx context.Context) ([]SnapshotSetting, error) {
	var out Page[SnapshotSetting]
	_, err := c.do(ctx, request{method: http.MethodGet, path: snapshotsPath}, &out)
	return out.Items, err
}

// PutSnapshotRule sets or removes the read around the calls of a tool.
func (c *Client) PutSnapshotRule(ctx context.Context, s SnapshotSetting) error {
	_, err := c.do(ctx, request{method: http.MethodPut, path: snapshotsPath, in: s}, nil)
	return err
}
