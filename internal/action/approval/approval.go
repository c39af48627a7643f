// Package approval owns decisions by people: who may approve, edit or deny a
// pending envelope, how many must agree, and the effect of a decision or of an
// expired wait. A digest binds an approval to the arguments, the tool's
// definition and the policy decision, so that a change between approval and
// sending is detected. If decisions race, exactly one wins. The package does
// not execute approved actions; approving puts the envelope on the schedule.
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
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// MaxBatch bounds the envelopes of one batch of decisions.
const MaxBatch = 500

// Decider is the person who decides. An agent is never a Decider.
type Decider struct {
	Tenant envelope.TenantID
	Token  uuid.UUID
	// Person identifies people who hold more than one token. Zero means unknown;
	// the token then stands for the person.
	Person uuid.UUID
	// Operator is the person in the audit log; zero if unknown.
	Operator uuid.UUID
	Name     string
	// Tools are the patterns of the tools that the token is for; nil is all.
	Tools []string
	// PolicyWrite reports whether the decider may change policy, and so may make a
	// Wide grant.
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

// Approval holds the options of an approval.
type Approval struct {
	// Note is stored in the audit log and shown to the agent.
	Note string
	// IfMatch is the ETag of the action as the approver saw it. If it is set and
	// outdated, the error is fault.Stale; if it is empty and the action was edited
	// after its proposal, the error is fault.Unconditional.
	IfMatch string
	// Args, if set, replaces the proposed arguments.
	Args json.RawMessage
	// Revise, if set, returns Args for the tool and the arguments that the action has.
	Revise func(ctx context.Context, tx pgx.Tx, tool *catalog.Tool, args json.RawMessage) (json.RawMessage, error)
	// Always, if set, also grants approval to similar future actions.
	Always *Always
}

// Denial holds the options of a denial.
type Denial struct {
	// Note is the reason, stored in the audit log and shown to the agent.
	Note string
	// IfMatch is as in Approval.
	IfMatch string
}

// Edit is a change to a pending envelope.
type Edit struct {
	// Args replaces the envelope's arguments.
	Args json.RawMessage
	// Note is the reason, stored in the audit log.
	Note string
	// IfMatch is as in Approval.
	IfMatch string
}

// Result is the state of an envelope after a decision.
type Result struct {
	Action envelope.ActionID
	// Approval is ApprovalRequired while more people must agree.
	Approval envelope.Approval
	// Needed and Given count the people who must agree, and do.
	Needed, Given int
	// Grant is the grant that Always made; zero if none.
	Grant uuid.UUID
	// Err is set only in batches. It is the fault for which nothing was decided about
	// the envelope; of the other fields only Action is then set.
	Err error
}

// Approve approves a pending envelope, or adds one of the votes that it needs.
// Policy is evaluated again: if it now denies the envelope, or the tool has
// changed since the proposal, the error is fault.Conflict and nothing changes.
// fault.Gone means that the time to decide is over. fault.Denied means that
// the decider proposed the envelope, or that the token does not cover its
// tool.
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
		if a.Revise != nil {
			if err := m.checkDefinition(); err != nil {
				return err
			}
			if a.Args, err = a.Revise(ctx, tx, m.Tool, m.Args); err != nil {
				return err
			}
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

// ApproveMany approves up to MaxBatch envelopes without changes and returns a
// result for each, in order. A failed approval does not affect the others.
// seen holds the ETags of some of them, or is nil.
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

// ApproveAlone approves pending envelopes in the caller's transaction by the vote
// of one person, who may have proposed them, whatever the review rules require.
// It is for reversals of what triage did in the person's own mail (ADR 55); the
// caller has checked that. Policy is evaluated again, as in Approve. The caller
// must call committed after the commit, and only then.
func (d *Service) ApproveAlone(ctx context.Context, tx pgx.Tx, by Decider, actions []envelope.ActionID, note string) (all []Result, committed func(), err error) {
	s, err := d.open(ctx, tx, by, actions...)
	if err != nil {
		return nil, nil, err
	}
	for _, m := range s.items {
		m.alone = true
	}
	if all, err = s.approve(ctx, note, requestedVotes(actions, nil)); err != nil {
		return nil, nil, err
	}
	return all, func() { d.wake(all...) }, nil
}

// Deny denies a pending envelope; one denial is enough. The note reaches the
// agent. Errors are those of Approve, except for those about policy and the
// tool's definition.
func (d *Service) Deny(ctx context.Context, by Decider, action envelope.ActionID, with Denial) error {
	all, err := d.DenyMany(ctx, by, []envelope.ActionID{action}, with.Note, map[envelope.ActionID]string{action: with.IfMatch})
	if err != nil {
		return err
	}
	return all[0].Err
}

// DenyMany denies up to MaxBatch envelopes and returns a result for each, in
// order. seen is as in ApproveMany.
func (d *Service) DenyMany(ctx context.Context, by Decider, actions []envelope.ActionID, note string, seen map[envelope.ActionID]string) ([]Result, error) {
	return d.many(ctx, by, actions, func(s *decisionTx) ([]Result, error) {
		return s.deny(ctx, note, requestedVotes(actions, seen))
	})
}

// requestedVotes returns a vote for each of the actions. A vote is for the
// version that seen has the ETag of, if it has one.
func requestedVotes(actions []envelope.ActionID, seen map[envelope.ActionID]string) []requestedVote {
	requested := make([]requestedVote, len(actions))
	for i, a := range actions {
		requested[i] = requestedVote{action: a, ifMatch: seen[a], find: (*decisionTx).findSeen}
	}
	return requested
}

// Edit replaces the arguments of a pending envelope, which stays pending.
// Earlier votes become void. The arguments are checked against the tool's
// schema (the error is an *envelope.InvalidError with pointers below /args)
// and against policy; if policy denies them, the error is fault.Conflict.
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

// inTx runs fn in a transaction in which no call waits for a slot.
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

// wake wakes the workers if an envelope was put on the schedule.
func (d *Service) wake(all ...Result) {
	for _, s := range all {
		if s.Approval == envelope.ApprovalGranted {
			d.cfg.Wake()
			return
		}
	}
}
