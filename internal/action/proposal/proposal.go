// Package proposal turns proposals made in SQL into actions: it takes the committed
// rows of the table proposals, in sets, through intake, and stores the results for
// their proposers. The database decides who may propose (countersign.propose), and
// intake which proposals are accepted; this package decides neither.
package proposal

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
)

const (
	// takeAtOnce bounds the proposals of one step, and takeBytes their approximate
	// size: checking arguments takes time by their length, and the proposals of other
	// logins wait meanwhile.
	takeAtOnce = intake.MaxBatch
	takeBytes  = 1 << 20
	// manyRefused is the number of refusals in one step after which a login's
	// proposals wait, a millisecond for each, so that other logins get their turn.
	// The next step takes at most as many.
	manyRefused = 100
	// errorPause is the delay of a login's proposals after an error.
	errorPause = 5 * time.Second
)

// problemOf returns the problem of an error that intake answered a proposal with.
func problemOf(err error) wire.SQLProposalProblem {
	p := wire.SQLProposalProblem{Kind: string(fault.KindOf(err)), Detail: err.Error(), Errors: check.Fields(err)}
	if e, ok := errors.AsType[*fault.Error](err); ok {
		p.Detail = e.Text // without the cause
	}
	return p
}

// ruleOf returns the rule by which a proposal was refused, for the record.
func ruleOf(p *wire.SQLProposalProblem) string {
	if len(p.Errors) > 0 {
		return string(p.Errors[0].Rule)
	}
	return p.Kind
}

// Taker takes proposals. Any number of processes may run one at the same time; a
// login's proposals are taken by one of them at a time, in their order.
type Taker struct {
	db     postgres.Begins
	intake *intake.Intake
	log    *slog.Logger
}

// NewTaker returns a Taker that submits proposals to an intake.
func NewTaker(db postgres.Begins, in *intake.Intake, log *slog.Logger) *Taker {
	return &Taker{db: db, intake: in, log: log}
}

// Step takes the next proposals of one login: in one transaction they become
// actions or are refused with a reason. It returns false if no proposal may be
// taken now. pause is the delay of the login's other proposals, or 0.
func (t *Taker) Step(ctx context.Context) (more bool, pause time.Duration, err error) {
	found, err := t.step(ctx, false)
	for try := 0; try < 3 && errors.Is(err, fault.Busy) && ctx.Err() == nil; try++ {
		found, err = t.step(ctx, true) // some are there, or are being written
	}
	switch {
	case found == nil || err != nil && ctx.Err() != nil:
		return found != nil, 0, err
	case err == nil:
		return true, found.pause, nil
	}
	// Other logins continue.
	t.log.WarnContext(ctx, "proposals of a database login held", slog.String("tenant_id", found.tenant.String()), slog.String("login", found.name), slog.Any("error", err))
	return true, errorPause, postgres.InTx(ctx, t.db, postgres.Worker(), func(tx pgx.Tx) error { return hold(ctx, tx, found.id, errorPause) })
}

// login is a database login whose proposals are taken.
type login struct {
	tenant envelope.TenantID
	id     uuid.UUID
	name   string
	by     intake.Submitter
	// closed reports whether it may no longer propose.
	closed bool
	// held reports whether its last step ended in a pause, and pause is that of this
	// one.
	held  bool
	pause time.Duration
	// counted is the last count of waiting proposals, and uncounted reports whether
	// it is old.
	counted   int
	uncounted bool
}

// taken is a proposal as it was stored.
type taken struct {
	id   uuid.UUID
	body []byte
}

// size returns the size of proposals in bytes.
func size(all []taken) (n int) {
	for _, one := range all {
		n += len(one.body)
	}
	return n
}

// step takes proposals of a login. look is the parameter of intake.AcceptTx.
func (t *Taker) step(ctx context.Context, look bool) (*login, error) {
	var found *login
	var committed func()
	err := postgres.InTx(ctx, t.db, postgres.Worker(), func(tx pgx.Tx) (err error) {
		committed = func() {}
		if found, err = nextLogin(ctx, tx); err != nil || found == nil {
			return err
		}
		most := takeAtOnce
		if found.held {
			most = manyRefused
		}
		waiting, err := take(ctx, tx, found.id, most)
		if err != nil {
			return err
		}
		if len(waiting) > 0 {
			if committed, err = t.submit(ctx, tx, found, waiting, look); err != nil {
				return err
			}
		}
		if found.held || found.pause > 0 {
			if err := hold(ctx, tx, found.id, found.pause); err != nil {
				return err
			}
		}
		// Fewer than it may take are the last ones. The rest of a backlog is counted by
		// Count, which takes long.
		if len(waiting) < most && size(waiting) < takeBytes && (found.uncounted || found.counted > 0) {
			return drained(ctx, tx, found.id)
		}
		return nil
	})
	if err == nil && found != nil {
		committed()
	}
	return found, err
}

// submit answers proposals in the transaction in which they were taken.
func (t *Taker) submit(ctx context.Context, tx pgx.Tx, l *login, waiting []taken, look bool) (committed func(), err error) {
	answers, by := make([]intake.Answer, len(waiting)), l.by
	var proposals []*envelope.Proposal
	var at []int // of each of them in waiting
	var parser envelope.Parser
	for i, w := range waiting {
		if l.closed {
			answers[i].Err = errClosed
			continue
		}
		p, err := parser.Parse(w.body)
		if err != nil {
			answers[i].Err = err
			continue
		}
		proposals, at, by.IDs = append(proposals, p), append(at, i), append(by.IDs, envelope.ActionID(w.id))
	}
	committed = func() {}
	if len(proposals) > 0 {
		var accepted []intake.Answer
		if accepted, committed, err = t.intake.AcceptTx(ctx, tx, by, proposals, look); err != nil {
			return nil, err
		}
		for i, a := range accepted {
			answers[at[i]] = a
		}
	}
	return committed, settle(ctx, tx, l, waiting, answers)
}

// errClosed refuses the proposals of a login that may no longer propose.
var errClosed = fault.New(fault.Denied, "the database login is not bound, or its operator is disabled")

// settle deletes the proposals that became actions, answers the others, and records
// refusals.
func settle(ctx context.Context, tx pgx.Tx, l *login, waiting []taken, answers []intake.Answer) error {
	var done []uuid.UUID
	var other answered
	event := audit.Event{Tenant: l.tenant, Kind: audit.ProposalRefused, Actor: l.by.Actor()}
	for i, a := range answers {
		id := waiting[i].id
		switch {
		case a.Err == nil && uuid.UUID(a.Action) == id:
			done = append(done, id)
		case a.Err == nil:
			other.add(id, uuid.UUID(a.Action), nil)
		default:
			p := problemOf(a.Err)
			text, err := json.Marshal(p)
			if err != nil {
				return err
			}
			other.add(id, uuid.Nil, text)
			event.Items = append(event.Items, item(id, l, &p))
		}
	}
	if n := len(event.Items); n >= manyRefused {
		l.pause = time.Duration(n) * time.Millisecond
	}
	// A plan for an empty table reads all rows of a tenant. With many rows that
	// costs less than planning for the actual values.
	if len(done) < manyRefused {
		if err := postgres.PlanAnew(ctx, tx); err != nil {
			return err
		}
	}
	if err := remove(ctx, tx, l.tenant, done); err != nil {
		return err
	}
	if err := other.write(ctx, tx, l.tenant); err != nil || len(event.Items) == 0 {
		return err
	}
	return audit.Write(ctx, tx, event)
}

// item returns the audit item of a refused proposal.
func item(id uuid.UUID, l *login, p *wire.SQLProposalProblem) audit.Item {
	pointers := make([]string, 0, len(p.Errors))
	for _, e := range p.Errors {
		pointers = append(pointers, e.Pointer)
	}
	return audit.Item{
		Subject: "proposal " + id.String(), Code: ruleOf(p), Note: p.Detail,
		Detail: map[string]any{"proposal_id": id, "login": l.name, "problem": p.Kind, "pointers": strings.Join(slices.Compact(pointers), " ")},
	}
}
