package client

import (
	"context"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
)

const proposalsPath = "/api/v1/proposals"

// SQLProposalFilter selects proposals in SQL. Zero fields select all, but without
// a state waiting proposals are left out.
type SQLProposalFilter struct {
	// State is waiting, refused or duplicate.
	State string
	// Login is the name of a database login.
	Login string
	// Limit is the size of a page; zero means 50. Cursor is the NextCursor of the
	// previous page.
	Limit  int
	Cursor string
}

// SQLProposals lists proposals made in SQL that became no action of their own,
// newest first.
func (c *Client) SQLProposals(ctx context.Context, f SQLProposalFilter) (wire.Page[wire.SQLProposal], error) {
	return read[wire.Page[wire.SQLProposal]](ctx, c, proposalsPath, given("state", f.State, "login", f.Login, "limit", number(f.Limit), "cursor", f.Cursor))
}

// SQLProposal reads a proposal in SQL. ErrNotFound also means that it was accepted:
// it is then the action of the same id.
func (c *Client) SQLProposal(ctx context.Context, id envelope.ActionID) (wire.SQLProposalDetail, error) {
	return read[wire.SQLProposalDetail](ctx, c, proposalsPath+"/"+id.String(), nil)
}
