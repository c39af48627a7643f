// Package insight handles requests about executions, proposals in SQL, the overview
// and the notebook.
package insight

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/countersign-dev/countersign/internal/visible"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/snapshot"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/insight/execution"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
)

// cursorExecutions is the name of the list of executions in cursors.
const cursorExecutions = "executions"

// Executions handles GET /api/v1/executions. It lists executions, newest first.
func Executions(c *request.Call) error {
	f, err := executionFilter(c)
	if err != nil {
		return err
	}
	shown := wire.Page[wire.Execution]{Items: []wire.Execution{}}
	var visible bool
	if f.Session, visible = access.SessionFilter(c.By, f.Session); !visible {
		return c.JSON(http.StatusOK, shown)
	}
	found, err := request.Read(c, func(ctx context.Context, tx pgx.Tx) (execution.Page, error) {
		return execution.List(ctx, tx, c.By.Tenant, f)
	})
	if err != nil {
		return err
	}
	for _, e := range found.Items {
		e = execution.ViewFor(uuid.UUID(c.By.Token), e)
		if c.Summary() {
			e = summary(e)
		}
		shown.Items = append(shown.Items, e)
	}
	if found.Next != nil {
		shown.NextCursor = new(request.WriteCursor(cursorExecutions, *found.Next))
	}
	return c.JSON(http.StatusOK, shown)
}

// summary returns an execution as lists of summaries show it.
func summary(e wire.Execution) wire.Execution {
	var cut bool
	e.Inputs, e.ArgsPreview, cut = visible.Summary(e.Inputs)
	e.ArgsCut, e.Policy.Trace = &cut, []wire.PolicyStep{}
	e.Outputs, e.Preview = visible.Short(e.Outputs, nil), visible.Short(e.Preview, nil)
	if e.Proposed != nil {
		e.Proposed = visible.Short(e.Proposed, json.RawMessage("{}"))
	}
	return e
}

// executionFilter reads the filter from the query.
func executionFilter(c *request.Call) (execution.Filter, error) {
	before, limit, err := c.Page(cursorExecutions)
	if err != nil {
		return execution.Filter{}, err
	}
	q := c.Query
	f := execution.Filter{
		Status: wire.ExecutionStatus(q.Get("status")), Session: q.Get("session_id"), UserName: q.Get("user"),
		Automation: q.Get("automation_id"), Code: q.Get("code"), Via: q.Get("via"), IP: q.Get("ip"), Before: before, Limit: limit,
	}
	if f.Source, f.Tool, err = request.SelectTools(q.Get("source"), q.Get("tool"), "/query/tool"); err != nil {
		return f, err
	}
	for name, id := range map[string]*uuid.UUID{"employee_id": (*uuid.UUID)(&f.Employee), "token_id": &f.User, "workflow_id": &f.Workflow} {
		if text := q.Get(name); text != "" {
			if *id, err = uuid.Parse(text); err != nil {
				return f, request.Invalid("/query/"+name, envelope.RuleFormat, "must be a UUID")
			}
		}
	}
	f.Since, f.Until, err = c.QueryRange()
	return f, err
}

// Execution handles GET /api/v1/executions/{id}. It shows an execution with its
// attempts, snapshots and related executions.
func Execution(c *request.Call, id envelope.ActionID) error {
	var d wire.ExecutionDetail
	err := c.InTx(func(ctx context.Context, tx pgx.Tx) (err error) {
		if d.Execution, err = execution.Get(ctx, tx, c.By.Tenant, id); err != nil {
			return err
		}
		if !access.SeesSession(c.By, d.Session) {
			return fault.New(fault.NotFound, "no execution %s", id)
		}
		if d.AttemptLog, err = outbox.Attempts(ctx, tx, c.By.Tenant, id); err != nil {
			return err
		}
		if d.Snapshots, err = snapshot.List(ctx, tx, c.By.Tenant, id); err != nil {
			return err
		}
		d.Related, err = execution.RelatedTo(ctx, tx, &d.Execution)
		return err
	})
	if err != nil {
		return err
	}
	d.Execution = execution.ViewFor(uuid.UUID(c.By.Token), d.Execution)
	return c.JSON(http.StatusOK, d)
}
