package limits

import (
	"context"
	"math"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/pause"
)

// Pauses handles GET /api/v1/pauses. It lists pauses, newest first.
func Pauses(c *request.Call) error {
	read := func(ctx context.Context, tx pgx.Tx, before envelope.ActionID, most int) ([]wire.Pause, error) {
		return pause.List(ctx, tx, c.By.Tenant, pause.Filter{Active: c.Query.Get("active") == "true", Before: uuid.UUID(before), Most: most})
	}
	return request.AnswerPage(c, "pauses", read, request.Same[wire.Pause], func(p wire.Pause) envelope.ActionID { return envelope.ActionID(p.ID) })
}

// Pause handles POST /api/v1/pauses. It pauses a part of the tenant's actions, or
// sets an automation travelling.
func Pause(c *request.Call, body wire.PauseInput) error {
	var active wire.Pause
	var before []wire.Pause
	err := c.InConfigurationTx(func(ctx context.Context, tx pgx.Tx) (err error) {
		if before, err = activePauses(ctx, tx, c); err != nil {
			return err
		}
		active, err = pause.Set(ctx, tx, c.By.Tenant, pause.Order{
			Target: pause.Target(body.Target), Kill: body.Kill, Travelling: body.Travelling, Reason: body.Reason, By: c.By.Actor(), NeedsPolicyWrite: c.By.MayLoosen(),
		})
		return err
	})
	if err != nil {
		return c.Suggest(string(body.Scope), body.Subject, err)
	}
	c.SetLocation("/api/v1/pauses/" + active.ID.String())
	if slices.ContainsFunc(before, func(p wire.Pause) bool { return p.ID == active.ID }) {
		return c.JSON(http.StatusOK, active)
	}
	return c.JSON(http.StatusCreated, active)
}

// ForecastPause handles GET /api/v1/pauses/forecast. It counts the actions of a
// target.
func ForecastPause(c *request.Call) error {
	of := pause.Target{Scope: c.Query.Get("scope"), Subject: c.Query.Get("subject")}
	f, err := request.Read(c, func(ctx context.Context, tx pgx.Tx) (wire.PauseForecast, error) {
		return pause.Forecast(ctx, tx, c.By.Tenant, of)
	})
	return c.Result(f, request.Below("/query", err))
}

// activePauses reads the pauses that hold.
func activePauses(ctx context.Context, tx pgx.Tx, c *request.Call) ([]wire.Pause, error) {
	return pause.List(ctx, tx, c.By.Tenant, pause.Filter{Active: true, Most: math.MaxInt32})
}

// Resume handles DELETE /api/v1/pauses/{id}. It ends a pause.
func Resume(c *request.Call) error {
	id, err := c.UUID()
	if err != nil {
		return err
	}
	return c.Change(func(ctx context.Context, tx pgx.Tx) error {
		active, err := activePauses(ctx, tx, c)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(active, func(p wire.Pause) bool { return p.ID == id })
		if i < 0 {
			return fault.New(fault.NotFound, "no such pause is active; list the pauses to see the active ones")
		}
		return pause.Lift(ctx, tx, c.By.Tenant, pause.Target(active[i].Target), c.Query.Get("reason"), c.By.Actor())
	})
}
