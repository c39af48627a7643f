package api

import (
	"context"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/outbox"
)

// letter is a dead letter as the API shows it.
type letter struct {
	Action     envelope.ActionID `json:"action_id"`
	ExternalID string            `json:"external_id,omitzero"`
	Source     string            `json:"source"`
	Tool       string            `json:"tool"`
	Reason     outbox.Reason     `json:"reason"`
	Attempts   int               `json:"attempts"`
	Code       string            `json:"code,omitzero"`
	Message    string            `json:"message,omitzero"`
	At         time.Time         `json:"at"`
}

func letterFrom(l outbox.Letter) letter {
	return letter{
		Action: l.Action, ExternalID: l.ExternalID, Source: l.Source, Tool: l.Tool, Reason: l.Reason,
		Attempts: l.Attempt, Code: l.Code, Message: l.Message, At: l.At.UTC(),
	}
}

func (s *Server) listDeadLetters(c *call) error {
	before, limit, err := c.place(cursorLetters)
	if err != nil {
		return err
	}
	f := outbox.LetterFilter{Reason: outbox.Reason(c.query.Get("reason")), Tool: c.query.Get("tool"), Before: before, Most: limit + 1}
	var rows []outbox.Letter
	err = s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		rows, err = outbox.Letters(ctx, tx, c.by.Tenant, f)
		return err
	})
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, pageOf(rows, limit, cursorLetters, letterFrom,
		func(l outbox.Letter) envelope.ActionID { return l.Action }))
}

func (s *Server) getDeadLetter(c *call) error {
	id, err := c.action()
	if err != nil {
		return err
	}
	var answer struct {
		Letter   letter    `json:"letter"`
		Action   action    `json:"action"`
		Attempts []attempt `json:"attempts"`
	}
	err = s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		dead, err := outbox.LetterOf(ctx, tx, c.by.Tenant, id)
		if err != nil {
			return err
		}
		view, err := c.view(ctx, tx, id)
		if err != nil {
			return err
		}
		rows, err := outbox.Attempts(ctx, tx, c.by.Tenant, id)
		answer.Letter, answer.Action, answer.Attempts = letterFrom(dead), actionFromView(view), attemptsFrom(rows)
		return err
	})
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, answer)
}

func (s *Server) replayDeadLetters(c *call) error {
	var body struct {
		ActionIDs     []envelope.ActionID `json:"action_ids"`
		AllowDoubling bool                `json:"allow_doubling"`
	}
	if err := c.decode(&body); err != nil {
		return err
	}
	var replayed []envelope.ActionID
	err := s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		var err error
		replayed, err = outbox.Replay(ctx, tx, c.by.Tenant, c.by.Name, body.AllowDoubling, body.ActionIDs...)
		return err
	})
	if err != nil {
		return err
	}
	if len(replayed) > 0 {
		s.cfg.Wake()
	}
	return c.actionIDs(replayed)
}

func (s *Server) discardDeadLetters(c *call) error {
	var body struct {
		ActionIDs []envelope.ActionID `json:"action_ids"`
		Reason    string
	}
	if err := c.decode(&body); err != nil {
		return err
	}
	var discarded []envelope.ActionID
	err := s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		var err error
		discarded, err = outbox.Discard(ctx, tx, c.by.Tenant, c.by.Name, body.Reason, body.ActionIDs...)
		return err
	})
	if err != nil {
		return err
	}
	return c.actionIDs(discarded)
}

func (c *call) actionIDs(ids []envelope.ActionID) error {
	if ids == nil {
		ids = []envelope.ActionID{}
	}
	return c.json(http.StatusOK, struct {
		ActionIDs []envelope.ActionID `json:"action_ids"`
	}{ids})
}
