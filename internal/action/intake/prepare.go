package intake

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/decision"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/schema"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// record returns the row of actions as the audit record covers it; insert writes
// the same values.
func (r *row) record(version int64, origin audit.Hash, now time.Time) audit.ActionRecord {
	q, by := r.proposal, r.by
	a := audit.ActionRecord{
		Tenant: by.Tenant, Action: r.action, External: q.ExternalID, Session: r.Session, Automation: q.AutomationID,
		Source: r.Tool.Key.Source, Tool: r.Tool.Key.Action, ComposioApp: q.Tool.ComposioApp,
		Risk: string(r.Risk), Effect: string(r.Tool.Effect), RateBucket: q.Constraints.RateBucket, Traceparent: r.traceparent,
		ContentDigest: r.digest[:], Employee: uuid.UUID(r.Employee), ProposedBy: by.Token, Person: by.Proposer(), Workflow: by.Workflow,
		Bucket: r.bucket, NotBefore: q.Constraints.NotBefore, MustRunBefore: q.Constraints.MustRunBefore,
		MaxAttempts: int32(r.Tool.MaxAttempts), Urgent: q.Constraints.Urgent, Origin: origin, Args: audit.Hash(r.args),
		Decision: r.decision.ID, ConfigVersion: version, ToolDigest: r.Tool.Binding, State: string(r.approval),
	}
	switch {
	case r.waits():
		a.ExpiresAt = r.expiresAt(now)
	case r.approval == envelope.ApprovalDenied:
		a.Note = "policy"
	}
	return a
}

// expiresAt returns the end of the wait for people, by the database's clock.
func (r *row) expiresAt(now time.Time) time.Time {
	return now.Add(r.review.Wait).Truncate(time.Microsecond)
}

// lengthOf returns the total length of the arguments of proposals, in bytes.
func lengthOf(proposals []*envelope.Proposal) int {
	length := 0
	for _, p := range proposals {
		length += len(p.Args)
	}
	return length
}

// prepared holds submissions after the steps that need no transaction.
type prepared struct {
	submissions []*submission
	// last reports whether the transaction ends with them.
	last     bool
	settings *settings.Settings
	// rows are the rows that may be stored.
	rows []*row
	// answers have the reason for each proposal that cannot be accepted. If it
	// has a key, it is also doubtful, since the tenant may have accepted the same
	// envelope earlier.
	answers  []Answer
	doubtful []*row
}

// length returns the total length of all arguments, in bytes.
func (all *prepared) length() (length int) {
	for _, s := range all.submissions {
		length += lengthOf(s.proposals)
	}
	return length
}

// prepareAll prepares every proposal.
func (all *prepared) prepareAll(ctx context.Context, snap *settings.Settings, now time.Time) error {
	budget, digester := schema.NewBudget(all.length()), new(envelope.Digester)
	n := 0
	for _, s := range all.submissions {
		n += len(s.proposals)
	}
	*all = prepared{submissions: all.submissions, last: all.last, rows: make([]*row, 0, n), answers: make([]Answer, 0, n)}
	backing := make([]row, n)
	for i, s := range all.submissions {
		suggest := s.by.Suggest(snap, now)
		for j, p := range s.proposals {
			r := &backing[len(all.answers)]
			err := suggest.Tool(p.Tool, r.prepare(ctx, budget, digester, snap, &s.by, p))
			r.traceparent = s.traceparent
			if r.of, r.at = i, len(all.answers); s.by.IDs != nil && !r.chosen {
				r.action = s.by.IDs[j]
			}
			all.answers = append(all.answers, Answer{})
			switch {
			case err == nil:
				all.rows = append(all.rows, r)
			case fault.KindOf(err) == "":
				return err
			default:
				all.answers[r.at] = Answer{Err: err}
				if r.hasKey() && r.digest != (envelope.Digest{}) {
					all.doubtful = append(all.doubtful, r)
				}
			}
		}
	}
	all.settings = snap
	return nil
}

// row is a proposal that may be written.
type row struct {
	uniqueness
	decision.Action
	// by is the submitter, of is the position of the submission, and at that of the
	// proposal among all.
	by          *Submitter
	of, at      int
	traceparent string
	proposal    *envelope.Proposal
	decision    policy.Decision
	approval    envelope.Approval
	bucket      int64
	// args is the digest of the arguments.
	args envelope.Digest
	// review is the review of the action, if it needs approval.
	review settings.Review
}

// waits reports whether the action needs approval.
func (r *row) waits() bool { return r.approval == envelope.ApprovalRequired }

func (r *row) bucketName() string {
	if r.proposal.Constraints.RateBucket == "" {
		return limits.DefaultBucket
	}
	return r.proposal.Constraints.RateBucket
}

func (r *row) status() envelope.Status {
	if r.approval == envelope.ApprovalDenied {
		return envelope.StatusSkipped
	}
	return envelope.StatusPending
}

// prepare resolves and checks the proposal of an empty row.
func (r *row) prepare(ctx context.Context, budget *schema.Budget, digester *envelope.Digester, snap *settings.Settings, by *Submitter, p *envelope.Proposal) error {
	*r = row{by: by, proposal: p, Action: decision.Action{Settings: snap, Proposal: settings.Proposal{
		Automation: p.AutomationID, AskedApproval: p.Approval == envelope.ApprovalRequired, Employee: p.EmployeeID, Session: p.SessionID,
		Args: p.Args, Tools: by.Tools, Person: by.Proposer(),
	}}}
	r.external, r.action, r.chosen = p.ExternalID, p.ActionID, p.ActionID != (envelope.ActionID{})
	if p.TenantID != (envelope.TenantID{}) && p.TenantID != by.Tenant {
		return check.Invalid("/tenant_id", "tenant", "is not the tenant of this token; omit it")
	}
	if by.Employee != (envelope.EmployeeID{}) {
		if p.EmployeeID != (envelope.EmployeeID{}) && p.EmployeeID != by.Employee {
			return check.Invalid("/employee_id", "employee", "is not the employee of this token; omit it")
		}
		r.Employee = by.Employee
	} else if err := by.CheckEmployee(p.EmployeeID); err != nil {
		return err
	}
	if by.Session != "" {
		if p.SessionID != "" && p.SessionID != by.Session {
			return check.Invalid("/session_id", "session", "is not the session of this token; omit it")
		}
		r.Session = by.Session
	} else if err := by.CheckSession(p.SessionID); err != nil {
		return err
	}
	err := by.CheckAutomation(p.AutomationID)
	if err != nil {
		return err
	}
	if r.digest, r.args, err = digester.Digests(p); err != nil {
		return err
	}
	if err = by.checkName(p.ExternalID); err != nil {
		return err
	}
	if r.Tool, err = snap.Resolve(p.Tool, by.Tools); err != nil {
		return err
	}
	if err = r.Tool.CheckWithin(ctx, budget, p.Args); err != nil {
		return err
	}
	var known bool
	if r.bucket, known = snap.Limits.Bucket(r.bucketName()); !known {
		return check.Invalid("/constraints/rate_bucket", "unknown_bucket", "%s", snap.Limits.UnknownBucket(r.bucketName()))
	}
	if !r.chosen {
		r.action = envelope.NewActionID()
	}
	r.Risk = policy.RaiseRisk(p.Risk, r.Tool.Risk.Envelope())
	return nil
}

// decide sets the decisions about rows, and the fields that depend on them.
func decide(ctx context.Context, tx pgx.Tx, rows []*row, now time.Time) error {
	actions := make([]*decision.Action, len(rows))
	for i := range rows {
		actions[i], rows[i].Now = &rows[i].Action, now
	}
	decisions, err := decision.Decide(ctx, tx, actions)
	if err != nil {
		return err
	}
	for i, d := range decisions {
		rows[i].decision, rows[i].approval = d, approvalOf(d.Mode)
	}
	return nil
}

// approvalOf returns the approval that a proposal begins with.
func approvalOf(mode envelope.Mode) envelope.Approval {
	switch mode {
	case envelope.ModeAllow:
		return envelope.ApprovalAuto
	case envelope.ModeRequireApproval:
		return envelope.ApprovalRequired
	case envelope.ModeDeny:
	}
	return envelope.ApprovalDenied
}
