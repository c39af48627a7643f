// Package deadletters handles requests about dead letters: actions that ended
// without success and wait for a person.
package deadletters

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/deadletter"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/rest/actions"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
)

// cursorDeadLetters is the name of the list of dead letters in cursors.
const cursorDeadLetters = "dead-letters"

func entryFrom(l deadletter.Entry) wire.DeadLetter {
	shown := wire.DeadLetter{
		ActionID: l.Action, ExternalID: l.ExternalID, Tool: l.Source + ":" + l.Tool, Reason: string(l.Reason),
		Attempts: l.Attempt, Code: l.Code, Message: l.Message, At: l.CreatedAt.UTC(),
	}
	if l.Reconciliation != (deadletter.Reconciliation{}) {
		shown.Reconciliation = &wire.Reconciliation{Attempts: l.Reconciliation.Attempts, LastResult: l.Reconciliation.LastResult, NextAt: postgres.UTC(l.Reconciliation.Next)}
	}
	return shown
}

// filterOf checks the rules that the contract cannot express; at is the
// pointer of the fields.
func filterOf(f wire.DeadLetterFilter, at string) (deadletter.Filter, error) {
	filter := deadletter.Filter{Reason: outbox.Reason(f.Reason), Code: f.Code, Since: f.Since, Until: f.Until}
	var err error
	if filter.Source, filter.Tool, err = request.SelectTools(f.Source, f.Tool, at+"/tool"); err != nil {
		return filter, err
	}
	return filter, request.Below(at, filter.Validate())
}

// queryFilter reads the same filter from the query.
func queryFilter(c *request.Call) (deadletter.Filter, error) {
	q := c.Query
	asked := wire.DeadLetterFilter{Reason: q.Get("reason"), Source: q.Get("source"), Tool: q.Get("tool"), Code: q.Get("code")}
	var err error
	if asked.Since, asked.Until, err = c.QueryRange(); err != nil {
		return deadletter.Filter{}, err
	}
	return filterOf(asked, "/query")
}

// List handles GET /api/v1/dead-letters. It lists dead letters, newest first.
func List(c *request.Call) error {
	f, err := queryFilter(c)
	if err != nil {
		return err
	}
	read := func(ctx context.Context, tx pgx.Tx, before envelope.ActionID, most int) ([]deadletter.Entry, error) {
		f.Before, f.Limit = before, most
		return deadletter.List(ctx, tx, c.By.Tenant, f)
	}
	return request.AnswerPage(c, cursorDeadLetters, read, entryFrom, func(l deadletter.Entry) envelope.ActionID { return l.Action })
}

// Summary handles GET /api/v1/dead-letters/summary. It counts dead letters by
// tool, reason and code.
func Summary(c *request.Call) error {
	f, err := queryFilter(c)
	if err != nil {
		return err
	}
	return request.AnswerItems(c, func(ctx context.Context, tx pgx.Tx) ([]wire.DeadLetterGroup, error) {
		return deadletter.Summary(ctx, tx, c.By.Tenant, f)
	})
}

// Get handles GET /api/v1/dead-letters/{id}. It shows a dead letter with its
// action and attempts.
func Get(c *request.Call, id envelope.ActionID) error {
	return request.Answer(c, func(ctx context.Context, tx pgx.Tx) (answer wire.DeadLetterDetail, err error) {
		dead, err := deadletter.Get(ctx, tx, c.By.Tenant, id)
		if err != nil {
			return answer, err
		}
		view, err := access.View(ctx, tx, c.By, id)
		if err != nil {
			return answer, err
		}
		answer.DeadLetter, answer.Action = entryFrom(dead), actions.ViewFor(c.By, view)
		answer.Attempts, err = outbox.Attempts(ctx, tx, c.By.Tenant, id)
		return answer, err
	})
}
