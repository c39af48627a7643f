package triage

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/reversal"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/rest/actions"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/inspect"
)

// cursorUndo is the name in cursors of the list of undone actions.
const cursorUndo = "triage-undo"

// Undo handles POST /api/v1/triage/undo. It undoes what triage did in mail
// accounts that name the caller, and returns a result for each action.
func Undo(c *request.Call, body wire.TriageUndoRequest) error {
	result := wire.TriageUndoResult{DryRun: body.DryRun, Items: []wire.TriageUndoItem{}}
	ids := body.ActionIDs
	if ids == nil {
		var err error
		if ids, result.NextCursor, err = undoPage(c, body); err != nil {
			return err
		}
	}
	answers, err := reversal.New(c.DB, c.Catalog, c.Intake).Undo(c.R.Context(), c.Approval, reversal.UndoRequest{
		By: c.Submitter(), Decider: actions.Decider(c), Actions: ids, DryRun: body.DryRun,
		Sees: func(session string) bool { return access.SeesSession(c.By, session) },
	})
	if err != nil {
		return err
	}
	c.Wake() // retried reversals may be due now
	for _, a := range answers {
		result.Items = append(result.Items, undoItem(c, a, body.DryRun))
	}
	return c.JSON(http.StatusOK, result)
}

func undoItem(c *request.Call, a reversal.Undone, dryRun bool) wire.TriageUndoItem {
	it := wire.TriageUndoItem{RevertItem: actions.RevertItem(c, a.Answer, dryRun), Account: a.Account}
	it.Result = a.Result
	if a.Action == (envelope.ActionID{}) {
		it.RevertedBy = nil
	}
	if a.Message != uuid.Nil {
		it.MessageID = &a.Message
	}
	return it
}

// undoPage returns the actions that a request takes of its filter.
func undoPage(c *request.Call, b wire.TriageUndoRequest) (ids []envelope.ActionID, next *string, err error) {
	limit := cmp.Or(b.Limit, reversal.MaxBatch)
	f := reversal.UndoFilter{
		Operator: c.By.Person(), Account: b.Filter.Account, Run: b.Filter.RunID, Since: b.Filter.Since, Until: b.Filter.Until, Limit: limit + 1,
	}
	place, err := parsePlaceAt(cursorUndo, b.Cursor, "/cursor")
	if err != nil {
		return nil, nil, err
	}
	f.Before = reversal.UndoPlace{Action: envelope.ActionID(place.ID), At: place.At}
	if err := f.Check("/filter"); err != nil {
		return nil, nil, err
	}
	var visible bool
	if f.Session, visible = access.SessionFilter(c.By, b.Filter.SessionID); !visible {
		return []envelope.ActionID{}, nil, nil
	}
	acts, err := request.Read(c, func(ctx context.Context, tx pgx.Tx) ([]reversal.UndoPlace, error) {
		if err := checkUndo(ctx, tx, c, f); err != nil {
			return nil, err
		}
		return reversal.SelectActs(ctx, tx, c.By.Tenant, f)
	})
	if err != nil {
		return nil, nil, err
	}
	ids = make([]envelope.ActionID, min(len(acts), limit))
	for i := range ids {
		ids[i] = acts[i].Action
	}
	if len(acts) > limit {
		last := acts[limit-1]
		next = new(request.WriteTextCursor(cursorUndo, fmt.Sprintf("%d/%s", last.At.UnixMicro(), last.Action)))
	}
	return ids, next, nil
}

// checkUndo returns the reason why a filter can select nothing: its account or run
// does not exist, or no account names the caller.
func checkUndo(ctx context.Context, tx pgx.Tx, c *request.Call, f reversal.UndoFilter) error {
	var names []string
	if f.Account != "" {
		a, err := account.Get(ctx, tx, c.By.Tenant, f.Account)
		if err != nil {
			return err
		}
		names = append(names, a.Name)
	}
	all, err := account.List(ctx, tx, c.By.Tenant, names...)
	if err != nil {
		return err
	}
	mine := make(map[uuid.UUID]bool)
	for _, a := range all {
		if a.Operator != uuid.Nil && a.Operator == f.Operator {
			mine[a.ID] = true
		}
	}
	switch {
	case len(mine) > 0:
	case f.Account != "":
		return fault.At("/filter/account", "operator", fault.Denied, "the mail account %s does not name you as its operator; an administrator names one (operator_id)", f.Account)
	default:
		return fault.New(fault.Denied, "no mail account names you as its operator; an administrator names one (operator_id)")
	}
	if f.Run == uuid.Nil {
		return nil
	}
	of, err := inspect.RunAccount(ctx, tx, c.By.Tenant, f.Run)
	if err == nil && !mine[of] {
		err = fault.At("/filter/run_id", "operator", fault.Denied, "run %s is of another mail account than those that name you as their operator", f.Run)
	}
	return err
}
