package actions

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/reversal"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// cursorRevert is the name in cursors of the list of reverted actions.
const cursorRevert = "revert"

// revert reverts actions in the name of the caller.
func revert(c *request.Call, by intake.Submitter, dryRun bool, ids ...envelope.ActionID) ([]reversal.Answer, error) {
	return reversal.New(c.DB, c.Catalog, c.Intake).Revert(c.R.Context(), reversal.Request{
		By: by, Actions: ids, DryRun: dryRun, Sees: func(session string) bool { return access.SeesSession(c.By, session) },
	})
}

// Revert handles POST /api/v1/actions/{id}/revert. It proposes the reversal of
// a completed action: 201 if it is new, 200 if it is known.
func Revert(c *request.Call, id envelope.ActionID) error {
	by := c.Submitter()
	by.Awaited = c.WaitFor > 0
	answers, err := revert(c, by, false, id)
	if err != nil {
		return err
	}
	a := answers[0]
	if a.Err != nil {
		return a.Err
	}
	view, err := awaitProposed(c, a.Answer)
	if a.Known && errors.Is(err, fault.NotFound) {
		return fault.At("/reverted_by", "other_session", fault.Conflict, "its reversal %s was proposed outside of your session", a.Action)
	}
	if err != nil {
		return err
	}
	if !a.Known && view.Mode == envelope.ModeDeny {
		return &deniedError{view}
	}
	c.W.Header().Set("Location", "/api/v1/actions/"+a.Action.String())
	status := http.StatusCreated
	if a.Known {
		status = http.StatusOK
	}
	return c.JSON(status, ViewFor(c.By, view))
}

// RevertMany handles POST /api/v1/actions/revert. It proposes the reversals of
// several actions and returns a result for each.
func RevertMany(c *request.Call, body wire.RevertRequest) error {
	result := wire.RevertResult{DryRun: body.DryRun, Items: []wire.RevertItem{}}
	ids := body.ActionIDs
	if ids == nil {
		page, err := revertPage(c, body)
		if err != nil {
			return err
		}
		ids, result.NextCursor = page.Items, page.NextCursor
	}
	answers, err := revert(c, c.Submitter(), body.DryRun, ids...)
	if err != nil {
		return err
	}
	for _, a := range answers {
		result.Items = append(result.Items, RevertItem(c, a, body.DryRun))
	}
	return c.JSON(http.StatusOK, result)
}

// revertPage returns the actions that a request takes of its filter.
func revertPage(c *request.Call, b wire.RevertRequest) (page wire.Page[envelope.ActionID], err error) {
	limit := cmp.Or(b.Limit, reversal.MaxBatch)
	f := reversal.Filter{Workflow: b.Filter.WorkflowID, Since: b.Filter.Since, Until: b.Filter.Until, Limit: limit + 1}
	if f.Before, err = request.ParseCursorAt(cursorRevert, b.Cursor, "/cursor"); err != nil {
		return page, err
	}
	if err = f.Check("/filter"); err != nil {
		return page, err
	}
	if f.Source, f.Tool, err = request.SelectTools("", b.Filter.Tool, "/filter/tool"); err != nil {
		return page, err
	}
	var visible bool
	if f.Session, visible = access.SessionFilter(c.By, b.Filter.SessionID); !visible {
		return page, nil
	}
	ids, err := request.Read(c, func(ctx context.Context, tx pgx.Tx) ([]envelope.ActionID, error) {
		return reversal.Select(ctx, tx, c.By.Tenant, f)
	})
	return request.PageOf(ids, limit, cursorRevert, request.Same, request.Same), err
}

// RevertItem returns an answer as the caller sees it.
func RevertItem(c *request.Call, a reversal.Answer, dryRun bool) wire.RevertItem {
	it := wire.RevertItem{ActionID: a.Reverted, Result: wire.ResultAccepted, Tool: toolText(a.Tool), ReverseTool: toolText(a.By), ReverseArgs: a.Args, Phase: a.Phase}
	if a.Known || !dryRun {
		it.RevertedBy = &a.Action
	}
	switch {
	case a.Err != nil:
		it = wire.RevertItem{ActionID: a.Reverted, Result: wire.ResultRefused, Tool: it.Tool, Problem: new(request.ProblemOf(a.Err))}
	case a.Known:
		it.Result = wire.ResultKnown
	case a.Mode == envelope.ModeDeny:
		why := policy.Because(envelope.ModeDeny, a.Source, policy.Denying(a.Trace))
		it.Result, it.Problem = wire.ResultDenied, new(request.ProblemOf(fault.New(fault.Denied, "policy denies this action: %s", why)))
	}
	if it.ReverseArgs != nil {
		it.ReverseArgs = access.Args(c.By, it.ReverseArgs)
	}
	if it.Problem != nil {
		it.Problem.Instance = request.ID(c.R.Context())
	}
	return it
}

// toolText returns the name of a tool; "" for none.
func toolText(k policy.Key) string {
	if k == (policy.Key{}) {
		return ""
	}
	return k.String()
}
