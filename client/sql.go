package client

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/countersign-dev/countersign/envelope"
)

// Row is the result of a query of one row: a pgx.Row or a *sql.Row.
type Row interface{ Scan(dest ...any) error }

// QueryRower is a transaction of pgx: a pgx.Tx or, for a transaction of its own, a
// *pgx.Conn or *pgxpool.Pool.
type QueryRower[R Row] interface {
	QueryRow(ctx context.Context, sql string, args ...any) R
}

// QueryRowContexter is a transaction of database/sql with a driver for PostgreSQL:
// a *sql.Tx or, for a transaction of its own, a *sql.Conn or *sql.DB.
type QueryRowContexter[R Row] interface {
	QueryRowContext(ctx context.Context, query string, args ...any) R
}

// ProposeTx proposes an action in the caller's transaction, on a connection whose
// login may propose (countersign db-login bind). It returns the id of the action
// that a worker creates after the commit; a rollback leaves nothing. For an invalid
// proposal the error is an *envelope.InvalidError, and nothing was sent. A denial by
// policy is reported later, by countersign.proposal_status and [Client.SQLProposal].
// Any other error is the database's, after which the transaction must be rolled
// back.
func ProposeTx[R Row](ctx context.Context, tx QueryRower[R], p envelope.Proposal) (envelope.ActionID, error) {
	return proposeIn(ctx, tx.QueryRow, p)
}

// ProposeSQLTx is ProposeTx in a transaction of database/sql.
func ProposeSQLTx[R Row](ctx context.Context, tx QueryRowContexter[R], p envelope.Proposal) (envelope.ActionID, error) {
	return proposeIn(ctx, tx.QueryRowContext, p)
}

// ProposeManyTx is ProposeTx for up to 10,000 actions, and returns their ids in
// order. All are proposed or none.
func ProposeManyTx[R Row](ctx context.Context, tx QueryRower[R], all []envelope.Proposal) ([]envelope.ActionID, error) {
	return proposeManyIn(ctx, tx.QueryRow, all)
}

// ProposeManySQLTx is ProposeManyTx in a transaction of database/sql.
func ProposeManySQLTx[R Row](ctx context.Context, tx QueryRowContexter[R], all []envelope.Proposal) ([]envelope.ActionID, error) {
	return proposeManyIn(ctx, tx.QueryRowContext, all)
}

func proposeIn[R Row](ctx context.Context, queryRow func(context.Context, string, ...any) R, p envelope.Proposal) (envelope.ActionID, error) {
	ids, err := proposeManyIn(ctx, queryRow, []envelope.Proposal{p})
	if err != nil {
		return envelope.ActionID{}, err
	}
	return ids[0], nil
}

// proposeMany takes and returns texts, which every driver can send and scan.
const proposeMany = `SELECT to_json(countersign.propose_many(ARRAY(
	SELECT e.body FROM jsonb_array_elements($1::text::jsonb) WITH ORDINALITY AS e (body, at) ORDER BY e.at
)))::text`

func proposeManyIn[R Row](ctx context.Context, queryRow func(context.Context, string, ...any) R, all []envelope.Proposal) ([]envelope.ActionID, error) {
	if len(all) == 0 {
		return nil, nil
	}
	for i, p := range all {
		if err := p.Validate(); err != nil {
			return nil, fmt.Errorf("proposal %d: %w", i, err)
		}
	}
	sent, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	var got string
	if err := queryRow(ctx, proposeMany, string(sent)).Scan(&got); err != nil {
		return nil, err
	}
	var ids []envelope.ActionID
	if err := json.Unmarshal([]byte(got), &ids); err != nil {
		return nil, err
	}
	if len(ids) != len(all) {
		return nil, fmt.Errorf("countersign.propose_many returned %d ids for %d envelopes", len(ids), len(all))
	}
	return ids, nil
}
