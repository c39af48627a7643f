package limits

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

// GET /api/v1/quiet-hours lists the quiet hours.
func QuietHours(c *request.Call) error {
	var all []limits.QuietHours
	err := c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		var err error
		all, err = limits.QuietHoursList(ctx, tx, c.By.Tenant)
		return err
	})
	if err != nil {
		return err
	}
	return request.Items(c, all)
}

// PUT /api/v1/quiet-hours sets quiet hours.
func PutQuietHours(c *request.Call) error {
	var h limits.QuietHours
	if err := c.Decode(&h); err != nil {
		return err
	}
	return c.Change(func(ctx context.Context, tx pgx.Tx) error {
		return limits.PutQuietHours(ctx, tx, c.By.Tenant, h, c.By.Name)
	})
}

// DELETE /api/v1/quiet-hours deletes quiet hours.
func DeleteQuietHours(c *request.Call) error {
	return c.Change(func(ctx context.Context, tx pgx.Tx) error {
		return limits.DeleteQuietHours(ctx, tx, c.By.Tenant, limits.QuietScope(c.Query.Get("scope")), c.Query.Get("subject"), c.By.Name)
	})
}
