package approvals

import (
	"cmp"
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// reviews is the collection of review rules, by pattern and risk.
var reviews = request.Collection[wire.ReviewRule]{
	Name: "reviews", Noun: "review rule",
	Read: func(ctx context.Context, tx pgx.Tx, c *request.Call) ([]wire.ReviewRule, error) {
		all, err := settings.Reviews(ctx, tx, c.By.Tenant)
		return request.Map(all, func(r settings.ReviewRule) wire.ReviewRule {
			return wire.ReviewRule{
				Tool: r.Pattern, Risk: r.Risk, Approvals: r.Approvals, Wait: r.Wait, Warn: r.Warn, Escalate: r.Escalate, Edits: r.Edits,
				UpdatedBy: r.UpdatedBy, UpdatedAt: r.UpdatedAt.UTC(),
			}
		}), err
	},
	Key:  func(r wire.ReviewRule) string { return reviewKey(r.Tool, r.Risk) },
	ETag: func(r *wire.ReviewRule) *string { return &r.ETag },
}

func reviewKey(tool string, risk envelope.Risk) string { return tool + " " + string(risk) }

// reviewInPath returns the pattern and the risk of the rule in the path and the
// query, and the rule's name in events.
func reviewInPath(c *request.Call) (tool string, risk envelope.Risk, name string) {
	tool, risk = c.R.PathValue("tool"), envelope.Risk(cmp.Or(c.Query.Get("risk"), string(envelope.RiskLow)))
	return tool, risk, "review of " + tool + " from risk " + string(risk)
}

// Reviews handles GET /api/v1/reviews. It lists the review rules.
func Reviews(c *request.Call) error { return reviews.List(c) }

// PutReview handles PUT /api/v1/reviews/{tool}. It sets a review rule.
func PutReview(c *request.Call, body wire.ReviewRule) error {
	tool, risk, name := reviewInPath(c)
	r := settings.ReviewRule{
		Pattern: tool, Risk: risk, Approvals: cmp.Or(body.Approvals, 1),
		Wait: body.Wait, Warn: body.Warn, Escalate: body.Escalate, Edits: body.Edits,
	}
	c.Detail = map[string]any{"tool": tool, "risk": risk, "approvals": r.Approvals, "wait": body.Wait, "warn": body.Warn, "escalate": body.Escalate, "edits": request.NilIfZero(body.Edits)}
	return reviews.Put(c, reviewKey(tool, risk), name+" set", func(ctx context.Context, tx pgx.Tx) error {
		return settings.PutReview(ctx, tx, c.By.Tenant, r, c.By.Actor())
	})
}

// DeleteReview handles DELETE /api/v1/reviews/{tool}. It deletes a review rule.
func DeleteReview(c *request.Call) error {
	tool, risk, name := reviewInPath(c)
	c.Detail = map[string]any{"tool": tool, "risk": risk, "approvals": nil}
	return reviews.Delete(c, reviewKey(tool, risk), name+" removed", func(ctx context.Context, tx pgx.Tx) error {
		return settings.DeleteReview(ctx, tx, c.By.Tenant, tool, risk)
	})
}
