// Package approvals handles requests about decisions of people: approving,
// denying and editing actions, the inbox, and the review rules.
package approvals

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/rest/actions"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
)

// alwaysBody is the request for a grant.
type alwaysBody struct {
	ExpiresIn envelope.Duration `json:"expires_in"`
	Scope     approval.Scope    `json:"scope"`
	Loose     []string          `json:"loose"`
	Pins      pins              `json:"pins"`
}

func (b *alwaysBody) always() approval.Always {
	return approval.Always{For: time.Duration(b.ExpiresIn), Scope: b.Scope, Loose: b.Loose, Pins: b.Pins}
}

// pins are JSON Pointers, or "all" for the arguments as a whole.
type pins []string

// UnmarshalJSON decodes a list or "all".
func (p *pins) UnmarshalJSON(text []byte) error {
	if string(text) == `"all"` {
		*p = pins{""}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(p))
}

// approveBody is the body of POST /api/v1/actions/{id}/approve.
type approveBody struct {
	Note   string
	Args   json.RawMessage
	Always *alwaysBody
}

// Approve handles POST /api/v1/actions/{id}/approve. It approves an action,
// optionally with other arguments or with a grant for similar actions.
func Approve(c *request.Call, body approveBody, id envelope.ActionID) error {
	a := approval.Approval{Note: body.Note, IfMatch: c.IfMatch(), Args: body.Args}
	if err := checkEdit(c, id, body.Args); err != nil {
		return err
	}
	if w := body.Always; w != nil {
		a.Always = new(w.always())
	}
	done, err := c.Approval.Approve(c.R.Context(), actions.Decider(c), id, a)
	if err != nil {
		return err
	}
	if done.Grant != uuid.Nil {
		c.W.Header().Set("Countersign-Grant", done.Grant.String())
	}
	if done.Approval != envelope.ApprovalGranted {
		c.WaitFor = 0 // nothing happens before another person agrees
	}
	return actions.Show(c, id)
}

// PreviewAlways handles POST /api/v1/actions/{id}/always: the grant that an
// approval would make.
func PreviewAlways(c *request.Call, body alwaysBody, id envelope.ActionID) error {
	g, err := c.Approval.PreviewAlways(c.R.Context(), actions.Decider(c), id, c.IfMatch(), body.always())
	if err != nil {
		return err
	}
	return actions.ShowGrant(c, g)
}

// Deny handles POST /api/v1/actions/{id}/deny. It denies an action.
func Deny(c *request.Call, body wire.Note, id envelope.ActionID) error {
	if err := c.Approval.Deny(c.R.Context(), actions.Decider(c), id, approval.Denial{Note: body.Note, IfMatch: c.IfMatch()}); err != nil {
		return err
	}
	return actions.Show(c, id)
}

// editBody is the body of POST /api/v1/actions/{id}/edit.
type editBody struct {
	Args json.RawMessage
	Note string
}

// Edit handles POST /api/v1/actions/{id}/edit. It changes the arguments of an
// action that waits for approval.
func Edit(c *request.Call, body editBody, id envelope.ActionID) error {
	if err := checkEdit(c, id, body.Args); err != nil {
		return err
	}
	err := c.Approval.Edit(c.R.Context(), actions.Decider(c), id, approval.Edit{Args: body.Args, Note: body.Note, IfMatch: c.IfMatch()})
	if err != nil {
		return err
	}
	return actions.Show(c, id)
}

// checkEdit checks other arguments of an action of triage. It compares them with
// the proposal, which no edit changes.
func checkEdit(c *request.Call, id envelope.ActionID, args json.RawMessage) error {
	if args == nil || !json.Valid(args) {
		return nil
	}
	return c.InTx(func(ctx context.Context, tx pgx.Tx) error { return c.CheckEdit(ctx, tx, c.By.Tenant, id, args) })
}

// answerMany answers with the result for each of several actions.
func answerMany(c *request.Call, all []approval.Result) error {
	answered := make([]wire.Decided, len(all))
	for i, s := range all {
		it := wire.Decided{ActionID: s.Action, Needed: s.Needed, Given: s.Given}
		switch {
		case s.Err != nil:
			it.Result, it.Problem = "refused", new(request.ProblemOf(s.Err))
			it.Problem.Instance = request.ID(c.R.Context())
		case s.Approval == envelope.ApprovalGranted:
			it.Result = "approved"
		case s.Approval == envelope.ApprovalDenied:
			it.Result = "denied"
		default:
			it.Result = "voted"
		}
		answered[i] = it
	}
	return request.Items(c, answered)
}

// ApproveMany handles POST /api/v1/actions/approve. It approves several actions
// and returns a result for each.
func ApproveMany(c *request.Call, body wire.BulkDecision) error {
	all, err := c.Approval.ApproveMany(c.R.Context(), actions.Decider(c), body.IDs, body.Note, body.ETags)
	if err != nil {
		return err
	}
	return answerMany(c, all)
}

// DenyMany handles POST /api/v1/actions/deny. It denies several actions and
// returns a result for each.
func DenyMany(c *request.Call, body wire.BulkDecision) error {
	all, err := c.Approval.DenyMany(c.R.Context(), actions.Decider(c), body.IDs, body.Note, body.ETags)
	if err != nil {
		return err
	}
	return answerMany(c, all)
}

// Votes handles GET /api/v1/actions/{id}/votes. It lists the votes on an
// action.
func Votes(c *request.Call, id envelope.ActionID) error {
	votes, err := request.Read(c, func(ctx context.Context, tx pgx.Tx) ([]wire.Vote, error) {
		if _, err := access.View(ctx, tx, c.By, id); err != nil {
			return nil, err
		}
		return approval.Votes(ctx, tx, c.By.Tenant, id)
	})
	if err != nil {
		return err
	}
	return request.Sorted(c, "votes", votes, func(v wire.Vote) string {
		return fmt.Sprintf("%04d %s %s", v.Round, v.At.Format(time.RFC3339Nano), v.By)
	})
}
