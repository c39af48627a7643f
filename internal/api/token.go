package api

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/identity"
)

// issued is a token at the one moment at which it is shown.
type issued struct {
	ID        identity.TokenID    `json:"token_id"`
	Token     string              `json:"token"`
	Name      string              `json:"name"`
	Role      identity.Role       `json:"role"`
	Employee  envelope.EmployeeID `json:"employee_id,omitzero"`
	Session   string              `json:"session_id,omitzero"`
	ExpiresAt *time.Time          `json:"expires_at"`
}

func (s *Server) issueToken(c *call) error {
	var body struct {
		Name     string
		Role     identity.Role
		Employee envelope.EmployeeID `json:"employee_id"`
		Session  string              `json:"session_id"`
		TTL      int64               `json:"ttl_seconds"`
	}
	if err := c.decode(&body); err != nil {
		return err
	}
	g := identity.Grant{Name: body.Name, Role: body.Role, Employee: body.Employee, Session: body.Session, TTL: time.Duration(body.TTL) * time.Second}
	var made identity.Issued
	err := s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		var err error
		if made, err = identity.Issue(ctx, tx, c.by.Tenant, g, time.Now()); err != nil {
			return err
		}
		c.detail = map[string]any{
			"token_id": made.Principal.Token, "name": g.Name, "role": g.Role, "employee_id": orNil(g.Employee),
			"session_id": made.Principal.Session, "expires_at": made.ExpiresAt,
		}
		return c.noteChange(ctx, tx, "token "+made.Principal.Token.String()+" issued for the role "+string(g.Role))
	})
	if err != nil {
		return err
	}
	p := made.Principal
	return c.json(http.StatusCreated, issued{p.Token, made.Token.Text(), p.Name, p.Role, p.Employee, p.Session, made.ExpiresAt})
}

func (s *Server) revokeToken(c *call) error {
	id, err := uuid.Parse(c.r.PathValue("id"))
	if err != nil {
		return invalid("/path/id", envelope.RuleFormat, "must be a UUID")
	}
	err = s.configure(c, "token "+id.String()+" revoked", func(ctx context.Context, tx pgx.Tx) error {
		return identity.Revoke(ctx, tx, c.by.Tenant, identity.TokenID(id))
	})
	if err == nil {
		s.auth.Forget(identity.TokenID(id))
	}
	return err
}
