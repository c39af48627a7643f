package actions

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/insight/timeline"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
)

// Forecast answers getForecast: the time at which an action would go out if it
// were approved now.
func Forecast(c *request.Call, id envelope.ActionID) error {
	return request.Answer(c, func(ctx context.Context, tx pgx.Tx) (shown wire.Forecast, err error) {
		v, err := access.View(ctx, tx, c.By, id)
		if err != nil {
			return shown, err
		}
		o, err := timeline.ForecastOf(ctx, tx, c.Catalog, v)
		shown = wire.Forecast{GoesOutAt: o.GoesOutAt, Allowed: o.Obstacle == nil, Gates: o.Gates}
		if err == nil && v.Phase == envelope.PhasePending {
			shown.ApprovalsLeft, err = c.Approval.Left(ctx, tx, Decider(c), id)
		}
		if o.Obstacle != nil {
			shown.Problem = new(request.ProblemOf(o.Obstacle))
			shown.Problem.Instance = request.ID(ctx)
		}
		return shown, err
	})
}
