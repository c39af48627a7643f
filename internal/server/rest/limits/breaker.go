package limits

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/source/breaker"
)

// GET /api/v1/breakers lists the circuit breakers.
func Breakers(c *request.Call) error {
	var all []wire.Breaker
	err := c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		var err error
		all, err = breaker.List(ctx, tx, c.By.Tenant)
		return err
	})
	if err != nil {
		return err
	}
	return request.Items(c, all)
}

// POST /api/v1/breakers/{id}/reset closes a circuit breaker.
func ResetBreaker(c *request.Call) error {
	return c.Change(func(ctx context.Context, tx pgx.Tx) error {
		return breaker.Reset(ctx, tx, c.By.Tenant, c.R.PathValue("id"), c.By.Name)
	})
}
