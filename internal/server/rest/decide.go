package rest

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

// decider is the caller as the desk knows it.
func (c *call) decider() approval.Decider {
	return approval.Decider{Tenant: c.by.Tenant, Token: uuid.UUID(c.by.Token), Person: c.by.Person(), Name: c.by.Name, Tools: c.by.Tools}
}

// alwaysBody asks that what is like an action be let through from now on.
type alwaysBody struct {
	ExpiresIn limits.Duration `json:"expires_in"`
	Scope     approval.Scope  `json:"scope"`
	Pins      pins            `json:"pins"`
}

// pins are JSON Pointers, or "all" for the arguments as a whole.
type pins []string

// UnmarshalJSON reads either.
func (p *pins) UnmarshalJSON(text []byte) error {
	if string(text) == `"all"` {
		*p = pins{""}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(p))
}

func (s *Server) approveAction(c *call) error {
	var body struct {
		Note, Seen string
		Args       json.RawMessage
		Always     *alwaysBody
	}
	if err := c.decode(&body); err != nil {
		return err
	}
	id, err := c.action()
	if err != nil {
		return err
	}
	a := approval.Approval{Note: body.Note, IfMatch: body.Seen, Args: body.Args}
	if w := body.Always; w != nil {
		a.Always = &approval.Always{For: time.Duration(w.ExpiresIn), Scope: w.Scope, Pins: w.Pins}
	}
	done, err := s.Approval.Approve(c.r.Context(), c.decider(), id, a)
	if err != nil {
		return err
	}
	if done.Grant != uuid.Nil {
		c.w.Header().Set("Countersign-Grant", done.Grant.String())
	}
	if done.Approval != envelope.ApprovalGranted {
		c.wait = 0 // nothing happens before somebody else agrees
	}
	return s.show(c, id)
}

func (s *Server) denyAction(c *call) error {
	var body struct{ Note string }
	if err := c.decode(&body); err != nil {
		return err
	}
	id, err := c.action()
	if err != nil {
		return err
	}
	if err := s.Approval.Deny(c.r.Context(), c.decider(), id, body.Note); err != nil {
		return err
	}
	return s.show(c, id)
}

func (s *Server) editAction(c *call) error {
	var body struct {
		Args       json.RawMessage
		Note, Seen string
	}
	if err := c.decode(&body); err != nil {
		return err
	}
	id, err := c.action()
	if err != nil {
		return err
	}
	err = s.Approval.Edit(c.r.Context(), c.decider(), id, approval.Edit{Args: body.Args, Note: body.Note, IfMatch: body.Seen})
	if err != nil {
		return err
	}
	return s.show(c, id)
}

// lot is a decision about several actions.
type lot struct {
	IDs  []envelope.ActionID
	Note string
	Seen map[envelope.ActionID]string
}

// lotItem is what became of one action of a lot.
type lotItem struct {
	Action  envelope.ActionID `json:"action_id"`
	Result  string            `json:"result"`
	Needed  int               `json:"approvals_needed,omitzero"`
	Given   int               `json:"approvals_given,omitzero"`
	Problem *problem          `json:"problem,omitempty"`
}

func (c *call) lotDecided(all []approval.Result, err error) error {
	if err != nil {
		return err
	}
	answered := make([]lotItem, len(all))
	for i, s := range all {
		it := lotItem{Action: s.Action, Needed: s.Needed, Given: s.Given}
		switch {
		case s.Err != nil:
			it.Result, it.Problem = "refused", new(describe(s.Err))
			it.Problem.Instance = requestID(c.r.Context())
		case s.Approval == envelope.ApprovalGranted:
			it.Result = "approved"
		case s.Approval == envelope.ApprovalDenied:
			it.Result = "denied"
		default:
			it.Result = "voted"
		}
		answered[i] = it
	}
	return items(c, answered)
}

func (s *Server) approveActions(c *call) error {
	var body lot
	if err := c.decode(&body); err != nil {
		return err
	}
	return c.lotDecided(s.Approval.ApproveMany(c.r.Context(), c.decider(), body.IDs, body.Note, body.Seen))
}

func (s *Server) denyActions(c *call) error {
	var body lot
	if err := c.decode(&body); err != nil {
		return err
	}
	return c.lotDecided(s.Approval.DenyMany(c.r.Context(), c.decider(), body.IDs, body.Note))
}

// vote is what one person said about an action.
type vote struct {
	Round    int               `json:"round"`
	By       string            `json:"by"`
	Decision envelope.Decision `json:"decision"`
	Note     string            `json:"note"`
	At       time.Time         `json:"at"`
}

func (s *Server) listVotes(c *call) error {
	id, err := c.action()
	if err != nil {
		return err
	}
	var votes []approval.Vote
	err = s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := c.view(ctx, tx, id); err != nil {
			return err
		}
		votes, err = approval.Votes(ctx, tx, c.by.Tenant, id)
		return err
	})
	if err != nil {
		return err
	}
	shown := make([]vote, len(votes))
	for i, v := range votes {
		shown[i] = vote{Round: v.Round, By: v.Name, Decision: v.Decision, Note: v.Note, At: v.At.UTC()}
	}
	return items(c, shown)
}

func (s *Server) undoAction(c *call) error {
	id, err := c.action()
	if err != nil {
		return err
	}
	err = s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := c.view(ctx, tx, id); err != nil {
			return err
		}
		return outbox.Undo(ctx, tx, c.by.Tenant, id, c.by.Name)
	})
	if err != nil {
		return err
	}
	return s.show(c, id)
}
