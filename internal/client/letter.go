package client

import (
	"context"
	"net/http"
	"time"

	"github.com/countersign-dev/countersign/envelope"
)

const lettersPath = "/api/v1/dead-letters"

// Letter is a dead letter: an action that ended without its effect, or without
// anyone knowing.
type Letter struct {
	ActionID   envelope.ActionID `json:"action_id"`
	ExternalID string            `json:"external_id,omitzero"`
	Source     string            `json:"source"`
	Tool       string            `json:"tool"`
	// Reason is refused, exhausted or unknown.
	Reason   string    `json:"reason"`
	Attempts int       `json:"attempts"`
	Code     string    `json:"code,omitzero"`
	Message  string    `json:"message,omitzero"`
	At       time.Time `json:"at"`
}

// LetterStory is a dead letter with its action and attempts.
type LetterStory struct {
	Letter   Letter    `json:"letter"`
	Action   Action    `json:"action"`
	Attempts []Attempt `json:"attempts"`
}

// LetterFilter narrows a list of dead letters; its zero fields do not.
type LetterFilter struct {
	Reason, Tool string
	// Limit is how many a page holds; zero means 50.
	Limit int
	// Cursor is the NextCursor of the page before.
	Cursor string
}

// Letters lists dead letters, the newest actions first.
func (c *Client) Letters(ctx context.Context, f LetterFilter) (Page[Letter], error) {
	query := given("reason", f.Reason, "tool", f.Tool, "cursor", f.Cursor)
	limited(query, f.Limit)
	var page Page[Letter]
	_, err := c.do(ctx, request{method: http.MethodGet, path: lettersPath, query: query}, &page)
	return page, err
}

// Letter reads a dead letter with its action and attempts.
func (c *Client) Letter(ctx context.Context, id envelope.ActionID) (LetterStory, error) {
	var story LetterStory
	_, err := c.do(ctx, request{method: http.MethodGet, path: lettersPath + "/" + id.String()}, &story)
	return story, err
}

// Replay puts dead letters on the schedule again, up to envelope.MaxItems at
// once, and returns those that it was done to. One of unknown outcome may be
// doubled by it; without doubling, one such is fault.Conflict for all.
func (c *Client) Replay(ctx context.Context, doubling bool, ids ...envelope.ActionID) ([]envelope.ActionID, error) {
	return c.letters(ctx, "/replay", struct {
		IDs      []envelope.ActionID `json:"action_ids"`
		Doubling bool                `json:"allow_doubling"`
	}{ids, doubling})
}

// Discard gives dead letters up, up to envelope.MaxItems at once, and returns
// those that it was done to.
func (c *Client) Discard(ctx context.Context, reason string, ids ...envelope.ActionID) ([]envelope.ActionID, error) {
	return c.letters(ctx, "/discard", struct {
		IDs    []envelope.ActionID `json:"action_ids"`
		Reason string              `json:"reason"`
	}{ids, reason})
}

func (c *Client) letters(ctx context.Context, how string, in any) ([]envelope.ActionID, error) {
	var out struct {
		IDs []envelope.ActionID `json:"action_ids"`
	}
	_, err := c.do(ctx, request{method: http.MethodPost, path: lettersPath + how, in: in}, &out)
	return out.IDs, err
}
