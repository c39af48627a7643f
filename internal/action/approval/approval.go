// Package approval owns decisions by people: who may approve, edit or deny an
// envelope that waits, how many must agree, and what a decision, or none in
// time, leads to. A digest binds an approval to the arguments, the
// tool's definition and what policy said, so that a change between approval
// and sending shows. Of decisions that race exactly one wins. The package
// does not execute approved actions; approving puts the envelope on the
// schedule.
package approval

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/slot"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// MaxBatch bounds the envelopes that are decided about at once.
const MaxBatch = 500

// Decider is who decides. Agents are never made one.
type Decider struct {
	Tenant envelope.TenantID
	Token  uuid.UUID
	// Person identifies people who hold more than one token; zero is as if
	// the token were all that is known of them.
	Person uuid.UUID
	// Operator is the person as the record names it; zero where nobody said who
	// that is.
	Operator uuid.UUID
	Name     string
	// Tools are the patterns of the tools that the token is for; nil is all.
	Tools []string
	// PolicyWrite reports whether they may change policy, and so make a grant
	// that is Wide.
	PolicyWrite bool
}

func (by Decider) person() uuid.UUID {
	if by.Person != uuid.Nil {
		return by.Person
	}
	return by.Token
}

// actor returns the decider as the record names it.
func (by Decider) actor() envelope.Actor {
	return envelope.NewActor(by.Name, by.Token, by.Operator)
}

// Config configures a Service.
type Config struct {
	// Wake is called after a commit that put something on the schedule.
	Wake func()
}

// Service records people's decisions. It is safe for concurrent use.
type Service struct {
	db      postgres.Begins
	catalog *settings.Cache
	cfg     Config
}

// New returns a Service.
func New(db postgres.Begins, cache *settings.Cache, cfg Config) *Service {
	if cfg.Wake == nil {
		cfg.Wake = func() {}
	}
	return &Service{db: db, catalog: cache, cfg: cfg}
}

// Approval is how an envelope is approved.
type Approval struct {
	// Note is for the record and for the agent.
	Note string
	// IfMatch is the ETag of the action as the approver saw it. If it is set,
	// and the action has another by now, the error is fault.Stale; if it is
	// empty, and the action was edited after it was proposed, the error is
	// fault.Unconditional.
	IfMatch string
	// Args, if set, are sent in place of the ones that were proposed.
	Args json.RawMessage
	// Always, if set, lets similar actions through from now on.
	Always *Always
}

// Denial is how an action is denied.
type Denial struct {
	// Note is the reason, for the record and for the agent.
	Note string
	// IfMatch is as in Approval.
	IfMatch string
}

// Edit is a change of an envelope that waits for a decision.
type Edit struct {
	// Args are sent in place of the ones that it has.
	Args json.RawMessage
	// Note is the reason, for the record.
	Note string
	// IfMatch is as in Approval.
	IfMatch string
}

// Result is how an envelope stands after a decision.
type Result struct {
	Action envelope.ActionID
	// Approval is ApprovalRequired while more people must agree.
	Approval envelope.Approval
	// Needed and Given count the people who must agree, and do.
	Needed, Given int
	// Grant is what Always made; zero if nothing.
	Grant uuid.UUID
	// Err is, in a batch, the reason why nothing was decided about the envelope: it is
	// a fault. Of the other fields only Action is then set.
	Err error
}

// Approve lets an envelope run that waits for a decision, or counts as one of
// the votes that it needs. Policy is asked again: if it denies the envelope by
// now, or the tool is no longer the one that was proposed, that is
// fault.Conflict and nothing changes. fault.Gone means that the time to decide
// is over, fault.Denied that it is the decider's own proposal, or of a tool
// that the token is not for.
func (d *Service) Approve(ctx context.Context, by Decider, action envelope.ActionID, a Approval) (Result, error) {
	var done Result
	err := d.inTx(ctx, by, func(ctx context.Context, tx pgx.Tx) error {
		s, err := d.open(ctx, tx, by, action)
		if err != nil {
			return err
		}
		m, err := s.findSeen(action, a.IfMatch)
		if err != nil {
			return err
		}
		if a.Args != nil {
			if err := s.edit(ctx, m, a.Args, a.Note); err != nil {
				return err
			}
		}
		all, err := s.approve(ctx, a.Note, []requestedVote{{action: action, find: (*decisionTx).find}})
		if err != nil {
			return err
		}
		if done = all[0]; done.Err != nil {
			return done.Err
		}
		if a.Always != nil {
			done.Grant, err = s.always(ctx, m, *a.Always, a.Note)
		}
		return err
	})
	if err != nil {
		return Result{}, err
	}
	d.wake(done)
	return done, nil
}

// ApproveMany approves up to MaxBatch envelopes as they are, and answers for
// each in order. One that cannot be approved does not affect the others. seen
// holds the ETags of some of them, or is nil.
func (d *Service) ApproveMany(ctx context.Context, by Decider, actions []envelope.ActionID, note string, seen map[envelope.ActionID]string) ([]Result, error) {
	all, err := d.many(ctx, by, actions, func(s *decisionTx) ([]Result, error) {
		return s.approve(ctx, note, requestedVotes(actions, seen))
	})
	if err != nil {
		return nil, err
	}
	d.wake(all...)
	return all, nil
}

// Deny refuses an envelope that waits for a decision; one who denies is
// enough. The note reaches the agent. Errors are as with Approve, but for what
// policy or the tool's definition say.
func (d *Service) Deny(ctx context.Context, by Decider, action envelope.ActionID, with Denial) error {
	all, err := d.DenyMany(ctx, by, []envelope.ActionID{action}, with.Note, map[envelope.ActionID]string{action: with.IfMatch})
	if err != nil {
		return err
	}
	return all[0].Err
}

// DenyMany refuses up to MaxBatch envelopes, and answers for each in order.
// seen is as in ApproveMany.
func (d *Service) DenyMany(ctx context.Context, by Decider, actions []envelope.ActionID, note string, seen map[envelope.ActionID]string) ([]Result, error) {
	return d.many(ctx, by, actions, func(s *decisionTx) ([]Result, error) {
		return s.deny(ctx, note, requestedVotes(actions, seen))
	})
}

// requestedVotes returns a vote for each of the actions, about the version that
// was seen if seen has its ETag.
func requestedVotes(actions []envelope.ActionID, seen map[envelope.ActionID]string) []requestedVote {
	requested := make([]requestedVote, len(actions))
	for i, a := range actions {
		requested[i] = requestedVote{action: a, ifMatch: seen[a], find: (*decisionTx).findSeen}
	}
	return requested
}

// Edit changes what will be sent, and leaves the envelope waiting. Votes that
// it had are void: they were for something else. The arguments are held to the
// tool's schema (an *envelope.InvalidError, with pointers below /args), and
// policy is asked about them; if it denies them, that is fault.Conflict.
func (d *Service) Edit(ctx context.Context, by Decider, action envelope.ActionID, e Edit) error {
	return d.inTx(ctx, by, func(ctx context.Context, tx pgx.Tx) error {
		s, err := d.open(ctx, tx, by, action)
		if err != nil {
			return err
		}
		m, err := s.findSeen(action, e.IfMatch)
		if err != nil {
			return err
		}
		return s.edit(ctx, m, e.Args, e.Note)
	})
}

// inTx runs fn in a transaction in which nothing waits for a slot.
func (d *Service) inTx(ctx context.Context, by Decider, fn func(ctx context.Context, tx pgx.Tx) error) error {
	return slot.Briefly(slot.For(ctx, by.Tenant.String()), 0, func(ctx context.Context) error {
		return postgres.InTx(ctx, d.db, postgres.API(by.Tenant), func(tx pgx.Tx) error { return fn(ctx, tx) })
	})
}

func (d *Service) many(ctx context.Context, by Decider, actions []envelope.ActionID, decide func(s *decisionTx) ([]Result, error)) ([]Result, error) {
	if len(actions) > MaxBatch {
		return nil, fault.New(fault.Invalid, "at most %d envelopes at once", MaxBatch)
	}
	var all []Result
	err := postgres.InTx(ctx, d.db, postgres.API(by.Tenant), func(tx pgx.Tx) error {
		s, err := d.open(ctx, tx, by, actions...)
		if err != nil {
			return err
		}
		all, err = decide(s)
		return err
	})
	return all, err
}

// wake wakes the fleet if something was put on the schedule.
func (d *Service) wake(all ...Result) {
	for _, s := range all {
		if s.Approval == envelope.ApprovalGranted {
			d.cfg.Wake()
			return
		}
	}
}
