package actions

import (
	"context"
	"fmt"
	"net/http"
	"time"

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

// GET /api/v1/actions/{id} shows an action, after its end if the caller wants
// to wait.
func Show(c *request.Call, id envelope.ActionID) error {
	view, err := await(c, id)
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
	return c.JSON(http.StatusOK, shown)
}

// GET /api/v1/actions lists actions, newest first.
func List(c *request.Call) error {
	q := c.Query
	f := outbox.Filter{
		Session: q.Get("session_id"), ExternalID: q.Get("external_id"),
		Status: envelope.Status(q.Get("status")), Approval: envelope.Approval(q.Get("approval")),
	}
	var err error
	if f.Source, f.Tool, err = request.SelectTools(q.Get("source"), q.Get("tool"), "/query/tool"); err != nil {
		return err
	}
	var visible bool
	f.Session, visible = access.SessionFilter(c.By, f.Session)
	read := func(ctx context.Context, tx pgx.Tx, before envelope.ActionID, most int) ([]outbox.View, error) {
		if !visible {
			return nil, nil
		}
		f.Before, f.Most = before, most
		return outbox.List(ctx, tx, c.By.Tenant, f)
	}
	return request.AnswerPage(c, "actions", read, func(v outbox.View) wire.Action { return ViewFor(c.By, v) },
		func(v outbox.View) envelope.ActionID { return v.Envelope.ActionID })
}

// GET /api/v1/actions/{id}/attempts lists the attempts at an action.
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
