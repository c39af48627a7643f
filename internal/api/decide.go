package api

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/approval"
	"github.com/countersign-dev/countersign/internal/outbox"
)

// deciding reads what a decision is about.
func (c *call) deciding() (by approval.Decider, id envelope.ActionID, note string, err error) {
	var body struct{ Note string }
	if err = c.decode(&body); err != nil {
		return by, id, "", err
	}
	id, err = c.action()
	return approval.Decider{Tenant: c.by.Tenant, Token: uuid.UUID(c.by.Token), Name: c.by.Name}, id, body.Note, err
}

func (s *Server) approveAction(c *call) error {
	by, id, note, err := c.deciding()
	if err != nil {
		return err
	}
	if err := s.Approval.Grant(c.r.Context(), by, id, note); err != nil {
		return err
	}
	return s.show(c, id)
}

func (s *Server) denyAction(c *call) error {
	by, id, note, err := c.deciding()
	if err != nil {
		return err
	}
	if err := s.Approval.Deny(c.r.Context(), by, id, note); err != nil {
		return err
	}
	return s.show(c, id)
}

func (s *Server) undoAction(c *call) error {
	id, err := c.action()
	if err != nil {
		return err
	}
	err = s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := c.view(ctx, tx, id); err != nil {
			return err
		}
		return outbox.Undo(ctx, tx, c.by.Tenant, id, c.by.Name)
	})
	if err != nil {
		return err
	}
	return s.show(c, id)
}
