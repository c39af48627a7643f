package deadletters

import (
	"cmp"
	"context"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/deadletter"
	"github.com/countersign-dev/countersign/internal/server/rest/actions"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
)

// bulkOf returns the request for the service.
func bulkOf(c *request.Call, in wire.BulkRequest, note string) (deadletter.BulkRequest, error) {
	var f deadletter.Filter
	var err error
	if in.Filter != nil {
		f, err = filterOf(*in.Filter, "/filter")
	}
	return deadletter.BulkRequest{
		IDs: in.IDs, Filter: f, Limit: cmp.Or(in.Limit, envelope.MaxItems), DryRun: in.DryRun, Actor: c.By.Actor(), Note: note,
	}, err
}

// Replay handles POST /api/v1/dead-letters/replay. It puts dead letters back on
// the schedule.
func Replay(c *request.Call, body wire.ReplayRequest) error {
	bulk, err := bulkOf(c, body.BulkRequest, body.Note)
	if err != nil {
		return err
	}
	done, err := request.Read(c, func(ctx context.Context, tx pgx.Tx) (deadletter.BulkResult, error) {
		return deadletter.Replay(ctx, tx, c.By.Tenant, bulk, deadletter.ReplayOptions{AllowDuplicates: body.AllowDuplicates, PerSecond: body.PerSecond})
	})
	if err != nil {
		return err
	}
	if len(done.ActionIDs) > 0 && !bulk.DryRun {
		c.Wake()
	}
	return c.JSON(http.StatusOK, done)
}

// Discard handles POST /api/v1/dead-letters/discard. It discards dead letters.
func Discard(c *request.Call, body wire.DiscardRequest) error {
	bulk, err := bulkOf(c, body.BulkRequest, body.Reason)
	if err != nil {
		return err
	}
	return request.Answer(c, func(ctx context.Context, tx pgx.Tx) (deadletter.BulkResult, error) {
		return deadletter.Discard(ctx, tx, c.By.Tenant, bulk)
	})
}

// Resolve handles POST /api/v1/dead-letters/{id}/resolve. It records whether an
// action of unknown outcome happened.
func Resolve(c *request.Call, id envelope.ActionID) error {
	var body wire.Resolution
	if err := c.Decode(&body); err != nil {
		return err
	}
	if body.Happened && body.GiveUp {
		return request.Invalid("/give_up", "excluded", "cannot be combined with happened; leave it out")
	}
	err := c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		found := deadletter.Resolution{Happened: body.Happened, GiveUp: body.GiveUp, Actor: c.By.Actor(), Note: body.Note}
		return deadletter.Resolve(ctx, tx, c.By.Tenant, id, found)
	})
	if err != nil {
		return err
	}
	c.Wake()
	return actions.Show(c, id)
}
