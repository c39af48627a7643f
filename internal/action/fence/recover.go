package fence

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/pause"
)

// Plan holds the findings and the changes of a recovery.
type Plan struct {
	wire.Recovery

	running      int64
	asked, login string
	onlyTenant   bool
}

// Recovery is an order to open a held database.
type Recovery struct {
	// Moved reports whether the database was held before it was moved, and nothing was
	// sent since.
	Moved bool
	// AskFor is for how long proposals of classes once and keyed need a person, because they may
	// repeat one that was lost.
	AskFor time.Duration
	By     envelope.Actor
	// Tenant is that of the audit head, if it is set. Head is one that was noted
	// elsewhere; zero for none.
	Tenant envelope.TenantID
	Head   audit.Head
	// Person asks for a recovery through the API, which pauses the tenant alone; zero
	// for one on the database, where the login stands for the person.
	Person uuid.UUID
	// NeedsPolicyWrite is that of the tenant's pause.
	NeedsPolicyWrite bool
	// Seen returns an error if the plan is not the one that the person has seen; nil
	// for no comparison.
	Seen func(Plan) error
}

const (
	noteUnknown  = "the database was recovered: the call may have been made before"
	noteApproved = "the database was recovered: this may have been approved and sent before"
)

// Prepare returns the effects of a recovery, in a transaction of the scope Admin or API.
func (r Recovery) Prepare(ctx context.Context, tx pgx.Tx) (Plan, error) {
	p, err := r.plan(ctx, tx)
	if err != nil || !p.held() {
		return p, err
	}
	// If every worker of before has reported its calls, nobody sent the others.
	if r.Moved || p.Reason == ReasonLost && p.Workers > 0 && p.Silent == 0 {
		p.Sendable, p.Unknown, p.Approvals = p.Unknown, 0, 0
		for i := range p.Classes {
			c := &p.Classes[i]
			c.Continue, c.Unknown, c.Reconcilable = c.Continue+c.Unknown, 0, 0
		}
	}
	return p, nil
}

func (p Plan) held() bool { return p.State == string(StateHeld) }

// Apply recovers the database, in a transaction of the scope Admin or API. done is false
// if another person has to apply it too.
func (r Recovery) Apply(ctx context.Context, tx pgx.Tx) (p Plan, done bool, err error) {
	if err := lock(ctx, tx); err != nil {
		return p, false, err
	}
	if p, err = r.Prepare(ctx, tx); err != nil {
		return p, false, err
	}
	if r.Seen != nil {
		if err := r.Seen(p); err != nil {
			return p, false, err
		}
	}
	if err := r.check(p); err != nil {
		return p, false, err
	}
	if p.People > 1 && !r.Moved {
		person := p.login
		if r.Person != uuid.Nil {
			person = r.Person.String()
		}
		switch {
		case p.AskedBy == "":
			p.AskedBy = r.By
			return p, false, ask(ctx, tx, p, r.By, person)
		case p.asked == person:
			return p, false, fault.New(fault.Denied, "reviews ask for two people: another one than %s has to apply the recovery, within an hour", p.AskedBy)
		}
	}
	if !r.Moved {
		if err := r.pause(ctx, tx); err != nil {
			return p, false, err
		}
	}
	if p.Unknown > 0 {
		if err := endUnsure(ctx, tx, r.By); err != nil {
			return p, false, err
		}
	}
	if p.Approvals > 0 {
		if err := voidApprovals(ctx, tx, r.By); err != nil {
			return p, false, err
		}
	}
	p.Database, err = reopen(ctx, tx, r)
	p.State, p.Reason, p.Detail, p.AskedBy = string(StateOpen), "", "", ""
	return p, err == nil, err
}

// pause pauses the tenant of a recovery, or everything.
func (r Recovery) pause(ctx context.Context, tx pgx.Tx) (err error) {
	const reason = "the database was recovered"
	if r.Person == uuid.Nil {
		_, err = pause.SetEverything(ctx, tx, false, reason, r.By)
		return err
	}
	_, err = pause.Set(ctx, tx, r.Tenant, pause.Order{
		Target: pause.Target{Scope: pause.Tenant}, Reason: reason, By: r.By, NeedsPolicyWrite: r.NeedsPolicyWrite,
	})
	return err
}

// check returns why a database cannot be recovered now, or nil.
func (r Recovery) check(p Plan) error {
	switch {
	case !p.onlyTenant:
		return fault.New(fault.Denied, "the database has several tenants, all of which a recovery concerns; it takes a login of the database: countersign recover --database")
	case !p.held():
		return fault.New(fault.Conflict, "the database is not held, and needs no recovery")
	case p.running > 0:
		return fault.New(fault.Conflict, "%d calls are running; try again when they have ended, or their leases have", p.running)
	case r.Moved && p.Reason != ReasonMoved:
		return fault.New(fault.Conflict, "the database was not held before it was moved, so actions may have been sent since; recover it without --moved")
	case r.Moved && p.Workers > 0:
		return fault.New(fault.Conflict, "%d workers were not stopped before the database was moved, so actions may have been sent since; recover it without --moved", p.Workers)
	}
	return nil
}

// HoldForMove holds a database before it is moved, in a transaction of the scope Admin.
func HoldForMove(ctx context.Context, tx pgx.Tx, by envelope.Actor) error {
	if err := lock(ctx, tx); err != nil {
		return err
	}
	s, err := Read(ctx, tx)
	if err != nil {
		return err
	}
	if why := s.Why(); s.State != StateOpen || why != "" {
		return fault.New(fault.Conflict, "the database is %s, and cannot be moved: %s", s.State, why)
	}
	return set(ctx, tx, by, &s, StateHeld, ReasonMoved, fmt.Sprintf("%s holds it for a move", by))
}
