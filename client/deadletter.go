package client

import (
	"context"
	"encoding/json"
	"net/url"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
)

const deadLettersPath = "/api/v1/dead-letters"

// DeadLetters lists dead letters, the newest actions first.
func (c *Client) DeadLetters(ctx context.Context, f wire.DeadLetterFilter) (wire.Page[wire.DeadLetter], error) {
	return read[wire.Page[wire.DeadLetter]](ctx, c, deadLettersPath, deadLetterQuery(f))
}

// ExportDeadLetters lists dead letters with their proposals, up to 100 a
// page. Each is an object as the API writes it, on one line.
func (c *Client) ExportDeadLetters(ctx context.Context, f wire.DeadLetterFilter) (wire.Page[json.RawMessage], error) {
	return read[wire.Page[json.RawMessage]](ctx, c, deadLettersPath+"/export", deadLetterQuery(f))
}

// DeadLetterSummary counts the dead letters that a filter selects, by tool, reason
// and code, the most first.
func (c *Client) DeadLetterSummary(ctx context.Context, f wire.DeadLetterFilter) ([]wire.DeadLetterGroup, error) {
	page, err := read[wire.Page[wire.DeadLetterGroup]](ctx, c, deadLettersPath+"/summary", deadLetterQuery(f))
	return page.Items, err
}

func deadLetterQuery(f wire.DeadLetterFilter) url.Values {
	return given("reason", f.Reason, "source", f.Source, "tool", f.Tool, "code", f.Code,
		"since", moment(f.Since), "until", moment(f.Until), "limit", number(f.Limit), "cursor", f.Cursor)
}

// DeadLetter reads a dead letter with its action and attempts.
func (c *Client) DeadLetter(ctx context.Context, id envelope.ActionID) (wire.DeadLetterDetail, error) {
	return read[wire.DeadLetterDetail](ctx, c, deadLettersPath+"/"+id.String(), nil)
}

// Replay puts dead letters on the schedule again.
func (c *Client) Replay(ctx context.Context, in wire.ReplayRequest) (wire.BulkResult, error) {
	return post[wire.BulkResult](ctx, c, deadLettersPath+"/replay", in)
}

// Discard discards dead letters.
func (c *Client) Discard(ctx context.Context, in wire.DiscardRequest) (wire.BulkResult, error) {
	return post[wire.BulkResult](ctx, c, deadLettersPath+"/discard", in)
}

// Resolve sets the outcome of an action of unknown outcome. ErrConflict means
// that its outcome is known.
func (c *Client) Resolve(ctx context.Context, id envelope.ActionID, r wire.Resolution) (wire.Action, error) {
	return post[wire.Action](ctx, c, deadLettersPath+"/"+id.String()+"/resolve", r)
}
