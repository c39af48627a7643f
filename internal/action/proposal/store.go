package proposal

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// nextLogin locks a login whose proposals wait; nil if there is none, or other
// workers have all of them.
func nextLogin(ctx context.Context, tx pgx.Tx) (*login, error) {
	r, err := dbsqlc.New().ProposalNextLogin(ctx, tx)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	operator := postgres.OrZero(r.OperatorID)
	l := &login{tenant: envelope.TenantID(r.TenantID), id: r.LoginID, name: r.Login, closed: r.Closed}
	l.by = intake.Submitter{
		Tenant: l.tenant, Token: r.LoginID, Person: operator, Operator: operator, Name: "login " + r.Login,
		Employee: envelope.EmployeeID(postgres.OrZero(r.EmployeeID)), Session: postgres.OrZero(r.SessionID),
		Names: identity.Names{Automations: r.Automations, Employees: r.Employees}, Tools: r.Tools,
		Origin: json.RawMessage(`{"via":"sql"}`),
	}
	return l, nil
}

func take(ctx context.Context, tx pgx.Tx, login uuid.UUID, most int) ([]taken, error) {
	rows, err := dbsqlc.New().ProposalTake(ctx, tx, &dbsqlc.ProposalTakeParams{LoginID: login, Most: int64(most)})
	return postgres.Map(rows, err, func(r dbsqlc.ProposalTakeRow) taken { return taken{r.ProposalID, []byte(r.Body)} })
}

func hold(ctx context.Context, tx pgx.Tx, login uuid.UUID, long time.Duration) error {
	return dbsqlc.New().ProposalHold(ctx, tx, &dbsqlc.ProposalHoldParams{LoginID: login, Seconds: long.Seconds()})
}

func remove(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, ids []uuid.UUID) error {
	if len(ids) == 0 {
		return nil
	}
	return dbsqlc.New().ProposalDelete(ctx, tx, &dbsqlc.ProposalDeleteParams{TenantID: uuid.UUID(tenant), ProposalIds: ids})
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
		TenantID: uuid.UUID(tenant), ProposalIds: a.ids, ActionIds: a.actions, Problems: a.problems,
	})
}

const (
	// keepAnswers is how long answers are kept, and keepNewest how many of each login.
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
