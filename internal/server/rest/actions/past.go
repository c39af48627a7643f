package actions

import (
	"cmp"
	"net/http"
	"time"

	"github.com/countersign-dev/countersign/internal/visible"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/insight/simulate"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/slot"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// Decider returns the caller as an approval.Decider.
func Decider(c *request.Call) approval.Decider {
	return approval.Decider{Tenant: c.By.Tenant, Token: uuid.UUID(c.By.Token), Person: c.By.Person(), Operator: c.By.Operator, Name: c.By.Name, Tools: c.By.Tools, PolicyWrite: c.Routes.Admit(c.By, "makeGrant") == nil}
}

// SimulateTimeout is the time after which a page of a simulation returns a partial
// result, since expressions may be costly and a request has a deadline.
const SimulateTimeout = 5 * time.Second

// ReadPast reads a page of past actions.
func ReadPast(c *request.Call, req simulate.Request) (*simulate.Page, error) {
	ctx := c.R.Context()
	return postgres.InTxReturning(ctx, c.DB, postgres.API(c.By.Tenant).ReadOnly(), func(tx pgx.Tx) (*simulate.Page, error) {
		return simulate.Read(ctx, tx, c.Catalog, c.By.Tenant, req)
	})
}

// The range of past actions for trying a grant, and the number of allowed calls
// shown.
const (
	grantRange = 30 * request.Day
	grantCalls = 20
)

// ShowGrant returns a grant that is not made, and the past calls that it would
// have allowed. The calls are shown to callers who may read actions.
func ShowGrant(c *request.Call, g settings.Grant) error {
	ctx, now := c.R.Context(), time.Now()
	req := simulate.Request{From: now.Add(-grantRange), To: now, Tool: g.Tool, Limit: simulate.MaxPage}
	page, err := ReadPast(c, req)
	if err != nil {
		return err
	}
	var passed simulate.Passed
	err = slot.InTurns(ctx, func(next func() error) error {
		passed, err = page.Granted(g, now, func() bool { return time.Since(now) > SimulateTimeout || next() != nil })
		return cmp.Or(err, ctx.Err())
	})
	if err != nil {
		return err
	}
	shown := wire.GrantPreview{
		Tool: g.Tool.String(), Employee: g.Employee, Session: g.Session, Automation: g.Automation, Pins: g.Pins, Loose: append([]string{}, g.Loose...),
		ExpiresIn: envelope.Duration(g.For), Since: req.From.UTC(), Examined: passed.Examined, Complete: passed.Complete, Compared: passed.Compared,
		Count: len(passed.Calls), Calls: []wire.PastCall{},
	}
	if c.Routes.Admit(c.By, "getAction") == nil {
		for _, call := range passed.Calls[:min(grantCalls, len(passed.Calls))] {
			p := wire.PastCall{ActionID: call.Action, ProposedAt: call.At}
			p.Args, p.ArgsPreview, p.ArgsCut = visible.Summary(access.Args(c.By, call.Args))
			shown.Calls = append(shown.Calls, p)
		}
	}
	return c.JSON(http.StatusOK, shown)
}
