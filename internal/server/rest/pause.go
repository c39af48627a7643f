package rest

import (
	"context"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

func (s *Server) listPauses(c *call) error {
	before, most, err := c.place(cursorPauses)
	if err != nil {
		return err
	}
	f := limits.PauseFilter{Standing: c.query.Get("standing") == "true", Before: limits.PauseID(before), Most: most + 1}
	var rows []limits.Pause
	err = s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		rows, err = limits.Pauses(ctx, tx, c.by.Tenant, f)
		return err
	})
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, pageOf(rows, most, cursorPauses, func(p limits.Pause) limits.Pause { return p },
		func(p limits.Pause) envelope.ActionID { return envelope.ActionID(p.ID) }))
}

func (s *Server) pause(c *call) error {
	var body struct {
		limits.Target
		Kill   bool
		Reason string
	}
	if err := c.decode(&body); err != nil {
		return err
	}
	var standing limits.Pause
	err := s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		var err error
		standing, err = limits.SetPause(ctx, tx, c.by.Tenant, body.Target, body.Kill, body.Reason, c.by.Name)
		return err
	})
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, standing)
}

func (s *Server) resume(c *call) error {
	of := limits.Target{Scope: limits.PauseScope(c.query.Get("scope")), Subject: c.query.Get("subject")}
	return s.change(c, func(ctx context.Context, tx pgx.Tx) error {
		return limits.Lift(ctx, tx, c.by.Tenant, of, c.query.Get("reason"), c.by.Name)
	})
}
