package client

import (
	"context"
	"net/http"
	"time"
)

const retentionPath = "/api/v1/retention"

// Retention is how long one kind of data is kept.
type Retention struct {
	// Kind is ledger or events.
	Kind string `json:"kind"`
	Days int    `json:"days"`
	// Action is delete or notice.
	Action string `json:"action"`
	// Older is how much the last daily look found to be older, counted up to
	// 10,000; CheckedAt is when, nil for not yet.
	Older     int64      `json:"older"`
	CheckedAt *time.Time `json:"checked_at"`
}

// Retention lists how long each kind is kept.
func (c *Client) Retention(ctx context.Context) ([]Retention, error) {
	var out Page[Retention]
	_, err := c.do(ctx, request{method: http.MethodGet, path: retentionPath}, &out)
	return out.Items, err
}

// PutRetention sets how long a kind is kept. The note says why, for the
// record; it may be empty.
func (c *Client) PutRetention(ctx context.Context, kind string, days int, action, note string) error {
	in := struct {
		Kind   string `json:"kind"`
		Days   int    `json:"days"`
		Action string `json:"action"`
		Note   string `json:"note,omitzero"`
	}{kind, days, action, note}
	_, err := c.do(ctx, request{method: http.MethodPut, path: retentionPath, in: in}, nil)
	return err
}
