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

// NewOperator adds a person to the tenant of a principal, in a transaction of
// its scope, and returns the person's id. An invalid person is fault.Invalid,
// one with the login or the Slack user of another is fault.Conflict, and one
// that the principal may not create is fault.Denied.
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

// endOf returns the reason for which a change of a person ends its sessions.
func endOf(o Operator) sessionEnd {
	if o.Disabled {
		return endDisabled
	}
	return endLoginChanged
}

// PutOperator updates a person of the tenant of a principal, in a transaction of
// its scope. A changed login removes the role from the last login. A changed
// login or disabling ends the browser sessions of logins, also if the person is
// enabled again. A person that does not exist is fault.NotFound, an invalid one
// fault.Invalid, one that the principal may not change fault.Denied, and the
// removal of the last owner fault.Conflict.
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
		if o.Disabled || was.Issuer != o.Issuer || was.Subject != o.Subject { // a logged-in user may be another person now
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

// OperatorByID finds a person, in a transaction of the tenant's scope. If it
// does not exist, the error is fault.NotFound.
func OperatorByID(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id uuid.UUID) (Operator, error) {
	r, err := dbsqlc.New().OperatorGet(ctx, tx, &dbsqlc.OperatorGetParams{TenantID: tenant, OperatorID: id})
	return operatorFromRow(dbsqlc.OperatorsRow(r)), postgres.Found(err, fault.New(fault.NotFound, "no such person"))
}

// Operators lists the people of a tenant by name, or those with the ids, in a
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

// OperatorBySlack finds the person of a Slack user, with its current role, in a
// transaction of the tenant's scope. The error is fault.NotFound if the person
// is unknown, disabled or without a role. The caller must have verified the
// Slack user.
func OperatorBySlack(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, team, user string) (Principal, error) {
	r, err := dbsqlc.New().OperatorBySlack(ctx, tx, &dbsqlc.OperatorBySlackParams{TenantID: tenant, SlackTeam: team, SlackUser: user})
	if err != nil {
		return Principal{}, postgres.Found(err, fault.New(fault.NotFound, "nobody of this tenant is this Slack user"))
	}
	return Operator{ID: r.OperatorID, Name: r.Name, Role: Role(postgres.OrZero(r.Role))}.principal(tenant), nil
}

// logIn finds the person of verified claims, in a transaction of the provider's
// tenant, and creates the person at the first login. fault.Denied means that the
// person has no rights here; the principal returned with it has no role, and
// identifies the person if it is known. A principal without a role may also be
// returned without an error: the issuer has then revoked the role, and an error
// would roll back the update.
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
	name, email := c.shownName(), c.verifiedEmail()
	role, _ := p.roleOf(c)
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
