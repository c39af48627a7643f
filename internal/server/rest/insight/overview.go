package insight

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/insight/overview"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
)

// Overview handles GET /api/v1/overview. It shows the state of the tenant's
// actions in numbers.
func Overview(c *request.Call) error {
	return request.Answer(c, func(ctx context.Context, tx pgx.Tx) (wire.Overview, error) { return overview.Get(ctx, tx, c.By.Tenant) })
}
