package deadletters

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/deadletter"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/redact"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
)

// exportLimit is the most dead letters on a page of an export, since each has
// its arguments.
const exportLimit = 100

// exportedEntry is a dead letter with its proposal.
type exportedEntry struct {
	wire.DeadLetter

	Risk         envelope.Risk   `json:"risk"`
	Effect       envelope.Effect `json:"effect"`
	SessionID    string          `json:"session_id,omitzero"`
	AutomationID string          `json:"automation_id,omitzero"`
	ProposedAt   time.Time       `json:"proposed_at"`
	Args         json.RawMessage `json:"args"`
}

func exportedEntryFrom(l deadletter.Entry, v outbox.View) exportedEntry {
	return exportedEntry{
		DeadLetter: entryFrom(l), Risk: v.Envelope.Risk, Effect: v.Effect, SessionID: v.Envelope.SessionID, AutomationID: v.Envelope.AutomationID,
		ProposedAt: v.Envelope.Timestamps.CreatedAt, Args: redact.JSON(redact.Mail(v.Envelope.ExternalID, v.Envelope.Args)),
	}
}

// entryWithAction is a dead letter with its action.
type entryWithAction struct {
	entry deadletter.Entry
	view  outbox.View
}

// Export handles GET /api/v1/dead-letters/export. It lists dead letters with
// their proposals.
func Export(c *request.Call) error {
	f, err := queryFilter(c)
	if err != nil {
		return err
	}
	before, limit, err := c.Page(cursorDeadLetters)
	if err != nil {
		return err
	}
	limit = min(limit, exportLimit)
	f.Before, f.Limit = before, limit+1
	rows, err := request.Read(c, func(ctx context.Context, tx pgx.Tx) ([]entryWithAction, error) {
		return withActions(ctx, tx, c.By.Tenant, f)
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, request.PageOf(rows, limit, cursorDeadLetters,
		func(r entryWithAction) exportedEntry { return exportedEntryFrom(r.entry, r.view) },
		func(r entryWithAction) envelope.ActionID { return r.entry.Action }))
}

// withActions reads dead letters with their actions.
func withActions(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, f deadletter.Filter) ([]entryWithAction, error) {
	letters, err := deadletter.List(ctx, tx, tenant, f)
	if err != nil {
		return nil, err
	}
	ids := make([]envelope.ActionID, len(letters))
	for i, l := range letters {
		ids[i] = l.Action
	}
	views, err := outbox.Get(ctx, tx, tenant, ids...)
	if err != nil {
		return nil, err
	}
	found := make(map[envelope.ActionID]outbox.View, len(views))
	for _, v := range views {
		found[v.Envelope.ActionID] = v
	}
	rows := make([]entryWithAction, len(letters))
	for i, l := range letters {
		rows[i] = entryWithAction{l, found[l.Action]}
	}
	return rows, nil
}
