package approvals

import (
	"cmp"
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// reviewRule is a review rule as the API shows it.
type reviewRule struct {
	settings.ReviewRule
	ETag string `json:"etag,omitzero"`
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
		shown[i].ReviewRule = r
		if shown[i].ETag, err = request.ETagOf(r); err != nil {
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
			if r.Pattern == key && r.Risk == risk {
				return r.ReviewRule, err
			}
		}
		return nil, err
	})
}

// PUT /api/v1/reviews sets a review rule.
func PutReview(c *request.Call) error {
	var r settings.ReviewRule
	if err := c.Decode(&r); err != nil {
		return err
	}
	r.Risk, r.Approvals = cmp.Or(r.Risk, envelope.RiskLow), cmp.Or(r.Approvals, 1)
	c.Detail = map[string]any{"tool": r.Pattern, "risk": r.Risk, "approvals": r.Approvals, "wait": r.Wait, "warn": r.Warn, "escalate": r.Escalate}
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
