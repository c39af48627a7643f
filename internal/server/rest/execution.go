package rest

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/snapshot"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/insight/execution"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// executionDetail is an execution with all that is known of it.
type executionDetail struct {
	execution.Execution
	Ledger    []attempt           `json:"ledger"`
	Snapshots []snapshot.Snapshot `json:"snapshots"`
	Related   []execution.Related `json:"related"`
}

func (s *Server) listExecutions(c *call) error {
	f, err := c.executionFilter()
	if err != nil {
		return err
	}
	shown := page[execution.Execution]{Items: []execution.Execution{}}
	if c.by.Role == identity.RoleAgent {
		if c.by.Session == "" || f.Session != "" && f.Session != c.by.Session {
			return c.json(http.StatusOK, shown)
		}
		f.Session = c.by.Session
	}
	var found execution.Page
	err = s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		found, err = execution.List(ctx, tx, c.by.Tenant, f)
		return err
	})
	if err != nil {
		return err
	}
	for _, e := range found.Items {
		shown.Items = append(shown.Items, e.For(uuid.UUID(c.by.Token)))
	}
	if found.Next != nil {
		shown.NextCursor = new(writeCursor(cursorExecutions, *found.Next))
	}
	return c.json(http.StatusOK, shown)
}

// executionFilter reads the filter from the query.
func (c *call) executionFilter() (execution.Filter, error) {
	before, limit, err := c.place(cursorExecutions)
	if err != nil {
		return execution.Filter{}, err
	}
	q := c.query
	f := execution.Filter{
		Tool: q.Get("tool"), Source: q.Get("source"), Status: execution.Status(q.Get("status")), Session: q.Get("session"),
		Automation: q.Get("automation"), Code: q.Get("code"), Via: q.Get("via"), IP: q.Get("ip"), Before: before, Most: limit,
	}
	for name, id := range map[string]*uuid.UUID{"employee": (*uuid.UUID)(&f.Employee), "user": &f.User, "batch": &f.Batch} {
		if text := q.Get(name); text != "" {
			if *id, err = uuid.Parse(text); err != nil {
				return f, invalid("/query/"+name, envelope.RuleFormat, "must be a UUID")
			}
		}
	}
	for name, at := range map[string]*time.Time{"since": &f.Since, "until": &f.Until} {
		if text := q.Get(name); text != "" {
			if *at, err = time.Parse(time.RFC3339, text); err != nil {
				return f, invalid("/query/"+name, envelope.RuleFormat, "must be a time such as 2026-01-02T03:04:05Z")
			}
		}
	}
	if !f.Until.IsZero() && !f.Since.Before(f.Until) {
		return f, invalid("/query/until", "order", "must be later than since")
	}
	return f, nil
}

func (s *Server) getExecution(c *call) error {
	id, err := c.action()
	if err != nil {
		return err
	}
	var d executionDetail
	err = s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		if d.Execution, err = execution.Get(ctx, tx, c.by.Tenant, id); err != nil {
			return err
		}
		if c.by.Role == identity.RoleAgent && (c.by.Session == "" || d.Session != c.by.Session) {
			return fault.New(fault.NotFound, "no execution %s", id)
		}
		rows, err := outbox.Attempts(ctx, tx, c.by.Tenant, id)
		if err != nil {
			return err
		}
		d.Ledger = attemptsFrom(rows)
		if d.Snapshots, err = snapshot.List(ctx, tx, c.by.Tenant, id); err != nil {
			return err
		}
		d.Related, err = execution.RelatedTo(ctx, tx, &d.Execution)
		return err
	})
	if err != nil {
		return err
	}
	d.Execution = d.For(uuid.UUID(c.by.Token))
	if d.Related == nil {
		d.Related = []execution.Related{}
	}
	return c.json(http.StatusOK, d)
}
