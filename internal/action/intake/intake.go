// Package intake accepts proposals: it resolves, checks, decides and writes all
// of them, whoever makes them. It works in sets: a thousand proposals cost the
// same few round trips as one. It does not execute anything.
package intake

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/decision"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/coalesce"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/schema"
	"github.com/countersign-dev/countersign/internal/slot"
	"github.com/countersign-dev/countersign/internal/telemetry"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// MaxBatch bounds the proposals of one Accept.
const MaxBatch = envelope.MaxItems

// Submitter is who proposes.
type Submitter struct {
	Tenant envelope.TenantID
	// Token identifies the submitter, so that nobody approves their own
	// proposal; the zero UUID is the system itself.
	Token uuid.UUID
	// Person is the person behind the token, the same for all their tokens: no grant of
	// theirs covers the proposals. Zero is as if the token were all that is
	// known of them.
	Person uuid.UUID
	// Operator is the person as the record names it; zero where nobody said who
	// that is.
	Operator uuid.UUID
	// Name is the token's, or what Countersign itself is called here.
	Name string
	// Employee and Session, if set, bind the submitter: proposals get them,
	// and may not name others.
	Employee envelope.EmployeeID
	Session  string
	// Names are the automations, employees and sessions that its proposals may
	// name, in addition to Employee and where Session is not set.
	Names identity.Names
	// Tools are the patterns of the tools that there are for the submitter; nil is
	// all.
	Tools []string
	// Lists is which tools the submitter may list: errors suggest these for unknown
	// names.
	Lists settings.Listing
	// Sight is how far the submitter sees what others proposed, and Bindings are the
	// tokens under which it proposed before: a database login has another one each
	// time it is bound.
	Sight    Sight
	Bindings []uuid.UUID
	// Origin is the request that the proposals came with, as a JSON object;
	// nil if it was not recorded.
	Origin json.RawMessage
	// Workflow is the workflow that the proposals are steps of; zero for none.
	Workflow uuid.UUID
	// IDs are those that the actions get, in order of the proposals, where they are
	// new; nil has them made. Unlike an id in a proposal they do not identify it.
	IDs []envelope.ActionID
	// Plan is of the only proposal, as a dry run found it; nil if none is
	// presented. A change since then rejects the proposal.
	Plan *Plan
	// Base, if set, names the only proposal: its external id is Base and twelve digits,
	// which are those of the last such envelope until that one has ended.
	Base string
	// Awaited reports whether the request that makes the proposals stays open until
	// the actions end: those that may run pass the others of their bucket. Whoever
	// sets it calls outbox.EndWait for actions that have not ended by then.
	Awaited bool
	// Reserved reports whether Countersign itself writes the proposals, perhaps in
	// the name of somebody else: they may name any employee and session,
	// automations that begin with ReservedPrefix, and envelopes as only
	// Countersign does.
	Reserved bool
}

// Proposer returns who is behind the token, or the token if that is not known.
func (by Submitter) Proposer() uuid.UUID {
	return cmp.Or(by.Person, by.Token)
}

// Actor returns the submitter as the record names it.
func (by *Submitter) Actor() envelope.Actor {
	return envelope.NewActor(by.Name, by.Token, by.Operator)
}

// Sight is the part of the tenant's actions that a submitter sees.
type Sight int

const (
	// SeesOwn is the submitter's own proposals.
	SeesOwn Sight = iota
	// SeesSession is also what others proposed in the submitter's session.
	SeesSession
	// SeesAll is everything of the tenant.
	SeesAll
)

// Sees reports whether the submitter sees the proposals of a token in a session.
func (by *Submitter) Sees(token uuid.UUID, session string) bool {
	return by.Reserved || by.Workflow != uuid.Nil || by.Sight == SeesAll || token == by.Token || slices.Contains(by.Bindings, token) ||
		by.Sight == SeesSession && by.Session != "" && session == by.Session
}

// Suggest returns a Suggester of the tools that the submitter may list.
func (by *Submitter) Suggest(snap *settings.Settings, now time.Time) *settings.Suggester {
	return snap.Suggest(settings.Viewer{Employee: by.Employee, Session: by.Session, Tools: by.Tools, Lists: by.Lists, Now: now})
}

// ErrTaken returns the error for a name of something that the submitter does not see. It
// is the same for everything unseen.
func ErrTaken() error {
	return fault.Coded(wire.CodeExternalIDTaken, fault.Conflict, "this external_id or action_id is taken by something that you may not see; take another one")
}

// Answer is the result of one proposal.
type Answer struct {
	Action envelope.ActionID
	// Known reports whether the tenant had this envelope already, with the same
	// content; it is not accepted a second time.
	Known bool
	// Mode and Source say what policy decided, for an envelope that is new.
	Mode   envelope.Mode
	Source string
	// Trace is the answer of every layer, as a JSON list of policy.Step.
	Trace json.RawMessage
	// Approval is the state of the approval, for an envelope that is new.
	Approval envelope.Approval
	// Err is the reason why the proposal was not accepted: an *envelope.InvalidError
	// or a fault. The other fields are then empty.
	Err error
}

// Scheduled reports whether the envelope was put on the schedule just now.
func (a Answer) Scheduled() bool {
	return !a.Known && a.Err == nil && a.Approval == envelope.ApprovalAuto
}

// Config configures an Intake.
type Config struct {
	// ApprovalWait is how long an envelope waits for a decision; zero means 5
	// minutes.
	ApprovalWait time.Duration
	// Wake is called after a commit that put something on the schedule. It
	// must not block. Losing a call delays work, and loses none.
	Wake func()
}

// Intake accepts proposals. It is safe for concurrent use.
type Intake struct {
	db      postgres.Begins
	catalog *settings.Cache
	cfg     Config

	decisions decision.Cache
	// single has single proposals that arrive at the same time share a transaction.
	single *coalesce.Group[envelope.TenantID, *submission]
}

// New returns an Intake.
func New(db postgres.Begins, cache *settings.Cache, cfg Config) *Intake {
	if cfg.ApprovalWait == 0 {
		cfg.ApprovalWait = 5 * time.Minute
	}
	if cfg.Wake == nil {
		cfg.Wake = func() {}
	}
	in := &Intake{db: db, catalog: cache, cfg: cfg}
	in.single = coalesce.New(joinedMost, in.acceptAll)
	return in
}

// Accept decides and writes up to MaxBatch proposals in one transaction and
// answers for each in order. A proposal that is refused leaves the others
// alone; an error means that none was accepted, and submitting the same
// proposals again is safe if they carry an external id.
func (in *Intake) Accept(ctx context.Context, by Submitter, proposals []*envelope.Proposal) ([]Answer, error) {
	answers, _, err := in.AcceptCounted(ctx, by, proposals)
	return answers, err
}

// AcceptCounted is Accept that also returns how much the submitter's session has
// left afterwards of the limits that its proposals count to.
func (in *Intake) AcceptCounted(ctx context.Context, by Submitter, proposals []*envelope.Proposal) ([]Answer, []fault.Quota, error) {
	if len(proposals) > MaxBatch {
		return nil, nil, fault.New(fault.Invalid, "at most %d proposals at once", MaxBatch)
	}
	s := newSubmission(ctx, by, proposals)
	var err error
	if s.joins() {
		err = in.single.Do(ctx, by.Tenant, s)
	} else {
		_, err = in.acceptAll(ctx, by.Tenant, []*submission{s})
	}
	if err != nil {
		return nil, nil, err
	}
	return s.answers, s.quotas, nil
}

const (
	// joinedMost is how many single proposals share a transaction at most, and
	// joinedBytes how long their arguments may be: nobody waits for a long one.
	joinedMost  = 64
	joinedBytes = 8 << 10
)

// submission is the proposals of one call of Accept, with the answers to them.
type submission struct {
	by        Submitter
	proposals []*envelope.Proposal
	// traceparent is that of the call, in whose trace the actions run; "" for none.
	traceparent string
	answers     []Answer
	// quotas is the rest of the session's limits, of those that were counted.
	quotas []fault.Quota
}

func newSubmission(ctx context.Context, by Submitter, proposals []*envelope.Proposal) *submission {
	return &submission{by: by, proposals: proposals, traceparent: telemetry.Inject(ctx)}
}

// joins reports whether the submission may share a transaction with others.
func (s *submission) joins() bool {
	return len(s.proposals) == 1 && s.by.Plan == nil && s.by.Workflow == uuid.Nil && lengthOf(s.proposals) <= joinedBytes
}

// acceptAll accepts submissions of a tenant in one transaction. undone reports
// whether an error came before the commit: after that a proposal without a key of
// its own may have been accepted, and is not to be accepted again.
func (in *Intake) acceptAll(ctx context.Context, tenant envelope.TenantID, all []*submission) (undone bool, err error) {
	if shareKeys(all) {
		return true, errTaken
	}
	var a acceptance
	ready := prepared{submissions: all, last: true}
	undone = true
	err = slot.Briefly(slot.For(ctx, tenant.String()), ready.length(), func(ctx context.Context) error {
		// At first the batch is written without looking for its ids, which is
		// cheaper. If one of them exists, nothing is written, and the batch is
		// processed again after looking for them; and again if another transaction
		// writes the same ids meanwhile.
		var err error
		for try := range 4 {
			err = postgres.InTx(ctx, in.db, postgres.API(tenant), func(tx pgx.Tx) error {
				var err error
				a, err = in.accept(ctx, tx, tenant, &ready, try > 0)
				undone = err != nil && !postgres.CommitSent(tx)
				return err
			})
			if !errors.Is(err, errTaken) {
				break
			}
		}
		return err
	})
	if err != nil {
		return undone, err
	}
	in.committed(tenant, &a, &ready)
	return false, nil
}

// committed answers the submissions after the commit that accepted them.
func (in *Intake) committed(tenant envelope.TenantID, a *acceptance, ready *prepared) {
	in.decisions.Add(tenant, a.decisions)
	if a.queued {
		in.cfg.Wake()
	}
	at := 0
	for i, s := range ready.submissions {
		s.answers, s.quotas = a.answers[at:at+len(s.proposals)], a.quotas[i]
		at += len(s.proposals)
	}
}

// errTaken is the error for a batch of which an id is taken, or may be.
var errTaken = fault.New(fault.Busy, "the same envelopes are being submitted elsewhere at this moment; submit them again")

// acceptance is the result of one transaction.
type acceptance struct {
	answers []Answer
	// quotas is the rest of the limits of each submission's session, of those that
	// were counted.
	quotas [][]fault.Quota
	// queued reports whether an action was scheduled.
	queued bool
	// decisions are stored as of the commit.
	decisions []policy.Decision
}

// accept accepts submissions of a tenant in one transaction. Its preparations are
// kept in ready, so that another try need not do it again.
func (in *Intake) accept(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, ready *prepared, look bool) (acceptance, error) {
	snap, state, err := in.catalog.CurrentAndState(ctx, tx, tenant)
	if err != nil {
		return acceptance{}, err
	}
	renamed, err := nameOccurrences(ctx, tx, tenant, ready.submissions)
	if err != nil {
		return acceptance{}, err
	}
	if renamed || ready.settings != snap {
		if err = ready.prepareAll(ctx, snap, state.Now); err != nil {
			return acceptance{}, err
		}
	}
	a := acceptance{answers: slices.Clone(ready.answers), quotas: make([][]fault.Quota, len(ready.submissions))}
	rows, doubtful := slices.Clone(ready.rows), slices.Clip(ready.doubtful)
	if look {
		doubtful = append(doubtful, rows...)
	}
	if len(doubtful) > 0 {
		known, err := findExisting(ctx, tx, tenant, doubtful, a.answers)
		if err != nil {
			return acceptance{}, err
		}
		rows = slices.DeleteFunc(rows, func(r row) bool { return known[r.at] })
	}
	if rows, err = refuseSessions(ctx, tx, tenant, rows, a.answers); err != nil {
		return acceptance{}, err
	}
	duplicates, rows := dedupe(rows)
	if len(rows) == 0 {
		return a, nil
	}
	if err := decide(ctx, tx, rows, state.Now); err != nil {
		return acceptance{}, err
	}
	if rows, err = matchPlans(look, rows, a.answers); err != nil {
		return acceptance{}, err
	}
	if rows, err = admit(ctx, tx, snap, in.cfg.ApprovalWait, look, rows, &a); err != nil {
		return acceptance{}, err
	}
	answerDuplicates(duplicates, a.answers)
	if len(rows) == 0 {
		return a, nil
	}
	for i := range rows {
		if r := &rows[i]; r.waits() {
			r.review = snap.Review(r.Tool, r.Risk).Or(in.cfg.ApprovalWait)
		}
	}
	decisions := make([]policy.Decision, len(rows))
	for i := range rows {
		decisions[i] = rows[i].decision
	}
	if a.decisions, err = in.decisions.Insert(ctx, tx, tenant, decisions); err != nil {
		return acceptance{}, err
	}
	if err := insert(ctx, tx, tenant, snap.Version, state.Now, rows); err != nil {
		return acceptance{}, err
	}
	var events []audit.Event
	for first := 0; first < len(rows); {
		by := rows[first].by
		end := first + 1
		for end < len(rows) && rows[end].by == by {
			end++
		}
		origin := audit.CanonicalHash(by.Origin)
		event := audit.Event{Tenant: tenant, Kind: audit.Proposed, Actor: by.Actor(), Items: make([]audit.Item, end-first)}
		for i := range rows[first:end] {
			r := &rows[first+i]
			a.queued = a.queued || r.approval == envelope.ApprovalAuto
			a.answers[r.at] = Answer{Action: r.action, Mode: r.decision.Mode, Source: r.decision.Source, Trace: r.decision.TraceJSON, Approval: r.approval}
			recorded := r.record(snap.Version, origin, state.Now)
			event.Items[i] = audit.Item{Action: r.action, Status: r.status(), Approval: r.approval, Digests: recorded.Digests()}
		}
		events, first = append(events, event), end
	}
	if ready.last {
		return a, audit.WriteLast(ctx, tx, events...)
	}
	return a, audit.Write(ctx, tx, events...)
}

// record returns the row of actions as the record covers it: what insert writes.
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

// lengthOf returns how many bytes the arguments of proposals have.
func lengthOf(proposals []*envelope.Proposal) int {
	length := 0
	for _, p := range proposals {
		length += len(p.Args)
	}
	return length
}

// prepared are submissions as far as they do not depend on a transaction.
type prepared struct {
	submissions []*submission
	// last reports whether the transaction ends with them.
	last     bool
	settings *settings.Settings
	// rows are those that may be written.
	rows []row
	// answers have the reason for each proposal that cannot be accepted. If it
	// has a key, it is also doubtful, since the tenant may have accepted the same
	// envelope earlier.
	answers  []Answer
	doubtful []row
}

// length returns how many bytes the arguments of all proposals have.
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
	*all = prepared{submissions: all.submissions, last: all.last, rows: make([]row, 0, n), answers: make([]Answer, 0, n)}
	for i, s := range all.submissions {
		suggest := s.by.Suggest(snap, now)
		for j, p := range s.proposals {
			r, err := prepare(ctx, budget, digester, snap, &s.by, p)
			err = suggest.Tool(p.Tool, err)
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
	// review is how people review the action, if it waits for them.
	review settings.Review
}

// waits reports whether people have to decide about the action.
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

// prepare resolves and checks one proposal.
func prepare(ctx context.Context, budget *schema.Budget, digester *envelope.Digester, snap *settings.Settings, by *Submitter, p *envelope.Proposal) (row, error) {
	r := row{by: by, proposal: p, Action: decision.Action{Settings: snap, Proposal: settings.Proposal{
		Automation: p.AutomationID, AskedApproval: p.Approval == envelope.ApprovalRequired, Employee: p.EmployeeID, Session: p.SessionID,
		Args: p.Args, Tools: by.Tools, Person: by.Proposer(),
	}}}
	r.external, r.action, r.chosen = p.ExternalID, p.ActionID, p.ActionID != (envelope.ActionID{})
	if p.TenantID != (envelope.TenantID{}) && p.TenantID != by.Tenant {
		return r, check.Invalid("/tenant_id", "tenant", "is not the tenant of this token; leave it out")
	}
	if by.Employee != (envelope.EmployeeID{}) {
		if p.EmployeeID != (envelope.EmployeeID{}) && p.EmployeeID != by.Employee {
			return r, check.Invalid("/employee_id", "employee", "is not the employee of this token; leave it out")
		}
		r.Employee = by.Employee
	} else if err := by.CheckEmployee(p.EmployeeID); err != nil {
		return r, err
	}
	if by.Session != "" {
		if p.SessionID != "" && p.SessionID != by.Session {
			return r, check.Invalid("/session_id", "session", "is not the session of this token; leave it out")
		}
		r.Session = by.Session
	} else if err := by.CheckSession(p.SessionID); err != nil {
		return r, err
	}
	err := by.CheckAutomation(p.AutomationID)
	if err != nil {
		return r, err
	}
	if r.digest, r.args, err = digester.Digests(p); err != nil {
		return r, err
	}
	if err = by.checkName(p.ExternalID); err != nil {
		return r, err
	}
	if r.Tool, err = snap.Resolve(p.Tool, by.Tools); err != nil {
		return r, err
	}
	if err = r.Tool.CheckWithin(ctx, budget, p.Args); err != nil {
		return r, err
	}
	var known bool
	if r.bucket, known = snap.Limits.Bucket(r.bucketName()); !known {
		return r, check.Invalid("/constraints/rate_bucket", "unknown_bucket", "%s", snap.Limits.UnknownBucket(r.bucketName()))
	}
	if !r.chosen {
		r.action = envelope.NewActionID()
	}
	r.Risk = policy.RaiseRisk(p.Risk, r.Tool.Risk.Envelope())
	return r, nil
}

// decide sets the decisions about rows, and what follows from them.
func decide(ctx context.Context, tx pgx.Tx, rows []row, now time.Time) error {
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
