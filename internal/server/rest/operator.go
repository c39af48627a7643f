package rest

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// operator is a person as the outside sees it.
type operator struct {
	ID      uuid.UUID `json:"operator_id"`
	Name    string    `json:"name"`
	Email   string    `json:"email,omitzero"`
	Issuer  string    `json:"issuer,omitzero"`
	Subject string    `json:"subject,omitzero"`
	// Role is what the person is now: as set by hand or, failing that, as the
	// last login had it.
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

// person reads the body.
func (c *call) person() (identity.Operator, error) {
	var body struct {
		Name, Email, Issuer, Subject string
		RoleSet                      identity.Role `json:"role_set"`
		SlackTeam                    string        `json:"slack_team"`
		SlackUser                    string        `json:"slack_user"`
		Disabled                     bool
	}
	if err := c.decode(&body); err != nil {
		return identity.Operator{}, err
	}
	c.detail = map[string]any{
		"name": body.Name, "issuer": orNil(body.Issuer), "subject": orNil(body.Subject), "role_set": orNil(body.RoleSet),
		"slack_team": orNil(body.SlackTeam), "slack_user": orNil(body.SlackUser), "disabled": body.Disabled,
	}
	return identity.Operator{
		Name: body.Name, Email: body.Email, Issuer: body.Issuer, Subject: body.Subject, RoleSet: body.RoleSet,
		SlackTeam: body.SlackTeam, SlackUser: body.SlackUser, Disabled: body.Disabled,
	}, nil
}

func (s *Server) listOperators(c *call) error {
	var all []identity.Operator
	err := s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		var err error
		all, err = identity.Operators(ctx, tx, c.by.Tenant)
		return err
	})
	if err != nil {
		return err
	}
	shown := make([]operator, len(all))
	for i, o := range all {
		shown[i] = operatorFrom(o)
	}
	return items(c, shown)
}

func (s *Server) createOperator(c *call) error {
	o, err := c.person()
	if err != nil {
		return err
	}
	err = s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		id, err := identity.NewOperator(ctx, tx, c.by, o, time.Now())
		if err != nil {
			return err
		}
		if err := c.noteChange(ctx, tx, "person "+id.String()+" added"); err != nil {
			return err
		}
		o, err = identity.OperatorByID(ctx, tx, c.by.Tenant, id)
		return err
	})
	if err != nil {
		return err
	}
	return c.json(http.StatusCreated, operatorFrom(o))
}

func (s *Server) putOperator(c *call) error {
	o, err := c.person()
	if err != nil {
		return err
	}
	if o.ID, err = uuid.Parse(c.r.PathValue("id")); err != nil {
		return invalid("/path/id", envelope.RuleFormat, "must be a UUID")
	}
	err = s.configure(c, "person "+o.ID.String()+" set", func(ctx context.Context, tx pgx.Tx) error {
		return identity.PutOperator(ctx, tx, c.by, o)
	})
	if err == nil {
		s.auth.Forget(identity.TokenID(o.ID))
	}
	return err
}
