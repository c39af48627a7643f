package limits

import (
	"context"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/pause"
)

// cursorPauses is the name of the list of pauses in cursors.
const cursorPauses = "pauses"

// GET /api/v1/pauses lists pauses, newest first.
func Pauses(c *request.Call) error {
	before, most, err := c.Page(cursorPauses)
	if err != nil {
		return err
	}
	f := pause.Filter{Active: c.Query.Get("standing") == "true", Before: pause.ID(before), Most: most + 1}
	var rows []pause.Pause
	err = c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		rows, err = pause.List(ctx, tx, c.By.Tenant, f)
		return err
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, request.PageOf(rows, most, cursorPauses, func(p pause.Pause) pause.Pause { return p },
		func(p pause.Pause) envelope.ActionID { return envelope.ActionID(p.ID) }))
}

// POST /api/v1/pauses pauses a part of the tenant's actions.
func Pause(c *request.Call) error {
	var body struct {
		pause.Target
		Kill   bool
		Reason string
	}
	if err := c.Decode(&body); err != nil {
		return err
	}
	var standing pause.Pause
	err := c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		var err error
		standing, err = pause.Set(ctx, tx, c.By.Tenant, body.Target, body.Kill, body.Reason, c.By.Name)
		return err
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, standing)
}

// DELETE /api/v1/pauses ends a pause.
func Resume(c *request.Call) error {
	of := pause.Target{Scope: pause.Scope(c.Query.Get("scope")), Subject: c.Query.Get("subject")}
	return c.Change(func(ctx context.Context, tx pgx.Tx) error {
		return pause.Lift(ctx, tx, c.By.Tenant, of, c.Query.Get("reason"), c.By.Name)
	})
}
