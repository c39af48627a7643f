package proposal

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// nextLogin locks a login with waiting proposals. It returns nil if there is
// none, or other workers have locked all of them.
func nextLogin(ctx context.Context, tx pgx.Tx) (*login, error) {
	r, err := dbsqlc.New().ProposalNextLogin(ctx, tx)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	operator := postgres.OrZero(r.OperatorID)
	l := &login{tenant: r.TenantID, id: r.LoginID, name: r.Login, closed: r.Closed, held: r.Held, counted: int(r.Waiting), uncounted: r.Uncounted}
	l.by = intake.Submitter{
		Tenant: l.tenant, Token: r.LoginID, Person: operator, Operator: operator, Name: "login " + r.Login,
		Employee: postgres.OrZero(r.EmployeeID), Session: postgres.OrZero(r.SessionID),
		Names: identity.Names{Automations: r.Automations, Employees: r.Employees, Sessions: r.Sessions, ExternalIDPrefix: postgres.OrZero(r.ExternalIDPrefix)}, Tools: r.Tools, Lists: settings.ListsUsable,
		Origin: json.RawMessage(`{"via":"sql"}`), Bindings: r.Bindings,
	}
	return l, nil
}

func take(ctx context.Context, tx pgx.Tx, login uuid.UUID, most int) ([]taken, error) {
	// An index returns the first ones in their order. With old statistics the planner
	// would rather read and sort all that wait.
	if _, err := tx.Exec(ctx, "SELECT set_config('enable_bitmapscan', 'off', true), set_config('enable_seqscan', 'off', true)"); err != nil {
		return nil, err
	}
	rows, err := dbsqlc.New().ProposalTake(ctx, tx, &dbsqlc.ProposalTakeParams{LoginID: login, Most: int64(most), MostBytes: takeBytes})
	return postgres.Map(rows, err, func(r dbsqlc.ProposalTakeRow) taken { return taken{r.ProposalID, []byte(r.Body)} })
}

func hold(ctx context.Context, tx pgx.Tx, login uuid.UUID, long time.Duration) error {
	return dbsqlc.New().ProposalHold(ctx, tx, &dbsqlc.ProposalHoldParams{LoginID: login, Seconds: long.Seconds()})
}

func drained(ctx context.Context, tx pgx.Tx, login uuid.UUID) error {
	return dbsqlc.New().ProposalDrained(ctx, tx, login)
}

// Count counts the waiting proposals of logins, whose number countersign.propose limits,
// if they were not counted for some time. One process at a time does that, and takers
// go on meanwhile.
func Count(ctx context.Context, db postgres.Begins) error {
	return postgres.InTx(ctx, db, postgres.Worker(), func(tx pgx.Tx) error { return dbsqlc.New().ProposalCount(ctx, tx) })
}

func remove(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, ids []uuid.UUID) error {
	if len(ids) == 0 {
		return nil
	}
	return dbsqlc.New().ProposalDelete(ctx, tx, &dbsqlc.ProposalDeleteParams{TenantID: tenant, ProposalIds: ids})
}

// answered are proposals that became no action of their own.
type answered struct {
	ids, actions []uuid.UUID
	problems     [][]byte
}

func (a *answered) add(id, action uuid.UUID, problem []byte) {
	if problem == nil {
		problem = []byte("null")
	}
	a.ids, a.actions, a.problems = append(a.ids, id), append(a.actions, action), append(a.problems, problem)
}

func (a *answered) write(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) error {
	if len(a.ids) == 0 {
		return nil
	}
	return dbsqlc.New().ProposalAnswer(ctx, tx, &dbsqlc.ProposalAnswerParams{
		TenantID: tenant, ProposalIds: a.ids, ActionIds: a.actions, Problems: a.problems,
	})
}

// State is the result of a stored proposal. An accepted proposal is an action.
type State string

// The states.
const (
	Waiting   State = "waiting"
	Refused   State = "refused"
	Duplicate State = "duplicate"
)

// Filter selects proposals. Zero fields select all, but without a state
// waiting proposals are left out.
type Filter struct {
	State State
	// Login is the name of a database login.
	Login string
	// Before selects proposals older than one; Most bounds the result.
	Before envelope.ActionID
	Most   int
}

// List returns proposals that became no action of their own, newest first.
func List(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, f Filter) ([]wire.SQLProposal, error) {
	if f.State == Waiting {
		rows, err := dbsqlc.New().ProposalListWaiting(ctx, tx, &dbsqlc.ProposalListWaitingParams{
			TenantID: tenant, Login: f.Login, Before: uuid.UUID(f.Before), Most: int64(f.Most),
		})
		return postgres.Map(rows, err, func(r dbsqlc.ProposalListWaitingRow) wire.SQLProposal {
			return wire.SQLProposal{ID: envelope.ActionID(r.ProposalID), Login: r.Login, State: string(Waiting), ProposedAt: r.ProposedAt.UTC()}
		})
	}
	rows, err := dbsqlc.New().ProposalListAnswered(ctx, tx, &dbsqlc.ProposalListAnsweredParams{
		TenantID: tenant, State: string(f.State), Login: f.Login, Before: uuid.UUID(f.Before), Most: int64(f.Most),
	})
	if err != nil {
		return nil, err
	}
	all := make([]wire.SQLProposal, len(rows))
	for i, r := range rows {
		d := dbsqlc.ProposalGetRow{
			ProposalID: r.ProposalID, Login: r.Login, ProposedAt: r.ProposedAt, AnsweredAt: r.AnsweredAt, ActionID: r.ActionID, Problem: r.Problem,
		}
		if all[i], err = shown(d); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Get returns a proposal with its original envelope. The error is fault.NotFound
// if it does not exist or has become an action.
func Get(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id envelope.ActionID) (d wire.SQLProposalDetail, err error) {
	r, err := dbsqlc.New().ProposalGet(ctx, tx, &dbsqlc.ProposalGetParams{TenantID: tenant, ProposalID: uuid.UUID(id)})
	if errors.Is(err, pgx.ErrNoRows) {
		return d, fault.New(fault.NotFound, "no proposal %s; one that was accepted is the action of the same id", id)
	}
	if err != nil {
		return d, err
	}
	d.Envelope = json.RawMessage(r.Body)
	d.SQLProposal, err = shown(r)
	return d, err
}

// shown returns a stored proposal as the API shows it.
func shown(r dbsqlc.ProposalGetRow) (wire.SQLProposal, error) {
	p := wire.SQLProposal{
		ID: envelope.ActionID(r.ProposalID), Login: r.Login, State: string(Waiting),
		ProposedAt: r.ProposedAt.UTC(), AnsweredAt: postgres.UTC(r.AnsweredAt), ActionID: r.ActionID,
	}
	switch {
	case r.Problem != nil:
		p.State = string(Refused)
		return p, json.Unmarshal(r.Problem, &p.Problem)
	case r.AnsweredAt != nil:
		p.State = string(Duplicate)
	}
	return p, nil
}

const (
	// keepAnswers is the retention of answers, and keepNewest the number kept of each
	// login.
	keepAnswers = 7 * 24 * time.Hour
	keepNewest  = 10_000
)

// Prune deletes old answers, a page at a time while more reports that there is time
// for another. It reports whether none is left.
func Prune(ctx context.Context, db postgres.Begins, more func() bool) (bool, error) {
	const most = 5000
	for more() {
		n, err := postgres.InTxReturning(ctx, db, postgres.Worker(), func(tx pgx.Tx) (int64, error) {
			return dbsqlc.New().ProposalPrune(ctx, tx, &dbsqlc.ProposalPruneParams{Kept: keepNewest, Most: most, Seconds: keepAnswers.Seconds()})
		})
		if err != nil || n == 0 {
			return err == nil, err
		}
	}
	return false, nil
}
