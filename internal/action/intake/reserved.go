package intake

import (
	"context"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
)

// ReservedPrefix begins the ids of the automations that Countersign itself
// runs, for which a tenant may have rules that let more through.
const ReservedPrefix = "countersign."

// AcceptTx is Accept within a transaction of the caller's, so that proposals
// and what they follow from are written together or not at all. The caller must
// call committed after the commit, and not otherwise: it wakes the fleet. After
// an error the transaction cannot go on.
func (in *Intake) AcceptTx(ctx context.Context, tx pgx.Tx, by Submitter, proposals []*envelope.Proposal) (answers []Answer, committed func(), err error) {
	if len(proposals) > MaxBatch {
		return nil, nil, fault.New(fault.Invalid, "at most %d proposals at once", MaxBatch)
	}
	a, err := in.accept(ctx, tx, by, proposals, true)
	if err != nil {
		return nil, nil, err
	}
	return a.answers, func() {
		in.decisions.Add(by.Tenant, a.decisions)
		if a.queued {
			in.cfg.Wake()
		}
	}, nil
}

// CheckAutomation refuses an automation that only Countersign itself runs, or
// whose id people could take for one. The error is an *envelope.InvalidError.
func (by Submitter) CheckAutomation(id string) error {
	if by.Reserved || !strings.HasPrefix(strings.ToLower(strings.TrimSpace(id)), ReservedPrefix) {
		return nil
	}
	return check.Invalid("/automation_id", "reserved", "ids that begin with "+ReservedPrefix+" are Countersign's own; take another one")
}

// checkName refuses an external id by which Countersign itself proposes a step
// of a workflow, or a message of a subscription: a
// proposal of that name keeps the step or the message from being proposed.
func (by Submitter) checkName(external string) error {
	if by.Reserved || by.Workflow != uuid.Nil {
		return nil
	}
	for _, prefix := range []string{"workflow:", "message:"} {
		rest, ours := strings.CutPrefix(external, prefix)
		if id, _, more := strings.Cut(rest, ":"); ours && more && uuid.Validate(id) == nil {
			return check.Invalid("/external_id", "reserved", "names that begin like this are Countersign's own; take another one")
		}
	}
	return nil
}
