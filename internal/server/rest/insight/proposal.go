package insight

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/proposal"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
)

// SQLProposals handles GET /api/v1/proposals. It lists the proposals made in
// SQL that are not actions of their own, newest first.
func SQLProposals(c *request.Call) error {
	f := proposal.Filter{State: proposal.State(c.Query.Get("state")), Login: c.Query.Get("login")}
	read := func(ctx context.Context, tx pgx.Tx, before envelope.ActionID, most int) ([]wire.SQLProposal, error) {
		f.Before, f.Most = before, most
		return proposal.List(ctx, tx, c.By.Tenant, f)
	}
	return request.AnswerPage(c, "proposals", read, request.Same[wire.SQLProposal], func(p wire.SQLProposal) envelope.ActionID { return p.ID })
}

// SQLProposal handles GET /api/v1/proposals/{id}. It shows one with its
// envelope.
func SQLProposal(c *request.Call, id envelope.ActionID) error {
	d, err := request.Read(c, func(ctx context.Context, tx pgx.Tx) (wire.SQLProposalDetail, error) {
		return proposal.Get(ctx, tx, c.By.Tenant, id)
	})
	if err != nil {
		return err
	}
	var named struct {
		ExternalID string `json:"external_id"`
	}
	_ = json.Unmarshal(d.Envelope, &named) // an invalid one has no name
	d.Envelope = access.ArgsOf(c.By, named.ExternalID, d.Envelope)
	return c.JSON(http.StatusOK, d)
}
