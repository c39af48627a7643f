package policies

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/server/rest/actions"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// Grants handles GET /api/v1/policy/grants. It lists the grants.
func Grants(c *request.Call) error {
	read := func(ctx context.Context, tx pgx.Tx, before envelope.ActionID, most int) ([]settings.Grant, error) {
		return settings.Grants(ctx, tx, c.By.Tenant, settings.GrantFilter{Ended: c.Query.Get("ended") == "true", Before: uuid.UUID(before), Most: most})
	}
	return request.AnswerPage(c, "grants", read, request.Same[settings.Grant], func(g settings.Grant) envelope.ActionID { return envelope.ActionID(g.ID) })
}

// MakeGrant handles POST /api/v1/policy/grants. It makes a grant.
func MakeGrant(c *request.Call, body wire.GrantInput) error {
	if err := request.CheckDuration("/expires_in", body.ExpiresIn, time.Second, 90*request.Day); body.ExpiresIn != 0 && err != nil {
		return err
	}
	if c.Query.Get("dry_run") == "true" {
		return previewGrant(c, body)
	}
	var id uuid.UUID
	err := c.InConfigurationTx(func(ctx context.Context, tx pgx.Tx) error {
		snap, err := c.Catalog.Current(ctx, tx, c.By.Tenant)
		if err != nil {
			return err
		}
		g, err := grantFrom(body, snap, c.By)
		if err != nil {
			return err
		}
		if id, err = settings.PutGrant(ctx, tx, c.By.Tenant, g); err != nil {
			return err
		}
		// Values of arguments are payload: the event names only their pointers.
		c.Detail = map[string]any{
			"grant_id": id, "tool": body.Tool, "employee_id": request.NilIfZero(body.Employee), "session_id": request.NilIfZero(body.Session),
			"automation_id": request.NilIfZero(body.Automation), "pins": slices.Sorted(maps.Keys(body.Pins)), "loose": g.Loose, "expires_in": request.NilIfZero(body.ExpiresIn),
		}
		return c.RecordChange(ctx, tx, "grant for "+body.Tool+" made")
	})
	if err != nil {
		return c.Suggest(request.NounTool, body.Tool, err)
	}
	c.SetLocation("/api/v1/policy/grants/" + id.String())
	return c.JSON(http.StatusCreated, struct {
		ID uuid.UUID `json:"grant_id"`
	}{id})
}

// previewGrant shows the grant of a dry run.
func previewGrant(c *request.Call, body wire.GrantInput) error {
	g, err := request.Read(c, func(ctx context.Context, tx pgx.Tx) (settings.Grant, error) {
		snap, err := c.Catalog.Current(ctx, tx, c.By.Tenant)
		if err != nil {
			return settings.Grant{}, err
		}
		return grantFrom(body, snap, c.By)
	})
	if err == nil && c.By.Tools != nil && !policy.Covers(c.By.Tools, g.Tool) {
		err = fault.Coded(wire.CodeTools, fault.Denied, "the token does not cover the tool %s", g.Tool)
	}
	if err != nil {
		return c.Suggest(request.NounTool, body.Tool, err)
	}
	return actions.ShowGrant(c, g)
}

// grantFrom returns the grant to store. Without a digest it is for the current
// definition of the tool.
func grantFrom(in wire.GrantInput, snap *settings.Settings, by identity.Principal) (settings.Grant, error) {
	key, err := policy.ParseKey(in.Tool)
	if err != nil {
		return settings.Grant{}, request.Invalid("/tool", envelope.RuleFormat, "must name one tool, as sourceId:actionId")
	}
	tool, ok := snap.Tool(key)
	if !ok || !tool.Within(by.Tools) {
		return settings.Grant{}, catalog.ErrNoTool
	}
	if len(in.Digest) > 0 && !tool.Lists(in.Digest) {
		return settings.Grant{}, fault.New(fault.Conflict, "the definition of the tool changed since it was shown")
	}
	g := settings.Grant{
		Tool: key, Digest: tool.Binding, Employee: in.Employee, Session: in.Session, Automation: in.Automation, Reason: in.Reason,
		For: cmp.Or(time.Duration(in.ExpiresIn), settings.DefaultGrant), By: by.Actor(), Person: by.Person(),
	}
	if g.Pins, g.Loose, err = policy.Only(in.Pins, in.Loose...); err != nil {
		return settings.Grant{}, err
	}
	return g, g.Check()
}

// RevokeGrant handles DELETE /api/v1/policy/grants/{id}. It revokes a grant.
func RevokeGrant(c *request.Call) error {
	id, err := uuid.Parse(c.R.PathValue("id"))
	if err != nil {
		return request.Invalid("/path/id", envelope.RuleFormat, "must be a UUID")
	}
	c.Detail = map[string]any{"grant_id": id}
	return c.Configure("grant revoked", func(ctx context.Context, tx pgx.Tx) error {
		return settings.RevokeGrant(ctx, tx, c.By.Tenant, id, c.By.Actor())
	})
}
