package fence

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/pause"
)

// Plan is what a recovery finds and does.
type Plan struct {
	State    State     `json:"state"`
	Reason   string    `json:"reason,omitzero"`
	Detail   string    `json:"detail,omitzero"`
	Database uuid.UUID `json:"database_id"`
	// Newest is the time of the newest event: what came later is not here.
	Newest time.Time `json:"newest_event"`
	// Unknown counts the actions of class once that become unknown; Sendable those that
	// go on, because no worker has sent them; Later those that are for later.
	Unknown  int64 `json:"unknown"`
	Sendable int64 `json:"sendable"`
	Later    int64 `json:"later"`
	// Repeatable counts the actions of other classes, which go on.
	Repeatable int64 `json:"repeatable"`
	// Approvals counts the actions of class once that wait for people, whose votes are void.
	Approvals int64 `json:"approvals"`
	// Recorded counts the calls that workers reported and whose actions are here, Lost
	// those whose actions are not.
	Recorded int64 `json:"recorded"`
	Lost     int64 `json:"lost"`
	// Workers counts the processes that have not ended, Silent those that have not
	// reported.
	Workers int64 `json:"workers"`
	Silent  int64 `json:"silent_workers"`
	// People is how many people have to apply the recovery. AskedBy is the first of them.
	People  int64  `json:"people"`
	AskedBy string `json:"asked_by,omitzero"`

	running int64
	login   string
}

// Recovery is an order to open a held database.
type Recovery struct {
	// Moved reports whether the database was held before it was moved, and nothing was
	// sent since.
	Moved bool
	// AskFor is for how long proposals of class once need a person, because they may
	// repeat one that was lost.
	AskFor time.Duration
	By     envelope.Actor
}

const (
	noteUnknown  = "the database was recovered: the call may have been made before"
	noteApproved = "the database was recovered: this may have been approved and sent before"
)

// Prepare returns what a recovery would do, in a transaction of the scope Admin.
func (r Recovery) Prepare(ctx context.Context, tx pgx.Tx) (Plan, error) {
	p, err := plan(ctx, tx)
	if err != nil || p.State != StateHeld {
		return p, err
	}
	switch {
	case r.Moved:
		p.Sendable, p.Unknown, p.Approvals = p.Unknown, 0, 0
	case p.Reason == ReasonLost && p.Workers > 0 && p.Silent == 0:
		// Every worker of before has reported its calls: nobody sent the others.
		p.Sendable, p.Unknown, p.Approvals = p.Unknown, 0, 0
	}
	return p, nil
}

// Apply recovers the database, in a transaction of the scope Admin. done is false if
// another person has to apply it too.
func (r Recovery) Apply(ctx context.Context, tx pgx.Tx) (p Plan, done bool, err error) {
	if err := lock(ctx, tx); err != nil {
		return p, false, err
	}
	if p, err = r.Prepare(ctx, tx); err != nil {
		return p, false, err
	}
	if err := r.check(p); err != nil {
		return p, false, err
	}
	if p.People > 1 && !r.Moved {
		switch p.AskedBy {
		case "":
			return p, false, askRecovery(ctx, tx)
		case p.login:
			return p, false, fault.New(fault.Denied, "reviews ask for two people: another login than %s has to apply the recovery, within an hour", p.login)
		}
	}
	if !r.Moved {
		if _, err := pause.SetEverything(ctx, tx, false, "the database was recovered", r.By); err != nil {
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
	p.State, p.Reason, p.Detail = StateOpen, "", ""
	return p, err == nil, err
}

// check returns why a database cannot be recovered now, or nil.
func (r Recovery) check(p Plan) error {
	switch {
	case p.State != StateHeld:
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
