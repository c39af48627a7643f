package insight

import (
	"context"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/proposal"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
)

// GET /api/v1/proposals lists what was proposed in SQL and became no action of its
// own, newest first.
func SQLProposals(c *request.Call) error {
	f := proposal.Filter{State: proposal.State(c.Query.Get("state")), Login: c.Query.Get("login")}
	read := func(ctx context.Context, tx pgx.Tx, before envelope.ActionID, most int) ([]wire.SQLProposal, error) {
		f.Before, f.Most = before, most
		return proposal.List(ctx, tx, c.By.Tenant, f)
	}
	return request.AnswerPage(c, "proposals", read, request.Same[wire.SQLProposal], func(p wire.SQLProposal) envelope.ActionID { return p.ID })
}

// GET /api/v1/proposals/{id} shows one with its envelope.
func SQLProposal(c *request.Call, id envelope.ActionID) error {
	d, err := request.Read(c, func(ctx context.Context, tx pgx.Tx) (wire.SQLProposalDetail, error) {
		return proposal.Get(ctx, tx, c.By.Tenant, id)
	})
	if err != nil {
		return err
	}
	d.Envelope = access.Args(c.By, d.Envelope)
	return c.JSON(http.StatusOK, d)
}
