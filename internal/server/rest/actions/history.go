package actions

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/insight/timeline"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
)

// numbered is a part of a history with its place.
type numbered struct {
	wire.HistoryItem

	place string
}

// History handles GET /api/v1/actions/{id}/history. It lists the history of an
// action.
func History(c *request.Call, id envelope.ActionID) error {
	items, err := request.Read(c, func(ctx context.Context, tx pgx.Tx) ([]wire.HistoryItem, error) {
		v, err := access.View(ctx, tx, c.By, id)
		if err != nil {
			return nil, err
		}
		return timeline.HistoryOf(ctx, tx, c.By.Tenant, v)
	})
	if err != nil {
		return err
	}
	all := make([]numbered, len(items))
	for i, it := range items {
		all[i] = numbered{it, fmt.Sprintf("%06d", i)}
	}
	return request.Sorted(c, "history", all, func(n numbered) string { return n.place })
}
