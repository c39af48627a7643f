// Package intake accepts proposals: it resolves, checks, decides and stores all
// of them, from every proposer. It works in sets: a thousand proposals cost the
// same few round trips as one. It does not execute anything.
package intake

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/decision"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/coalesce"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/slot"
	"github.com/countersign-dev/countersign/internal/telemetry"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// MaxBatch bounds the proposals of one Accept.
const MaxBatch = envelope.MaxItems

// Answer is the result of one proposal.
type Answer struct {
	Action envelope.ActionID
	// Known reports whether the tenant had this envelope already, with the same
	// content; it is not accepted a second time.
	Known bool
	// Mode and Source are the result of policy, for a new envelope.
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
	// ApprovalWait is the time that people have for a decision; zero means 5
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

// Accept decides and stores up to MaxBatch proposals in one transaction and
// returns an answer for each, in order. A refused proposal does not affect the
// others. An error means that none was accepted; submitting the same proposals
// again is safe if they have an external id.
func (in *Intake) Accept(ctx context.Context, by Submitter, proposals []*envelope.Proposal) ([]Answer, error) {
	answers, _, err := in.AcceptCounted(ctx, by, proposals)
	return answers, err
}

// Expect announces a caller that makes single proposals of a tenant, each when the one
// before has ended, until done is called. Many such callers share transactions more.
func (in *Intake) Expect(tenant envelope.TenantID) (done func()) { return in.single.Expect(tenant) }

// AcceptCounted is Accept that also returns the remaining limits of the
// submitter's session, those that its proposals count to.
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
	// joinedMost bounds the single proposals that share a transaction, and
	// joinedBytes the length of their arguments, so that none waits for a long
	// one.
	joinedMost  = 64
	joinedBytes = 8 << 10
)

// submission is the proposals of one call of Accept, with the answers to them.
type submission struct {
	by        Submitter
	proposals []*envelope.Proposal
	// traceparent is that of the request, in whose trace the actions run; "" for
	// none.
	traceparent string
	answers     []Answer
	// quotas are the remaining limits of the session, those that were counted.
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
// whether an error came before the commit. After it, a proposal without a key may
// have been accepted and must not be accepted again.
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
			err = postgres.InTx(ctx, in.db, postgres.API(tenant).Planned(), func(tx pgx.Tx) error {
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
var errTaken = fault.New(fault.Busy, "another request is submitting the same envelopes; try again")

// acceptance is the result of one transaction.
type acceptance struct {
	answers []Answer
	// quotas are the remaining limits of each submission's session, those that
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
	last := lastTurnsAhead(ctx, tx, tenant, ready.submissions)
	snap, state, err := in.catalog.CurrentAndState(ctx, tx, tenant)
	if err != nil {
		return acceptance{}, err
	}
	renamed, err := nameOccurrences(ctx, tx, tenant, ready.submissions, last)
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
		rows = slices.DeleteFunc(rows, func(r *row) bool { return known[r.at] })
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
	for _, r := range rows {
		if r.waits() {
			r.review = snap.Review(r.Tool, r.Risk).Or(in.cfg.ApprovalWait)
		}
	}
	if a.decisions, err = in.decisions.Insert(ctx, tx, tenant, decisionsOf(rows)); err != nil {
		return acceptance{}, err
	}
	write := audit.Write
	if ready.last {
		write = audit.WriteLast
	}
	if err = insert(ctx, tx, tenant, snap.Version, state.Now, rows); err == nil {
		err = write(ctx, tx, a.written(rows, snap.Version, state.Now)...)
	}
	if postgres.Duplicate(err) {
		err = errTaken
	}
	return a, err
}

// decisionsOf returns the decisions about rows, each once where they follow each other.
func decisionsOf(rows []*row) (decisions []policy.Decision) {
	for i, r := range rows {
		if i == 0 || r.decision.ID != rows[i-1].decision.ID {
			decisions = append(decisions, r.decision)
		}
	}
	return decisions
}

// written sets the answers of the rows that were written, and returns the events
// that record them: one for each submission.
func (a *acceptance) written(rows []*row, version int64, now time.Time) []audit.Event {
	var events []audit.Event
	for first := 0; first < len(rows); {
		by := rows[first].by
		end := first + 1
		for end < len(rows) && rows[end].by == by {
			end++
		}
		origin := audit.CanonicalHash(by.Origin)
		event := audit.Event{Tenant: by.Tenant, Kind: audit.Proposed, Actor: by.Actor(), Items: make([]audit.Item, end-first)}
		for i, r := range rows[first:end] {
			a.queued = a.queued || r.approval == envelope.ApprovalAuto
			a.answers[r.at] = Answer{Action: r.action, Mode: r.decision.Mode, Source: r.decision.Source, Trace: r.decision.TraceJSON, Approval: r.approval}
			recorded := r.record(version, origin, now)
			event.Items[i] = audit.Item{Action: r.action, Status: r.status(), Approval: r.approval, Digests: recorded.Digests()}
		}
		events, first = append(events, event), end
	}
	return events
}
