package wire

import (
	"encoding/json"
	"time"

	"github.com/countersign-dev/countersign/envelope"
)

// SQLProposal is a proposal made in SQL that is not an action of its own. An
// accepted proposal is the action of the same id.
type SQLProposal struct {
	ID envelope.ActionID `json:"proposal_id"`
	// Login is the database login that proposed it.
	Login string `json:"login"`
	// State is waiting, refused or duplicate.
	State      string    `json:"state"`
	ProposedAt time.Time `json:"proposed_at"`
	// AnsweredAt is the time at which it was refused or found to be a duplicate.
	AnsweredAt *time.Time `json:"answered_at"`
	// ActionID is the action that was there, of a duplicate.
	ActionID *envelope.ActionID `json:"action_id"`
	// Problem is the reason why it was refused.
	Problem *SQLProposalProblem `json:"problem"`
}

// SQLProposalProblem is the reason why a proposal in SQL was refused.
type SQLProposalProblem struct {
	// Kind is the kind of the problem as the API names it: invalid, denied, conflict
	// or limited.
	Kind   string `json:"kind"`
	Detail string `json:"detail"`
	// Errors are the fields that are wrong, with pointers into the envelope.
	Errors []envelope.FieldError `json:"errors,omitempty"`
}

// SQLProposalDetail is a proposal in SQL with its envelope as it was proposed,
// which may be no valid one.
type SQLProposalDetail struct {
	SQLProposal

	Envelope json.RawMessage `json:"envelope"`
}
