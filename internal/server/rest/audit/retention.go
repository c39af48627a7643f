package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/retention"
)

// retentions is the collection of retention settings, one for each kind of
// data.
var retentions = request.Collection[wire.Retention]{
	Name: "retention", Noun: "kind of data",
	Read: func(ctx context.Context, tx pgx.Tx, c *request.Call) ([]wire.Retention, error) {
		all, err := retention.List(ctx, tx, c.By.Tenant)
		return request.Map(all, func(h retention.Status) wire.Retention {
			shown := wire.Retention{
				Kind: string(h.Kind), Period: envelope.Duration(time.Duration(h.Days) * request.Day), Action: string(h.Action), Older: h.Older,
			}
			if !h.CheckedAt.IsZero() {
				shown.CheckedAt = new(h.CheckedAt.UTC())
			}
			return shown
		}), err
	},
	Key:     func(r wire.Retention) string { return r.Kind },
	ETag:    func(r *wire.Retention) *string { return &r.ETag },
	Version: func(r wire.Retention) any { return []any{r.Kind, r.Period, r.Action} },
}

// Retention handles GET /api/v1/retention. It lists the retention settings.
func Retention(c *request.Call) error { return retentions.List(c) }

// PutRetention handles PUT /api/v1/retention/{kind}. It sets the retention of a
// kind of data.
func PutRetention(c *request.Call, body wire.Retention) error {
	if err := request.CheckDuration("/period", body.Period, request.Day, retention.MaxDays*request.Day); err != nil {
		return err
	}
	days := time.Duration(body.Period) / request.Day
	if days*request.Day != time.Duration(body.Period) {
		return request.Invalid("/period", envelope.RuleFormat, "must be a number of days, such as 90d")
	}
	set := retention.Setting{Kind: retention.Kind(c.R.PathValue("kind")), Days: int(days), Action: retention.Action(body.Action)}
	c.Note = body.Note
	subject := fmt.Sprintf("retention of %s is %s after %d days", set.Kind, set.Action, set.Days)
	return retentions.Put(c, string(set.Kind), subject, func(ctx context.Context, tx pgx.Tx) error {
		was, err := retention.Put(ctx, tx, c.By.Tenant, set, c.By.Actor())
		c.Detail = map[string]any{
			"kind": set.Kind, "days": set.Days, "action": set.Action, "was": map[string]any{"days": was.Days, "action": was.Action},
		}
		return err
	})
}
