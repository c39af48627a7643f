package limits

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/source/breaker"
)

// breakers is the collection of circuit breakers, by source.
var breakers = request.Collection[wire.Breaker]{
	Name: "breakers", Noun: "breaker",
	Read: func(ctx context.Context, tx pgx.Tx, c *request.Call) ([]wire.Breaker, error) {
		return breaker.List(ctx, tx, c.By.Tenant)
	},
	Key: func(b wire.Breaker) string { return b.Source },
}

// Breakers handles GET /api/v1/breakers. It lists the circuit breakers.
func Breakers(c *request.Call) error { return breakers.List(c) }

// ResetBreaker handles POST /api/v1/breakers/{id}/reset. It closes a circuit
// breaker.
func ResetBreaker(c *request.Call) error {
	id := c.R.PathValue("id")
	return breakers.Put(c, id, "", func(ctx context.Context, tx pgx.Tx) error {
		return breaker.Reset(ctx, tx, c.By.Tenant, id, c.By.Actor())
	})
}
