package rest

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/deadletter"
	"github.com/countersign-dev/countersign/internal/action/outbox"
)

// letterLot is a change of dead letters that is asked for.
type letterLot struct {
	ActionIDs []envelope.ActionID `json:"action_ids"`
	Filter    letterFilter        `json:"filter"`
	Limit     int                 `json:"limit"`
	DryRun    bool                `json:"dry_run"`
}

func (l letterLot) lot(c *call, note string) (deadletter.BulkRequest, error) {
	f, err := l.Filter.filter("/filter")
	return deadletter.BulkRequest{
		IDs: l.ActionIDs, Filter: f, Limit: cmp.Or(l.Limit, envelope.MaxItems), DryRun: l.DryRun, Actor: c.by.Name, Note: note,
	}, err
}

// lotDone is what came of a change of dead letters.
type lotDone struct {
	DryRun  bool                `json:"dry_run"`
	Actions []envelope.ActionID `json:"action_ids"`
	Left    int                 `json:"left"`
	LeftOut int                 `json:"left_out"`
	Counts  []tally             `json:"counts"`
	AsOf    time.Time           `json:"as_of"`
	Ahead   int64               `json:"ahead_ms"`
}

// tally counts the dead letters of one tool and reason.
type tally struct {
	Source  string        `json:"source"`
	Tool    string        `json:"tool"`
	Reason  outbox.Reason `json:"reason"`
	Letters int           `json:"letters"`
}

func (c *call) lotDone(lot deadletter.BulkRequest, done deadletter.BulkResult) error {
	shown := lotDone{
		DryRun: lot.DryRun, Actions: done.Actions, Left: done.Remaining, LeftOut: done.Excluded,
		Counts: make([]tally, len(done.Counts)), AsOf: done.AsOf.UTC(), Ahead: done.ScheduledFor.Milliseconds(),
	}
	if shown.Actions == nil {
		shown.Actions = []envelope.ActionID{}
	}
	for i, t := range done.Counts {
		shown.Counts[i] = tally{Source: t.Source, Tool: t.Tool, Reason: t.Reason, Letters: t.Entries}
	}
	return c.json(http.StatusOK, shown)
}

func (s *Server) replayDeadLetters(c *call) error {
	var body struct {
		letterLot
		AllowDoubling bool    `json:"allow_doubling"`
		PerSecond     float64 `json:"per_second"`
		Note          string  `json:"note"`
	}
	if err := c.decode(&body); err != nil {
		return err
	}
	lot, err := body.lot(c, body.Note)
	if err != nil {
		return err
	}
	var done deadletter.BulkResult
	err = s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		done, err = deadletter.Replay(ctx, tx, c.by.Tenant, lot, deadletter.ReplayOptions{AllowDuplicates: body.AllowDoubling, PerSecond: body.PerSecond})
		return err
	})
	if err != nil {
		return err
	}
	if len(done.Actions) > 0 && !lot.DryRun {
		s.cfg.Wake()
	}
	return c.lotDone(lot, done)
}

func (s *Server) discardDeadLetters(c *call) error {
	var body struct {
		letterLot
		Reason string `json:"reason"`
	}
	if err := c.decode(&body); err != nil {
		return err
	}
	lot, err := body.lot(c, body.Reason)
	if err != nil {
		return err
	}
	var done deadletter.BulkResult
	err = s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		done, err = deadletter.Discard(ctx, tx, c.by.Tenant, lot)
		return err
	})
	if err != nil {
		return err
	}
	return c.lotDone(lot, done)
}

func (s *Server) resolveDeadLetter(c *call) error {
	id, err := c.action()
	if err != nil {
		return err
	}
	var body struct {
		Happened bool   `json:"happened"`
		GiveUp   bool   `json:"give_up"`
		Note     string `json:"note"`
	}
	if err := c.decode(&body); err != nil {
		return err
	}
	if body.Happened && body.GiveUp {
		return invalid("/give_up", "excluded", "makes no sense of what happened; leave it out")
	}
	err = s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		said := deadletter.Resolution{Happened: body.Happened, GiveUp: body.GiveUp, Actor: c.by.Name, Note: body.Note}
		return deadletter.Resolve(ctx, tx, c.by.Tenant, id, said)
	})
	if err != nil {
		return err
	}
	s.cfg.Wake()
	return s.show(c, id)
}
