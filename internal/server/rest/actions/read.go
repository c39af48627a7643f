package actions

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
)

// Views reads actions of any session, by id. Actions that do not exist are left
// out.
func Views(c *request.Call, ids ...envelope.ActionID) (map[envelope.ActionID]outbox.View, error) {
	views, err := request.Read(c, func(ctx context.Context, tx pgx.Tx) ([]outbox.View, error) {
		return outbox.Get(ctx, tx, c.By.Tenant, ids...)
	})
	byID := make(map[envelope.ActionID]outbox.View, len(views))
	for _, v := range views {
		byID[v.Envelope.ActionID] = v
	}
	return byID, err
}

// Show handles GET /api/v1/actions/{id}. It shows an action, after its end if
// the caller wants to wait.
func Show(c *request.Call, id envelope.ActionID) error {
	view, err := await(c, id, false)
	if err != nil {
		return err
	}
	shown := ViewFor(c.By, view)
	var tag string
	if shown.Decision != nil {
		tag = shown.Decision.ETag
	}
	if tag == "" {
		if tag, err = request.ETagOf(shown); err != nil {
			return err
		}
	}
	c.SetETag(tag)
	snap, err := c.Settings.Current(c.R.Context(), c.By.Tenant)
	if err != nil {
		return err
	}
	one := []wire.Action{shown}
	if err := describe(c.InTx, c.By, snap, one); err != nil {
		return err
	}
	if err := addMail(c, one); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, one[0])
}

// cursorActions is the name of the list of actions in cursors. That of the oldest
// first has another, so that a cursor does not turn around.
const cursorActions = "actions"

// List handles GET /api/v1/actions. It lists actions, newest first unless the
// caller asks for the oldest.
func List(c *request.Call) error {
	f, err := actionFilter(c)
	if err != nil {
		return err
	}
	list := cursorActions
	if f.Oldest {
		list += "-oldest"
	}
	if f.After, f.Most, err = c.Page(list); err != nil {
		return err
	}
	shown := wire.Page[wire.Action]{Items: []wire.Action{}}
	var visible bool
	if f.Session, visible = access.SessionFilter(c.By, f.Session); !visible {
		return c.JSON(http.StatusOK, shown)
	}
	snap, err := c.Settings.Current(c.R.Context(), c.By.Tenant)
	if err != nil {
		return err
	}
	found, err := request.Read(c, func(ctx context.Context, tx pgx.Tx) (outbox.Page, error) {
		page, err := outbox.List(ctx, tx, c.By.Tenant, f)
		decoded := make(traces)
		shown.Items = request.Map(page.Items, func(v outbox.View) wire.Action { return viewFor(c.By, v, decoded) })
		if err != nil {
			return page, err
		}
		inTx := func(fn func(ctx context.Context, tx pgx.Tx) error) error { return fn(ctx, tx) }
		return page, describe(inTx, c.By, snap, shown.Items)
	})
	if err != nil {
		return err
	}
	if c.Summary() {
		shown.Items = request.Map(shown.Items, Summary)
	}
	if err := addMail(c, shown.Items); err != nil {
		return err
	}
	if found.Next != nil {
		shown.NextCursor = new(request.WriteCursor(list, *found.Next))
	}
	return c.JSON(http.StatusOK, shown)
}

// actionFilter reads the filter from the query.
func actionFilter(c *request.Call) (outbox.Filter, error) {
	q := c.Query
	f := outbox.Filter{
		Session: q.Get("session_id"), ExternalID: q.Get("external_id"), Automation: q.Get("automation_id"), Oldest: q.Get("order") == "oldest",
		Status: envelope.Status(q.Get("status")), Approval: envelope.Approval(q.Get("approval")),
		Phases: request.Several[envelope.Phase](c, "phase"), Risks: request.Several[envelope.Risk](c, "risk"),
	}
	var err error
	if f.Source, f.Tool, err = request.SelectTools(q.Get("source"), q.Get("tool"), "/query/tool"); err != nil {
		return f, err
	}
	if f.Employee, _, err = c.Employee(); err != nil {
		return f, err
	}
	if text := q.Get("workflow_id"); text != "" {
		if f.Workflow, err = uuid.Parse(text); err != nil {
			return f, request.Invalid("/query/workflow_id", envelope.RuleFormat, "must be a UUID")
		}
	}
	if f.Words, err = access.Words(c.By, q.Get("q")); err != nil {
		return f, err
	}
	f.Since, f.Until, err = c.QueryRange()
	return f, err
}

// Attempts handles GET /api/v1/actions/{id}/attempts. It lists the attempts at
// an action.
func Attempts(c *request.Call, id envelope.ActionID) error {
	rows, err := request.Read(c, func(ctx context.Context, tx pgx.Tx) ([]wire.Attempt, error) {
		if _, err := access.View(ctx, tx, c.By, id); err != nil {
			return nil, err
		}
		return outbox.Attempts(ctx, tx, c.By.Tenant, id)
	})
	if err != nil {
		return err
	}
	return request.Sorted(c, "attempts", rows, func(a wire.Attempt) string {
		return fmt.Sprintf("%04d %s", a.Attempt, a.FinishedAt.Format(time.RFC3339Nano))
	})
}
