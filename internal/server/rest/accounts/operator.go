package accounts

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// operator is a person as the API shows it.
type operator struct {
	ID      uuid.UUID `json:"operator_id"`
	Name    string    `json:"name"`
	Email   string    `json:"email,omitzero"`
	Issuer  string    `json:"issuer,omitzero"`
	Subject string    `json:"subject,omitzero"`
	// Role is the effective role: the one that was set or, without one, the
	// role of the last login.
	Role       *identity.Role `json:"role"`
	RoleSet    identity.Role  `json:"role_set,omitzero"`
	SlackTeam  string         `json:"slack_team,omitzero"`
	SlackUser  string         `json:"slack_user,omitzero"`
	Disabled   bool           `json:"disabled"`
	DisabledAt *time.Time     `json:"disabled_at,omitempty"`
	CreatedAt  time.Time      `json:"created_at"`
	LastSeenAt *time.Time     `json:"last_seen_at"`
}

func operatorFrom(o identity.Operator) operator {
	shown := operator{
		ID: o.ID, Name: o.Name, Email: o.Email, Issuer: o.Issuer, Subject: o.Subject, RoleSet: o.RoleSet, SlackTeam: o.SlackTeam,
		SlackUser: o.SlackUser, Disabled: o.Disabled, DisabledAt: o.DisabledAt, CreatedAt: o.CreatedAt, LastSeenAt: o.LastSeenAt,
	}
	if role := o.Effective(); role != "" {
		shown.Role = &role
	}
	return shown
}

// person decodes the body.
func person(c *request.Call) (identity.Operator, error) {
	var body struct {
		Name, Email, Issuer, Subject string
		RoleSet                      identity.Role `json:"role_set"`
		SlackTeam                    string        `json:"slack_team"`
		SlackUser                    string        `json:"slack_user"`
		Disabled                     bool
	}
	if err := c.Decode(&body); err != nil {
		return identity.Operator{}, err
	}
	c.Detail = map[string]any{
		"name": body.Name, "issuer": request.NilIfZero(body.Issuer), "subject": request.NilIfZero(body.Subject), "role_set": request.NilIfZero(body.RoleSet),
		"slack_team": request.NilIfZero(body.SlackTeam), "slack_user": request.NilIfZero(body.SlackUser), "disabled": body.Disabled,
	}
	return identity.Operator{
		Name: body.Name, Email: body.Email, Issuer: body.Issuer, Subject: body.Subject, RoleSet: body.RoleSet,
		SlackTeam: body.SlackTeam, SlackUser: body.SlackUser, Disabled: body.Disabled,
	}, nil
}

// GET /api/v1/operators lists the operators.
func Operators(c *request.Call) error {
	var all []identity.Operator
	err := c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		var err error
		all, err = identity.Operators(ctx, tx, c.By.Tenant)
		return err
	})
	if err != nil {
		return err
	}
	shown := make([]operator, len(all))
	for i, o := range all {
		shown[i] = operatorFrom(o)
	}
	return request.Items(c, shown)
}

// POST /api/v1/operators creates an operator.
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
	return c.JSON(http.StatusCreated, operatorFrom(o))
}

// PUT /api/v1/operators/{id} sets an operator.
func PutOperator(c *request.Call) error {
	o, err := person(c)
	if err != nil {
		return err
	}
	if o.ID, err = uuid.Parse(c.R.PathValue("id")); err != nil {
		return request.Invalid("/path/id", envelope.RuleFormat, "must be a UUID")
	}
	err = c.Configure("person "+o.ID.String()+" set", func(ctx context.Context, tx pgx.Tx) error {
		return identity.PutOperator(ctx, tx, c.By, o)
	})
	if err == nil {
		c.Auth.Forget(identity.TokenID(o.ID))
	}
	return err
}
