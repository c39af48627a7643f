package insight

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/fence"
	"github.com/countersign-dev/countersign/internal/insight/overview"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
)

// Workers handles GET /api/v1/workers. It lists the worker processes of the fleet.
func Workers(c *request.Call) error {
	return request.AnswerItems(c, fence.Workers)
}

// Activity handles GET /api/v1/activity. It shows the backlog and the throughput
// of the tenant over time.
func Activity(c *request.Call) error {
	since, until, err := c.QueryRange()
	if err != nil {
		return err
	}
	a := wire.Activity{Since: since, Until: until, Step: wire.ActivityStep(c.Query.Get("step"))}
	if a.Step == "" {
		a.Step = wire.StepMinute
	}
	if a.Until.IsZero() {
		a.Until = time.Now()
	}
	if a.Since.IsZero() {
		a.Since = a.Until.Add(-time.Hour)
	}
	if !a.Since.Before(a.Until) {
		return request.Invalid("/query/until", "range", "must be later than since")
	}
	if a.Until.Sub(a.Since)/a.Step.Duration() > overview.MaxSteps {
		return request.Invalid("/query/since", envelope.RuleMaxItems, "must be at most 1,500 steps before until; a longer step covers more")
	}
	return request.Answer(c, func(ctx context.Context, tx pgx.Tx) (wire.Activity, error) {
		return overview.Activity(ctx, tx, c.By.Tenant, a)
	})
}
