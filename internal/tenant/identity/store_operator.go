package identity

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// NewOperator adds a person to the tenant of who asks, in a transaction of its
// scope, and returns the person's id. What breaks the rules is fault.Invalid;
// somebody who logs in as another one, or is another one in Slack, is
// fault.Conflict; and somebody whom the asking may not make is fault.Denied.
func NewOperator(ctx context.Context, tx pgx.Tx, by Principal, o Operator, now time.Time) (uuid.UUID, error) {
	if err := o.check(); err != nil {
		return uuid.Nil, err
	}
	if err := by.mayChange(Operator{}, o); err != nil {
		return uuid.Nil, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return uuid.Nil, err
	}
	p := &dbsqlc.OperatorInsertParams{
		TenantID: by.Tenant, OperatorID: id, Name: o.Name, Email: postgres.OrNull(o.Email), Issuer: postgres.OrNull(o.Issuer), Subject: postgres.OrNull(o.Subject),
		RoleSet: postgres.OrNull(string(o.RoleSet)), SlackTeam: postgres.OrNull(o.SlackTeam), SlackUser: postgres.OrNull(o.SlackUser),
	}
	if o.Disabled {
		p.DisabledAt = new(now.UTC())
	}
	return id, violations.Fault(dbsqlc.New().OperatorInsert(ctx, tx, p))
}

// endOf returns what ends the sessions of a person who is set so.
func endOf(o Operator) sessionEnd {
	if o.Disabled {
		return endDisabled
	}
	return endLoginChanged
}

// PutOperator sets what can be set of a person of the tenant of who asks, in a
// transaction of its scope. One that logs in otherwise than before has no role
// of its last login any more. One that logs in otherwise or is disabled has no
// browser session of a login any more, also when it is enabled again. A person who
// is not there is fault.NotFound, what breaks the rules fault.Invalid, somebody
// whom the asking may not change fault.Denied, and taking the last owner away
// fault.Conflict.
func PutOperator(ctx context.Context, tx pgx.Tx, by Principal, o Operator) error {
	if err := o.check(); err != nil {
		return err
	}
	return keepOwner(ctx, tx, by.Tenant, func() error {
		was, err := OperatorByID(ctx, tx, by.Tenant, o.ID)
		if err != nil {
			return err
		}
		if err := by.mayChange(was, o); err != nil {
			return err
		}
		if o.Disabled || was.Issuer != o.Issuer || was.Subject != o.Subject { // who is logged in may be somebody else
			ended, err := dbsqlc.New().OperatorSessionsDelete(ctx, tx, &dbsqlc.OperatorSessionsDeleteParams{TenantID: by.Tenant, OperatorID: o.ID})
			if err != nil {
				return err
			}
			if err := recordEnds(ctx, tx, by.Tenant, by.Actor(), endOf(o), ended...); err != nil {
				return err
			}
		}
		return violations.Fault(dbsqlc.New().OperatorUpdate(ctx, tx, &dbsqlc.OperatorUpdateParams{
			Name: o.Name, Email: postgres.OrNull(o.Email), Issuer: postgres.OrNull(o.Issuer), Subject: postgres.OrNull(o.Subject), RoleSet: postgres.OrNull(string(o.RoleSet)),
			SlackTeam: postgres.OrNull(o.SlackTeam), SlackUser: postgres.OrNull(o.SlackUser), Disabled: o.Disabled,
			TenantID: by.Tenant, OperatorID: o.ID,
		}))
	})
}

// OperatorByID finds a person, in a transaction of the tenant's scope; one who
// is not there is fault.NotFound.
func OperatorByID(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id uuid.UUID) (Operator, error) {
	r, err := dbsqlc.New().OperatorGet(ctx, tx, &dbsqlc.OperatorGetParams{TenantID: tenant, OperatorID: id})
	return operatorFromRow(dbsqlc.OperatorsRow(r)), postgres.Found(err, fault.New(fault.NotFound, "no such person"))
}

// Operators lists the people of a tenant by name, or those of the ids, in a
// transaction of its scope.
func Operators(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, ids ...uuid.UUID) ([]Operator, error) {
	rows, err := dbsqlc.New().Operators(ctx, tx, &dbsqlc.OperatorsParams{TenantID: tenant, OperatorIds: ids})
	return postgres.Map(rows, err, operatorFromRow)
}

func operatorFromRow(r dbsqlc.OperatorsRow) Operator {
	return Operator{
		ID: r.OperatorID, Name: r.Name, Email: postgres.OrZero(r.Email), Issuer: postgres.OrZero(r.Issuer), Subject: postgres.OrZero(r.Subject), Role: Role(postgres.OrZero(r.Role)),
		RoleSet: Role(postgres.OrZero(r.RoleSet)), SlackTeam: postgres.OrZero(r.SlackTeam), SlackUser: postgres.OrZero(r.SlackUser), CreatedAt: r.CreatedAt,
		Disabled: r.DisabledAt != nil, DisabledAt: r.DisabledAt, LastSeenAt: r.LastSeenAt,
	}
}

// OperatorBySlack finds the person that a user of a Slack team is, with the
// role that it has now, in a transaction of the tenant's scope. Somebody
// nobody knows, who is disabled or has no role is fault.NotFound. That the
// user is who it says must have been verified before.
func OperatorBySlack(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, team, user string) (Principal, error) {
	r, err := dbsqlc.New().OperatorBySlack(ctx, tx, &dbsqlc.OperatorBySlackParams{TenantID: tenant, SlackTeam: team, SlackUser: user})
	if err != nil {
		return Principal{}, postgres.Found(err, fault.New(fault.NotFound, "nobody of this tenant is this Slack user"))
	}
	return Operator{ID: r.OperatorID, Name: r.Name, Role: Role(postgres.OrZero(r.Role))}.principal(tenant), nil
}

// logIn finds the person that verified claims are of, in a transaction of the
// provider's tenant, and makes one of somebody who comes for the first time.
// fault.Denied means that the person may do nothing here; the principal that comes
// with it has no role, and names the person if it is known. So does a principal
// without a role and without an error: that the issuer took the role away is then
// written down, which an error would undo.
func logIn(ctx context.Context, tx pgx.Tx, p tenantProvider, c *claims) (Principal, error) {
	if err := p.admits(c); err != nil {
		return Principal{}, err
	}
	q := dbsqlc.New()
	found, err := q.OperatorByLogin(ctx, tx, &dbsqlc.OperatorByLoginParams{TenantID: p.tenant, Issuer: p.Issuer, Subject: c.subject})
	known := err == nil
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return Principal{}, err
	}
	name, email, role := c.shownName(), c.verifiedEmail(), p.roleOf(c)
	switch {
	case !known && role == "":
		return Principal{Tenant: p.tenant}, errNoRole
	case known && found.DisabledAt != nil:
		return Principal{Tenant: p.tenant, Operator: found.OperatorID}, errDisabled
	case !known || found.Name != name || postgres.OrZero(found.Email) != email || postgres.OrZero(found.Role) != string(role):
		id, err := uuid.NewV7()
		if err != nil {
			return Principal{}, err
		}
		made, err := q.OperatorLogin(ctx, tx, &dbsqlc.OperatorLoginParams{
			TenantID: p.tenant, OperatorID: id, Name: name, Email: postgres.OrNull(email), Issuer: &p.Issuer, Subject: &c.subject, Role: postgres.OrNull(string(role)),
		})
		if err != nil {
			return Principal{}, violations.Fault(err)
		}
		found = dbsqlc.OperatorByLoginRow(made)
	}
	if found.DisabledAt != nil {
		return Principal{Tenant: p.tenant, Operator: found.OperatorID}, errDisabled
	}
	person := Operator{ID: found.OperatorID, Name: found.Name, Role: Role(postgres.OrZero(found.Role)), RoleSet: Role(postgres.OrZero(found.RoleSet))}
	return person.principal(p.tenant), nil
}
