// Package intake is the one door in: every proposal, whoever makes it and
// however it comes, is resolved, checked, decided and written here. It works
// in sets: a thousand proposals cost the same few round trips as one. It
// refuses to execute anything.
package intake

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/catalog"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/policy"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/telemetry"
)

// DefaultBucket holds what names no other bucket.
const DefaultBucket = "default"

// MaxBatch bounds the proposals of one Accept.
const MaxBatch = envelope.MaxItems

// Submitter is who proposes.
type Submitter struct {
	Tenant envelope.TenantID
	// Token identifies the submitter, so that nobody approves their own
	// proposal; the zero UUID is the system itself.
	Token uuid.UUID
	// Name is shown in events.
	Name string
	// Employee and Session, if set, bind the submitter: proposals get them,
	// and may not name others.
	Employee envelope.EmployeeID
	Session  string
}

// Answer is what became of one proposal.
type Answer struct {
	Action envelope.ActionID
	// Known says that the tenant had this envelope already, with the same
	// content; it is not accepted a second time.
	Known bool
	// Mode and Source say what policy decided, for an envelope that is new.
	Mode   envelope.Mode
	Source string
	// Approval is where it stands, for an envelope that is new.
	Approval envelope.Approval
	// Err says why the proposal was not accepted: an *envelope.InvalidError
	// or a fault. The other fields are then empty.
	Err error
}

// Config says how an Intake works.
type Config struct {
	// ApprovalWait is how long an envelope waits for a decision; zero means 5
	// minutes.
	ApprovalWait time.Duration
	// Wake is called after a commit that put something on the schedule. It
	// must not block. Losing a call delays work, and loses none.
	Wake func()
	Log  *slog.Logger
}

// Intake accepts proposals. It is safe for concurrent use.
type Intake struct {
	db      postgres.Begins
	catalog *catalog.Cache
	cfg     Config

	stored *stored
}

// New returns an Intake.
func New(db postgres.Begins, cache *catalog.Cache, cfg Config) *Intake {
	if cfg.ApprovalWait == 0 {
		cfg.ApprovalWait = 5 * time.Minute
	}
	if cfg.Wake == nil {
		cfg.Wake = func() {}
	}
	return &Intake{db: db, catalog: cache, cfg: cfg, stored: newStored()}
}

// Accept decides and writes up to MaxBatch proposals in one transaction and
// answers for each in order. A proposal that is refused leaves the others
// alone; an error means that none was accepted, and submitting the same
// proposals again is safe if they carry an external id.
func (in *Intake) Accept(ctx context.Context, by Submitter, proposals []*envelope.Proposal) ([]Answer, error) {
	if len(proposals) > MaxBatch {
		return nil, fault.New(fault.Invalid, "at most %d proposals at once", MaxBatch)
	}
	var a acceptance
	err := postgres.InTx(ctx, in.db, postgres.API(by.Tenant), func(tx pgx.Tx) error {
		var err error
		a, err = in.accept(ctx, tx, by, proposals)
		return err
	})
	if err != nil {
		return nil, err
	}
	in.stored.learn(by.Tenant, a.buckets, a.decisions)
	if a.queued {
		in.cfg.Wake()
	}
	return a.answers, nil
}

// acceptance is what one transaction came to.
type acceptance struct {
	answers []Answer
	// queued says that something was put on the schedule.
	queued bool
	// buckets and decisions are stored as of the commit.
	buckets   map[string]int64
	decisions []decision
}

func (in *Intake) accept(ctx context.Context, tx pgx.Tx, by Submitter, proposals []*envelope.Proposal) (acceptance, error) {
	snap, err := in.catalog.Current(ctx, tx, by.Tenant)
	if err != nil {
		return acceptance{}, err
	}
	a := acceptance{answers: make([]Answer, len(proposals))}
	rows := make([]row, 0, len(proposals))
	for i, p := range proposals {
		r, err := prepare(snap, by, p)
		if err != nil {
			if fault.KindOf(err) == "" {
				return acceptance{}, err
			}
			a.answers[i] = Answer{Err: err}
			continue
		}
		r.at = i
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		return a, nil
	}
	if a.buckets, err = in.stored.fillBuckets(ctx, tx, by.Tenant, rows); err != nil {
		return acceptance{}, err
	}
	if a.decisions, err = in.stored.fillDecisions(ctx, tx, by.Tenant, rows); err != nil {
		return acceptance{}, err
	}
	written, err := insert(ctx, tx, by, snap.Version, in.cfg.ApprovalWait, telemetry.Inject(ctx), rows)
	if err != nil {
		return acceptance{}, err
	}
	event := audit.Event{Tenant: by.Tenant, Kind: audit.Proposed, Actor: by.Name}
	var known []row
	for _, r := range rows {
		if !written[r.action] {
			known = append(known, r)
			continue
		}
		// Two proposals of one batch may carry the same action id; the first
		// has it.
		delete(written, r.action)
		a.queued = a.queued || r.approval == envelope.ApprovalAuto
		a.answers[r.at] = Answer{Action: r.action, Mode: r.decision.Mode, Source: r.decision.Source, Approval: r.approval}
		event.Items = append(event.Items, audit.Item{Action: r.action, Status: r.status(), Approval: r.approval})
	}
	if len(known) > 0 {
		if err := answerKnown(ctx, tx, by.Tenant, known, a.answers); err != nil {
			return acceptance{}, err
		}
	}
	return a, audit.Write(ctx, tx, event)
}

// row is a proposal that may be written.
type row struct {
	at       int
	proposal *envelope.Proposal
	action   envelope.ActionID
	digest   envelope.Digest
	tool     *catalog.Tool
	decision decision
	approval envelope.Approval
	risk     envelope.Risk
	bucket   int64
	employee envelope.EmployeeID
	session  string
}

func (r *row) bucketName() string {
	if r.proposal.Constraints.RateBucket == "" {
		return DefaultBucket
	}
	return r.proposal.Constraints.RateBucket
}

func (r *row) status() envelope.Status {
	if r.approval == envelope.ApprovalDenied {
		return envelope.StatusSkipped
	}
	return envelope.StatusPending
}

// prepare resolves, checks and decides one proposal.
func prepare(snap *catalog.Snapshot, by Submitter, p *envelope.Proposal) (row, error) {
	r := row{proposal: p, action: p.ActionID, employee: p.EmployeeID, session: p.SessionID}
	if p.TenantID != (envelope.TenantID{}) && p.TenantID != by.Tenant {
		return r, invalid("/tenant_id", "tenant", "is not the tenant of this token; leave it out")
	}
	if by.Employee != (envelope.EmployeeID{}) {
		if p.EmployeeID != (envelope.EmployeeID{}) && p.EmployeeID != by.Employee {
			return r, invalid("/employee_id", "employee", "is not the employee of this token; leave it out")
		}
		r.employee = by.Employee
	}
	if by.Session != "" {
		if p.SessionID != "" && p.SessionID != by.Session {
			return r, invalid("/session_id", "session", "is not the session of this token; leave it out")
		}
		r.session = by.Session
	}
	var err error
	if r.tool, err = snap.Resolve(p.Tool); err != nil {
		return r, err
	}
	if err = r.tool.Check(p.Args); err != nil {
		return r, err
	}
	if r.digest, err = p.Digest(); err != nil {
		return r, err
	}
	if r.action == (envelope.ActionID{}) {
		r.action = envelope.NewActionID()
	}
	r.decision = decision{Decision: snap.Decide(r.tool, p.AutomationID, p.Approval == envelope.ApprovalRequired)}
	r.risk = policy.RaiseRisk(p.Risk, r.tool.Risk.Envelope())
	switch r.decision.Mode {
	case envelope.ModeAllow:
		r.approval = envelope.ApprovalAuto
	case envelope.ModeRequireApproval:
		r.approval = envelope.ApprovalRequired
	case envelope.ModeDeny:
		r.approval = envelope.ApprovalDenied
	}
	return r, nil
}

func invalid(pointer string, rule envelope.Rule, message string) error {
	return &envelope.InvalidError{Fields: []envelope.FieldError{{Pointer: pointer, Rule: rule, Message: message}}}
}
