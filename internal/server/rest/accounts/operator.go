package accounts

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// operators is the collection of people.
var operators = request.Collection[wire.Operator]{
	Name: "operators", Noun: "person",
	Read: func(ctx context.Context, tx pgx.Tx, c *request.Call) ([]wire.Operator, error) {
		var ids []uuid.UUID
		if c.R.PathValue("id") != "" {
			id, err := c.UUID()
			if err != nil {
				return nil, err
			}
			ids = append(ids, id)
		}
		all, err := identity.Operators(ctx, tx, c.By.Tenant, ids...)
		return request.Map(all, operatorFrom), err
	},
	Key:     func(o wire.Operator) string { return o.ID },
	ETag:    func(o *wire.Operator) *string { return &o.ETag },
	Version: func(o wire.Operator) any { return o.OperatorInput },
}

func operatorFrom(o identity.Operator) wire.Operator {
	return wire.Operator{
		ID: o.ID.String(), Role: string(o.Effective()), DisabledAt: o.DisabledAt, CreatedAt: o.CreatedAt, LastSeenAt: o.LastSeenAt,
		OperatorInput: wire.OperatorInput{
			Name: o.Name, Email: o.Email, Issuer: o.Issuer, Subject: o.Subject, RoleSet: string(o.RoleSet), SlackTeam: o.SlackTeam,
			SlackUser: o.SlackUser, Disabled: o.Disabled,
		},
	}
}

// person decodes the body.
func person(c *request.Call) (identity.Operator, error) {
	var body wire.OperatorInput
	if err := c.Decode(&body); err != nil {
		return identity.Operator{}, err
	}
	c.Detail = map[string]any{
		"name": body.Name, "issuer": request.NilIfZero(body.Issuer), "subject": request.NilIfZero(body.Subject), "role_set": request.NilIfZero(body.RoleSet),
		"slack_team": request.NilIfZero(body.SlackTeam), "slack_user": request.NilIfZero(body.SlackUser), "disabled": body.Disabled,
	}
	return identity.Operator{
		Name: body.Name, Email: body.Email, Issuer: body.Issuer, Subject: body.Subject, RoleSet: identity.Role(body.RoleSet),
		SlackTeam: body.SlackTeam, SlackUser: body.SlackUser, Disabled: body.Disabled,
	}, nil
}

// Operators handles GET /api/v1/operators. It lists the operators.
func Operators(c *request.Call) error { return operators.List(c) }

// CreateOperator handles POST /api/v1/operators. It creates an operator.
func CreateOperator(c *request.Call) error {
	o, err := person(c)
	if err != nil {
		return err
	}
	err = c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		id, err := identity.NewOperator(ctx, tx, c.By, o, time.Now())
		if err != nil {
			return err
		}
		if err := c.RecordChange(ctx, tx, "person "+id.String()+" added"); err != nil {
			return err
		}
		o, err = identity.OperatorByID(ctx, tx, c.By.Tenant, id)
		return err
	})
	if err != nil {
		return err
	}
	c.SetLocation("/api/v1/operators/" + o.ID.String())
	return c.JSON(http.StatusCreated, operatorFrom(o))
}

// PutOperator handles PUT /api/v1/operators/{id}. It sets an operator.
func PutOperator(c *request.Call) error {
	o, err := person(c)
	if err != nil {
		return err
	}
	if o.ID, err = c.UUID(); err != nil {
		return err
	}
	err = operators.Put(c, o.ID.String(), "person "+o.ID.String()+" set", func(ctx context.Context, tx pgx.Tx) error {
		return identity.PutOperator(ctx, tx, c.By, o)
	})
	if err == nil {
		c.Auth.Forget(identity.TokenID(o.ID))
	}
	return err
}
