package approvals

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// reviewRule is a review rule as the API shows it.
type reviewRule struct {
	Key       string             `json:"tool"`
	Risk      envelope.Risk      `json:"risk"`
	Needed    int                `json:"approvals"`
	Wait      *envelope.Duration `json:"wait,omitempty"`
	Warn      *envelope.Duration `json:"warn,omitempty"`
	Escalate  *envelope.Duration `json:"escalate,omitempty"`
	UpdatedBy string             `json:"updated_by"`
	UpdatedAt time.Time          `json:"updated_at"`
	ETag      string             `json:"etag,omitzero"`
}

// GET /api/v1/reviews lists the review rules.
func Reviews(c *request.Call) error { return request.List(c, reviews) }

// reviews reads the review rules as the API shows them.
func reviews(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) ([]reviewRule, error) {
	rules, err := settings.Reviews(ctx, tx, tenant)
	if err != nil {
		return nil, err
	}
	shown := make([]reviewRule, len(rules))
	for i, r := range rules {
		shown[i] = reviewRule{
			Key: r.Pattern, Risk: r.Risk, Needed: r.Approvals,
			Wait: (*envelope.Duration)(r.Wait), Warn: (*envelope.Duration)(r.Warn), Escalate: (*envelope.Duration)(r.Escalate),
			UpdatedBy: r.UpdatedBy, UpdatedAt: r.UpdatedAt.UTC(),
		}
		if shown[i].ETag, err = request.ETagOf(shown[i]); err != nil {
			return nil, err
		}
	}
	return shown, nil
}

// checkReview compares If-Match with the ETag of the review rule of a key and
// risk.
func checkReview(ctx context.Context, tx pgx.Tx, c *request.Call, key string, risk envelope.Risk) error {
	return c.CheckMatch(ctx, tx, func(ctx context.Context, tx pgx.Tx) (any, error) {
		rules, err := reviews(ctx, tx, c.By.Tenant)
		for _, r := range rules {
			if r.Key == key && r.Risk == risk {
				r.ETag = ""
				return r, err
			}
		}
		return nil, err
	})
}

// PUT /api/v1/reviews sets a review rule.
func PutReview(c *request.Call) error {
	var body reviewRule
	if err := c.Decode(&body); err != nil {
		return err
	}
	r := settings.ReviewRule{
		Pattern: body.Key, Risk: cmp.Or(body.Risk, envelope.RiskLow), Approvals: cmp.Or(body.Needed, 1),
		Wait: (*time.Duration)(body.Wait), Warn: (*time.Duration)(body.Warn), Escalate: (*time.Duration)(body.Escalate),
	}
	c.Detail = map[string]any{"tool": r.Pattern, "risk": r.Risk, "approvals": r.Approvals, "wait": body.Wait, "warn": body.Warn, "escalate": body.Escalate}
	return c.Configure("review of "+r.Pattern+" from risk "+string(r.Risk)+" set", func(ctx context.Context, tx pgx.Tx) error {
		if err := checkReview(ctx, tx, c, r.Pattern, r.Risk); err != nil {
			return err
		}
		return settings.PutReview(ctx, tx, c.By.Tenant, r, c.By.Name)
	})
}

// DELETE /api/v1/reviews deletes a review rule.
func DeleteReview(c *request.Call) error {
	key, risk := c.Query.Get("tool"), envelope.Risk(cmp.Or(c.Query.Get("risk"), string(envelope.RiskLow)))
	c.Detail = map[string]any{"tool": key, "risk": risk, "approvals": nil}
	return c.Configure("review of "+key+" from risk "+string(risk)+" removed", func(ctx context.Context, tx pgx.Tx) error {
		if err := checkReview(ctx, tx, c, key, risk); err != nil {
			return err
		}
		return settings.DeleteReview(ctx, tx, c.By.Tenant, key, risk)
	})
}
