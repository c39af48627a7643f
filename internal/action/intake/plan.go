package intake

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
)

// PlanLifetime is the time for which a plan is valid.
const PlanLifetime = time.Hour

const (
	planPrefix = "plan_"
	planScheme = 1
	// planHead is the scheme, the digest of the content, the id of the decision
	// and the time in seconds; the digest of the tool's definition follows.
	planHead = 1 + len(envelope.Digest{}) + len(uuid.UUID{}) + 8
	// maxPlanTool bounds that digest in bytes.
	maxPlanTool = 64
)

// Plan is the part of a dry run's result that a later call is compared with.
// It is not signed: a forged plan can only have the forger's own call refused.
type Plan struct {
	// Content is the digest of the request.
	Content envelope.Digest
	// Tool is the digest of the tool's definition.
	Tool []byte
	// Decision identifies the policy decision, with its reasons, by its content.
	Decision uuid.UUID
	// IssuedAt is the time of the dry run, to the second.
	IssuedAt time.Time
}

// String writes a plan as a token.
func (p Plan) String() string {
	raw := make([]byte, 0, planHead+len(p.Tool))
	raw = append(raw, planScheme)
	raw = append(raw, p.Content[:]...)
	raw = append(raw, p.Decision[:]...)
	raw = binary.BigEndian.AppendUint64(raw, uint64(max(0, p.IssuedAt.Unix()))) // not negative
	return planPrefix + base64.RawURLEncoding.EncodeToString(append(raw, p.Tool...))
}

// ParsePlan parses the output of String. The error is fault.Invalid.
func ParsePlan(token string) (Plan, error) {
	text, ok := strings.CutPrefix(token, planPrefix)
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if !ok || err != nil || len(raw) < planHead || len(raw) > planHead+maxPlanTool || raw[0] != planScheme {
		return Plan{}, fault.New(fault.Invalid, "is not a plan from a dry run; send it unchanged, or omit it")
	}
	p := Plan{Content: envelope.Digest(raw[1:33]), Decision: uuid.UUID(raw[33:49]), Tool: raw[planHead:]}
	p.IssuedAt = time.Unix(int64(binary.BigEndian.Uint64(raw[49:planHead])&(1<<62-1)), 0).UTC() // masked to fit
	return p, nil
}

// Expired reports whether a plan is too old. A plan from the future, beyond
// the tolerated clock skew, counts as expired.
func (p Plan) Expired(now time.Time) bool {
	age := now.Sub(p.IssuedAt)
	return age > PlanLifetime || age < -time.Minute
}

// compare returns fault.Conflict, with the difference, if a proposal does not
// match the plan.
func (p *Plan) compare(r *row) error {
	var moved []string
	if r.digest != p.Content {
		moved = append(moved, "what is asked for (the arguments, or what goes with them)")
	}
	if !r.Tool.Is(p.Tool) {
		moved = append(moved, "the tool's definition, or the address of its source")
	}
	if r.decision.ID != p.Decision {
		moved = append(moved, "what policy says (now "+string(r.decision.Mode)+": "+r.decision.Source+")")
	}
	if len(moved) == 0 {
		return nil
	}
	return fault.Coded(wire.CodePlan, fault.Conflict, "the call differs from its plan in: %s; make another dry run", strings.Join(moved, "; "))
}

// matchPlans keeps the rows that match their plans and answers the others with the
// difference. An existing envelope is not proposed again, so a plan never refuses
// it: unless the rows are known to be new, matchPlans returns errTaken, so that the
// caller looks their ids up.
func matchPlans(looked bool, rows []*row, answers []Answer) ([]*row, error) {
	kept := rows[:0]
	for _, r := range rows {
		var refusal error
		if r.by.Plan != nil {
			refusal = r.by.Plan.compare(r)
		}
		switch {
		case refusal == nil:
			kept = append(kept, r)
		case !looked && r.hasKey():
			return nil, errTaken
		default:
			answers[r.at] = Answer{Err: refusal}
		}
	}
	return kept, nil
}

// reservedPrefix begins the ids of the automations that Countersign itself
// runs, for which a tenant may have rules that let more through.
const reservedPrefix = "countersign."

// AcceptTx is Accept within the caller's transaction, so that proposals and the
// rows that caused them are stored together. The caller must call committed, which
// wakes the workers, after the commit and only then. After an error the
// transaction is unusable. Without look, the envelopes are assumed to be new,
// which is cheaper; if one of them is not, the error is fault.Busy, and the caller
// tries again with look.
func (in *Intake) AcceptTx(ctx context.Context, tx pgx.Tx, by Submitter, proposals []*envelope.Proposal, look bool) (answers []Answer, committed func(), err error) {
	if len(proposals) > MaxBatch {
		return nil, nil, fault.New(fault.Invalid, "at most %d proposals at once", MaxBatch)
	}
	ready := &prepared{submissions: []*submission{newSubmission(ctx, by, proposals)}}
	a, err := in.accept(ctx, tx, by.Tenant, ready, look)
	if err != nil {
		return nil, nil, err
	}
	return a.answers, func() { in.committed(by.Tenant, &a, ready) }, nil
}

// CheckEmployee refuses an employee that the submitter may not name. The names
// of a workflow were checked when it was submitted. The error is fault.Denied.
func (by Submitter) CheckEmployee(id envelope.EmployeeID) error {
	if by.Reserved || by.Workflow != uuid.Nil {
		return nil
	}
	return by.Names.CheckEmployee(id)
}

// CheckAutomation rejects an automation reserved for Countersign or with a
// confusable id, and one that the submitter may not name. The error is an
// *envelope.InvalidError, or fault.Denied.
func (by Submitter) CheckAutomation(id string) error {
	if id == "" || by.Reserved {
		return nil
	}
	if !strings.HasPrefix(strings.ToLower(strings.TrimSpace(id)), reservedPrefix) {
		if by.Workflow != uuid.Nil {
			return nil
		}
		return by.Names.CheckAutomation(id)
	}
	return check.Invalid("/automation_id", "reserved", "ids that begin with "+reservedPrefix+" are reserved; use another one")
}

// CheckSession refuses a session that a submitter without one of its own may not
// name. The names of a workflow were checked when it was submitted. The error is
// fault.Denied.
func (by Submitter) CheckSession(id string) error {
	if by.Reserved || by.Workflow != uuid.Nil {
		return nil
	}
	return by.Names.CheckSession(id)
}

// CheckExternalID refuses an external id without the prefix of the submitter. The
// error is fault.Denied.
func (by Submitter) CheckExternalID(external string) error {
	if by.Reserved || by.Workflow != uuid.Nil {
		return nil
	}
	return by.Names.CheckExternalID(external)
}

// checkName refuses an external id by which Countersign itself proposes a step
// of a workflow, a message of a subscription, a reversal or a return: a proposal of that
// name keeps the other one from being proposed.
func (by Submitter) checkName(external string) error {
	if by.Reserved || by.Workflow != uuid.Nil {
		return nil
	}
	for _, prefix := range []string{"workflow:", "message:", "revert:", "return:"} {
		rest, ours := strings.CutPrefix(external, prefix)
		if id, _, more := strings.Cut(rest, ":"); ours && more && uuid.Validate(id) == nil {
			return check.Invalid("/external_id", "reserved", "names that begin like this are reserved; use another one")
		}
	}
	return by.CheckExternalID(external)
}
