package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/retention"
)

// retentionView is the retention of a kind of data, as the API shows it.
type retentionView struct {
	Kind      retention.Kind   `json:"kind"`
	Days      int              `json:"days"`
	Action    retention.Action `json:"action"`
	Older     int64            `json:"older"`
	CheckedAt *time.Time       `json:"checked_at"`
}

// GET /api/v1/retention lists the retention settings.
func Retention(c *request.Call) error {
	var all []retentionView
	err := c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		known, err := retention.List(ctx, tx, c.By.Tenant)
		for _, h := range known {
			shown := retentionView{Kind: h.Kind, Days: h.Days, Action: h.Action, Older: h.Older}
			if !h.CheckedAt.IsZero() {
				shown.CheckedAt = new(h.CheckedAt.UTC())
			}
			all = append(all, shown)
		}
		return err
	})
	if err != nil {
		return err
	}
	return request.Items(c, all)
}

// PUT /api/v1/retention sets the retention of a kind of data.
func PutRetention(c *request.Call) error {
	var body struct {
		Kind   retention.Kind
		Days   int
		Action retention.Action
		Note   string
	}
	if err := c.Decode(&body); err != nil {
		return err
	}
	set := retention.Setting{Kind: body.Kind, Days: body.Days, Action: body.Action}
	c.Note = body.Note
	return c.Configure(fmt.Sprintf("retention of %s is %s after %d days", set.Kind, set.Action, set.Days), func(ctx context.Context, tx pgx.Tx) error {
		was, err := retention.Put(ctx, tx, c.By.Tenant, set, c.By.Name)
		c.Detail = map[string]any{
			"kind": set.Kind, "days": set.Days, "action": set.Action, "was": map[string]any{"days": was.Days, "action": was.Action},
		}
		return err
	})
}
