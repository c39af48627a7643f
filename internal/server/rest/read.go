package rest

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// sees says whether the caller may see an action: agents see those of their
// own session.
func (c *call) sees(v outbox.View) bool {
	return c.by.Role != identity.RoleAgent || c.by.Session != "" && v.Envelope.SessionID == c.by.Session
}

// view reads an action that the caller may see. Another one is not there.
func (c *call) view(ctx context.Context, tx pgx.Tx, id envelope.ActionID) (outbox.View, error) {
	views, err := outbox.Get(ctx, tx, c.by.Tenant, id)
	if err != nil {
		return outbox.View{}, err
	}
	if len(views) == 0 || !c.sees(views[0]) {
		return outbox.View{}, fault.New(fault.NotFound, "no action %s", id)
	}
	return views[0], nil
}

// views reads actions whatever session they are of.
func (s *Server) views(c *call, ids ...envelope.ActionID) ([]outbox.View, error) {
	var views []outbox.View
	err := s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		var err error
		views, err = outbox.Get(ctx, tx, c.by.Tenant, ids...)
		return err
	})
	return views, err
}

// show answers with an action, after its end if the caller wants to wait.
func (s *Server) show(c *call, id envelope.ActionID) error {
	view, err := s.await(c, id)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, actionFromView(view))
}

func (s *Server) getAction(c *call) error {
	id, err := c.action()
	if err != nil {
		return err
	}
	return s.show(c, id)
}

func (s *Server) waitForAction(c *call) error { return s.getAction(c) }

func (s *Server) listActions(c *call) error {
	before, limit, err := c.place(cursorActions)
	if err != nil {
		return err
	}
	q := c.query
	f := outbox.Filter{
		Session: q.Get("session"), Tool: q.Get("tool"), Source: q.Get("source"), ExternalID: q.Get("external_id"),
		Status: envelope.Status(q.Get("status")), Approval: envelope.Approval(q.Get("approval")), Before: before, Most: limit + 1,
	}
	var views []outbox.View
	if c.by.Role != identity.RoleAgent || cmp.Or(f.Session, c.by.Session) == c.by.Session {
		f.Session = cmp.Or(f.Session, agentSession(c.by))
		err = s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
			var err error
			views, err = outbox.List(ctx, tx, c.by.Tenant, f)
			return err
		})
	}
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, pageOf(views, limit, cursorActions, actionFromView,
		func(v outbox.View) envelope.ActionID { return v.Envelope.ActionID }))
}

// agentSession is the session that the caller is confined to; empty for none.
func agentSession(by identity.Principal) string {
	if by.Role == identity.RoleAgent {
		return by.Session
	}
	return ""
}

func (s *Server) listAttempts(c *call) error {
	id, err := c.action()
	if err != nil {
		return err
	}
	var rows []outbox.Attempt
	err = s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := c.view(ctx, tx, id); err != nil {
			return err
		}
		rows, err = outbox.Attempts(ctx, tx, c.by.Tenant, id)
		return err
	})
	if err != nil {
		return err
	}
	return items(c, attemptsFrom(rows))
}

// below puts the pointers of an invalid proposal below the place that it has
// in a batch.
func below(at string, err error) error {
	broken, ok := errors.AsType[*envelope.InvalidError](err)
	if !ok {
		return err
	}
	fields := make([]envelope.FieldError, len(broken.Fields))
	for i, f := range broken.Fields {
		f.Pointer = at + f.Pointer
		fields[i] = f
	}
	return &envelope.InvalidError{Fields: fields}
}
