package policies

import (
	"context"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/insight/simulate"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
)

// The range of the counts of rules and grants, and the number of actions that
// bounds it.
const (
	usageRange = 7 * request.Day
	usageMost  = 100_000
)

// Usage handles GET /api/v1/policy/usage. It counts the actions that rules
// applied to and that grants allowed.
func Usage(c *request.Call) error {
	since := time.Now().Add(-usageRange)
	used, err := request.Read(c, func(ctx context.Context, tx pgx.Tx) (wire.PolicyUsage, error) {
		return simulate.Usage(ctx, tx, c.By.Tenant, since, usageMost)
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, used)
}
