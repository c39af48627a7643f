package reversal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/deadletter"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// UndoRequest is the undo of up to MaxBatch acts of triage by the operator whom
// the mail account names.
type UndoRequest struct {
	// By proposes the reversals, and Decider, the same caller, approves them.
	By      intake.Submitter
	Decider approval.Decider
	// Sees reports whether By may see the actions of a session.
	Sees    func(session string) bool
	Actions []envelope.ActionID
	// DryRun changes nothing. The answers are those that Undo would return.
	DryRun bool
}

// Undone is the answer about one act.
type Undone struct {
	Answer
	// Account and Message are the act's, if it is triage's.
	Account string
	Message uuid.UUID
	// Result is one of the results of wire.TriageUndoItem.
	Result string
}

// act is something that triage did or wants to do about a message.
type act struct {
	action    envelope.ActionID
	message   uuid.UUID
	account   string
	operator  uuid.UUID
	named     bool
	edited    bool
	holds     bool // its effect is there, as far as actions show
	reversing bool // a reversal of it has not ended
	free      bool // it may be taken back in any order
}

// undo is an UndoRequest in its transaction.
type undo struct {
	UndoRequest
	service   *Service
	approvals *approval.Service
	settings  *settings.Settings
	calls     map[envelope.ActionID]*call
	acts      map[envelope.ActionID]*act
	newest    map[uuid.UUID][]*act // by message
	// last are the last reversals of the actions.
	last map[envelope.ActionID]*envelope.Envelope

	answers   []Undone
	proposals []*envelope.Proposal
	proposed  []int // the answers of proposals
	dead      []envelope.ActionID
	waiting   []int // the answers about reversals that wait for approval
	committed []func()
}

// Undo takes back acts of triage in one transaction, and returns an answer for
// each, in order: an act that was not sent is withdrawn, and for the rest the reversals
// are proposed and approved by the caller alone. Of several acts on one message
// only the newest is taken back; the answer about the others is that they wait.
// Repeating a request continues where the last one ended: existing reversals are
// kept, and failed ones are tried again. An error means that nothing was done. The
// caller wakes the workers.
func (s *Service) Undo(ctx context.Context, approvals *approval.Service, req UndoRequest) ([]Undone, error) {
	if len(req.Actions) > MaxBatch {
		return nil, fault.New(fault.Invalid, "at most %d actions at once", MaxBatch)
	}
	u := &undo{UndoRequest: req, service: s, approvals: approvals}
	err := postgres.InTx(ctx, s.db, postgres.API(req.By.Tenant), func(tx pgx.Tx) error {
		*u = undo{UndoRequest: req, service: s, approvals: approvals} // a retried transaction begins again
		err := u.run(ctx, tx)
		if err == nil && req.DryRun {
			err = errDryRun
		}
		return err
	})
	switch {
	case errors.Is(err, errDryRun):
		return u.answers, nil
	case err != nil:
		return nil, err
	}
	for _, done := range u.committed {
		done()
	}
	return u.answers, nil
}

func (u *undo) run(ctx context.Context, tx pgx.Tx) (err error) {
	if u.calls, err = read(ctx, tx, u.By.Tenant, u.Actions); err != nil {
		return err
	}
	if u.acts, u.newest, err = actsOf(ctx, tx, u.By.Tenant, u.Actions); err != nil {
		return err
	}
	if u.settings, err = u.service.cache.Current(ctx, tx, u.By.Tenant); err != nil {
		return err
	}
	if err := u.readReversals(ctx, tx); err != nil {
		return err
	}
	u.answers = make([]Undone, len(u.Actions))
	first := make(map[envelope.ActionID]int, len(u.Actions))
	for i, id := range u.Actions {
		if _, again := first[id]; again {
			continue
		}
		first[id] = i
		u.answers[i] = Undone{Answer: Answer{Reverted: id}, Result: wire.ResultRefused}
		if u.answers[i].Err, err = u.answer(ctx, tx, i, id); err != nil {
			return err
		}
	}
	if err := errors.Join(u.replay(ctx, tx), u.propose(ctx, tx)); err != nil {
		return err
	}
	if err := u.approve(ctx, tx); err != nil {
		return err
	}
	for i, id := range u.Actions {
		u.answers[i] = u.answers[first[id]]
	}
	return nil
}

// readReversals reads the last reversals of the actions.
func (u *undo) readReversals(ctx context.Context, tx pgx.Tx) error {
	u.last = make(map[envelope.ActionID]*envelope.Envelope)
	var ids []envelope.ActionID
	for _, c := range u.calls {
		if c.try > 0 {
			ids = append(ids, c.last)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	views, err := outbox.Get(ctx, tx, u.By.Tenant, ids...)
	for i := range views {
		u.last[views[i].Envelope.ActionID] = &views[i].Envelope
	}
	return err
}

// answer answers about one act, or notes the change to make. refused is
// the reason why it cannot be undone.
func (u *undo) answer(ctx context.Context, tx pgx.Tx, i int, id envelope.ActionID) (refused, err error) {
	c, known := u.calls[id]
	if !known || !u.Sees(c.view.Envelope.SessionID) {
		return fault.New(fault.NotFound, "no action %s", id), nil
	}
	e, it, a := &c.view.Envelope, &u.answers[i], u.acts[id]
	it.Tool.Source, it.Tool.Action = e.Tool.Source, e.Tool.Name
	if refused = c.refuseKind(); refused != nil {
		return refused, nil
	}
	if a == nil {
		return refusal("/envelope/external_id", "not_triage", "triage did not do it; revert it instead (countersign revert %s)", id), nil
	}
	it.Account, it.Message = a.account, a.message
	if refused = u.mayUndo(a); refused != nil {
		return refused, nil
	}
	switch phase := c.view.Phase; phase {
	case envelope.PhasePending, envelope.PhaseApproved:
		switch err = outbox.Undo(ctx, tx, u.By.Tenant, id, u.By.Actor()); {
		case err == nil:
			it.Result, it.Phase = wire.ResultWithdrawn, envelope.PhaseUndone
		case fault.KindOf(err) == fault.Conflict:
			return err, nil
		}
		return nil, err
	case envelope.PhaseExecuting:
		it.Result, it.Phase = wire.ResultWaiting, phase
		return nil, nil
	case envelope.PhaseCompleted, envelope.PhaseUnknown, envelope.PhaseDenied, envelope.PhaseFailed, envelope.PhaseExpired, envelope.PhaseSkipped, envelope.PhaseUndone:
	}
	return u.reverse(i, c, a), nil
}

// mayUndo returns the reason why the caller may not undo an act alone, or nil.
func (u *undo) mayUndo(a *act) error {
	switch {
	case a.operator == uuid.Nil:
		return fault.At("/account", "no_operator", fault.Denied, "the mail account %s names no operator who may undo alone; an administrator names one (operator_id), or revert it (countersign revert %s)", a.account, a.action)
	case a.operator != u.By.Proposer():
		return fault.At("/account", "other_operator", fault.Denied, "the mail account %s names another operator; only they undo alone. Revert it instead (countersign revert %s)", a.account, a.action)
	case a.edited:
		return refusal("/proposed_args", "edited", "a person edited it, so it is not what triage proposed; revert it instead (countersign revert %s)", a.action)
	}
	return nil
}

// reverse notes the reversal of an act that may have had its effect. The error is
// the reason why there is none.
func (u *undo) reverse(i int, c *call, a *act) error {
	it := &u.answers[i]
	if c.try > 0 && !c.again() {
		if c.phase == envelope.PhasePending || c.dead {
			// It is approved, or called again, only if it is the one that would be made.
			if err := u.checkLast(c, it.Tool); err != nil {
				return err
			}
		}
		it.Action, it.Known, it.Phase, it.Result = c.last, true, c.phase, wire.ResultKnown
		switch {
		case c.phase == envelope.PhasePending:
			u.waiting = append(u.waiting, i)
		case c.dead:
			u.dead = append(u.dead, c.last)
			it.Phase, it.Result = envelope.PhaseApproved, wire.ResultAccepted
		case c.refuseAgain() != nil:
			it.Result, it.Action, it.Known = wire.ResultRefused, envelope.ActionID{}, false
			return c.refuseAgain()
		}
		return nil
	}
	if err := c.refuse(); err != nil {
		return err
	}
	if later := u.later(a); later != nil {
		if later.named || later.reversing {
			it.Result = wire.ResultWaiting
			return nil
		}
		return refusal("/message_id", "later_act", "triage changed the message again later; undo that first (countersign triage undo %s)", later.action)
	}
	if u.overridden(it.Tool) {
		return refusal("/tool", "other_reversal", "an administrator declared another reversal for %s than its source has; revert it instead (countersign revert %s)", it.Tool, a.action)
	}
	answer, p := c.answer(u.settings, u.By)
	if p == nil {
		return answer.Err
	}
	it.Answer, it.Result = answer, wire.ResultAccepted
	u.proposals, u.proposed = append(u.proposals, p), append(u.proposed, i)
	return nil
}

// overridden reports whether an administrator declared another reversal of a tool
// than its source does.
func (u *undo) overridden(key policy.Key) bool {
	tool, ok := u.settings.Tool(key)
	return ok && tool.Described.Reversal != nil
}

// checkLast returns an error unless the last reversal of an action calls what its
// source declares as the reversal: nobody edited it, and no administrator declared
// another one when it was proposed.
func (u *undo) checkLast(c *call, key policy.Key) error {
	e, last := &c.view.Envelope, u.last[c.last]
	if tool, ok := u.settings.Tool(key); ok && last != nil && tool.Reversal != nil && !u.overridden(key) {
		p, err := Propose(tool.Reversal, Call{Action: e.ActionID, Args: e.Args, Result: e.Result.Output}, c.try)
		if err == nil && p.Tool.Source == last.Tool.Source && p.Tool.Name == last.Tool.Name && sameArgs(p.Args, last.Args) {
			return nil
		}
	}
	return refusal("/reverted_by", "other_reversal",
		"its reversal %s is not the one that its source declares; withdraw it (countersign undo) or discard it (countersign dlq discard), and undo again", c.last)
}

func sameArgs(a, b json.RawMessage) bool {
	first, err := envelope.Canonical(a)
	second, other := envelope.Canonical(b)
	return err == nil && other == nil && bytes.Equal(first, second)
}

// later returns a later act on the same message that has to be taken back first,
// or nil.
func (u *undo) later(a *act) *act {
	if a.free {
		return nil
	}
	for _, other := range u.newest[a.message] {
		if other == a {
			return nil
		}
		if other.holds && !other.free {
			return other
		}
	}
	return nil
}

// replay tries reversals again that ended as dead letters: the message may be as
// triage left it again, or the mailbox reachable. A restore is idempotent, so
// repeating one whose outcome is unknown is harmless.
func (u *undo) replay(ctx context.Context, tx pgx.Tx) error {
	if len(u.dead) == 0 {
		return nil
	}
	_, err := deadletter.Replay(ctx, tx, u.By.Tenant, deadletter.BulkRequest{
		IDs: u.dead, Limit: len(u.dead), Actor: u.By.Actor(), Note: "undone again",
	}, deadletter.ReplayOptions{AllowDuplicates: true})
	return err
}

// propose proposes the new reversals.
func (u *undo) propose(ctx context.Context, tx pgx.Tx) error {
	if len(u.proposals) == 0 {
		return nil
	}
	by := u.By
	by.Reserved = true
	accepted, committed, err := u.service.in.AcceptTx(ctx, tx, by, u.proposals, true)
	if err != nil {
		return err
	}
	u.committed = append(u.committed, committed)
	for n, a := range accepted {
		it := &u.answers[u.proposed[n]]
		a.Err = below(a.Err)
		it.Answer.Answer, it.Phase = a, envelope.PhaseOf(a.Approval, envelope.StatusPending, "")
		switch {
		case a.Err != nil:
			it.Result = wire.ResultRefused
		case a.Mode == envelope.ModeDeny:
			it.Result = wire.ResultDenied
		case a.Approval == envelope.ApprovalRequired:
			u.waiting = append(u.waiting, u.proposed[n])
		}
	}
	return nil
}

// approve approves the reversals that wait, by the vote of the caller alone.
func (u *undo) approve(ctx context.Context, tx pgx.Tx) error {
	if len(u.waiting) == 0 {
		return nil
	}
	ids := make([]envelope.ActionID, len(u.waiting))
	for n, i := range u.waiting {
		ids[n] = u.answers[i].Action
	}
	results, committed, err := u.approvals.ApproveAlone(ctx, tx, u.Decider, ids, "undo of triage by the operator of the mail account")
	if err != nil {
		return fmt.Errorf("approve reversals: %w", err)
	}
	u.committed = append(u.committed, committed)
	for n, r := range results {
		it := &u.answers[u.waiting[n]]
		if it.Phase = envelope.PhaseApproved; r.Err != nil {
			it.Phase, it.Err, it.Result = envelope.PhasePending, r.Err, wire.ResultRefused
		}
	}
	return nil
}

// UndoFilter selects acts of triage. A zero field selects all.
type UndoFilter struct {
	// Operator is the person whom the accounts name.
	Operator uuid.UUID
	Account  string
	Run      uuid.UUID
	Session  string
	// Since and Until bound when the acts were done or, until then, proposed.
	Since, Until time.Time
	// Before is the last act of the previous page, and Limit the size of a page.
	Before UndoPlace
	Limit  int
}

// UndoPlace is the place of an act in the order of UndoFilter.
type UndoPlace struct {
	Action envelope.ActionID
	At     time.Time
}

// Check returns an error that names the invalid field of a filter, which is at a
// pointer.
func (f UndoFilter) Check(at string) error {
	if !f.Until.IsZero() && !f.Since.Before(f.Until) {
		return check.Invalid(at+"/until", check.RuleOrder, "must be later than since")
	}
	return nil
}
