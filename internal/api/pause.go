package api

import (
	"context"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/limit"
)

func (s *Server) listPauses(c *call) error {
	before, most, err := c.place(cursorPauses)
	if err != nil {
		return err
	}
	f := limit.PauseFilter{Standing: c.query.Get("standing") == "true", Before: limit.PauseID(before), Most: most + 1}
	var rows []limit.Pause
	err = s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		rows, err = limit.Pauses(ctx, tx, c.by.Tenant, f)
		return err
	})
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, pageOf(rows, most, cursorPauses, func(p limit.Pause) limit.Pause { return p },
		func(p limit.Pause) envelope.ActionID { return envelope.ActionID(p.ID) }))
}

func (s *Server) pause(c *call) error {
	var body struct {
		limit.Target
		Kill   bool
		Reason string
	}
	if err := c.decode(&body); err != nil {
		return err
	}
	var standing limit.Pause
	err := s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		var err error
		standing, err = limit.SetPause(ctx, tx, c.by.Tenant, body.Target, body.Kill, body.Reason, c.by.Name)
		return err
	})
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, standing)
}

func (s *Server) resume(c *call) error {
	of := limit.Target{Scope: limit.PauseScope(c.query.Get("scope")), Subject: c.query.Get("subject")}
	return s.change(c, func(ctx context.Context, tx pgx.Tx) error {
		return limit.Lift(ctx, tx, c.by.Tenant, of, c.query.Get("reason"), c.by.Name)
	})
}
