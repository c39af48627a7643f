package rest

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/tenant/retention"
)

// holding is what holds for a kind of data, as the API shows it.
type holding struct {
	Kind      retention.Kind   `json:"kind"`
	Days      int              `json:"days"`
	Action    retention.Action `json:"action"`
	Older     int64            `json:"older"`
	CheckedAt *time.Time       `json:"checked_at"`
}

func (s *Server) listRetention(c *call) error {
	var all []holding
	err := s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		known, err := retention.List(ctx, tx, c.by.Tenant)
		for _, h := range known {
			shown := holding{Kind: h.Kind, Days: h.Days, Action: h.Action, Older: h.Older}
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
	return items(c, all)
}

func (s *Server) putRetention(c *call) error {
	var body struct {
		Kind   retention.Kind
		Days   int
		Action retention.Action
		Note   string
	}
	if err := c.decode(&body); err != nil {
		return err
	}
	set := retention.Setting{Kind: body.Kind, Days: body.Days, Action: body.Action}
	c.note = body.Note
	return s.configure(c, fmt.Sprintf("retention of the %s is %s after %d days", set.Kind, set.Action, set.Days), func(ctx context.Context, tx pgx.Tx) error {
		was, err := retention.Put(ctx, tx, c.by.Tenant, set, c.by.Name)
		c.detail = map[string]any{
			"kind": set.Kind, "days": set.Days, "action": set.Action, "was": map[string]any{"days": was.Days, "action": was.Action},
		}
		return err
	})
}
