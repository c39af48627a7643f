package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
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
	// Verify is how far verifying reads have got; nil without any.
	Verify *Verifying `json:"verify,omitempty"`
}

// Verifying is how far verifying reads have got with a letter of unknown
// outcome.
type Verifying struct {
	Tries int `json:"tries"`
	// Said is what the last one came to, in one word.
	Said string `json:"said,omitzero"`
	// NextAt is when the next one is due; nil when none is.
	NextAt *time.Time `json:"next_at"`
}

// LetterStory is a dead letter with its action and attempts.
type LetterStory struct {
	Letter   Letter    `json:"letter"`
	Action   Action    `json:"action"`
	Attempts []Attempt `json:"attempts"`
}

// LetterFilter narrows a choice of dead letters; its zero fields do not.
type LetterFilter struct {
	Reason string `json:"reason,omitzero"`
	Source string `json:"source,omitzero"`
	Tool   string `json:"tool,omitzero"`
	Code   string `json:"code,omitzero"`
	// Since and Until bound when the letters were made: from Since on, before
	// Until.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Limit is how many a page holds; zero means 50. Cursor is the NextCursor
	// of the page before. They concern lists alone.
	Limit  int    `json:"-"`
	Cursor string `json:"-"`
}

func (f LetterFilter) query() url.Values {
	query := given("reason", f.Reason, "source", f.Source, "tool", f.Tool, "code", f.Code, "cursor", f.Cursor)
	limited(query, f.Limit)
	for name, at := range map[string]time.Time{"since": f.Since, "until": f.Until} {
		if !at.IsZero() {
			query.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	return query
}

// Letters lists dead letters, the newest actions first.
func (c *Client) Letters(ctx context.Context, f LetterFilter) (Page[Letter], error) {
	var page Page[Letter]
	_, err := c.do(ctx, request{method: http.MethodGet, path: lettersPath, query: f.query()}, &page)
	return page, err
}

// ExportLetters lists dead letters with what was proposed, up to 100 a page.
// Each is an object as the API writes it, on one line.
func (c *Client) ExportLetters(ctx context.Context, f LetterFilter) (Page[json.RawMessage], error) {
	var page Page[json.RawMessage]
	_, err := c.do(ctx, request{method: http.MethodGet, path: lettersPath + "/export", query: f.query()}, &page)
	return page, err
}

// Letter reads a dead letter with its action and attempts.
func (c *Client) Letter(ctx context.Context, id envelope.ActionID) (LetterStory, error) {
	var story LetterStory
	_, err := c.do(ctx, request{method: http.MethodGet, path: lettersPath + "/" + id.String()}, &story)
	return story, err
}

// Lot is a change of dead letters that is asked for, done to those whose
// actions are the oldest.
type Lot struct {
	// IDs name the letters, up to envelope.MaxItems; without any, Filter does,
	// and with both, both must hold. One of them is required.
	IDs    []envelope.ActionID `json:"action_ids,omitempty"`
	Filter *LetterFilter       `json:"filter,omitempty"`
	// Limit bounds how many it is done to; zero means envelope.MaxItems.
	Limit int `json:"limit,omitzero"`
	// DryRun changes nothing.
	DryRun bool `json:"dry_run,omitzero"`
}

// Tally counts the dead letters of one tool and reason.
type Tally struct {
	Source  string `json:"source"`
	Tool    string `json:"tool"`
	Reason  string `json:"reason"`
	Letters int    `json:"letters"`
}

// LotDone is what came of a lot.
type LotDone struct {
	// ActionIDs are those that it was done to or, of a dry run, would be.
	ActionIDs []envelope.ActionID `json:"action_ids"`
	// Left counts what is meant and still there, LeftOut what is left out
	// besides, because its outcome is unknown.
	Left    int `json:"left"`
	LeftOut int `json:"left_out"`
	// Counts tells Left and LeftOut by tool and reason.
	Counts []Tally `json:"counts"`
	// AsOf is the server's time.
	AsOf time.Time `json:"as_of"`
	// AheadMS is how far the schedule of a paced replay reaches beyond AsOf,
	// in milliseconds.
	AheadMS int64 `json:"ahead_ms"`
}

// Replaying says how dead letters are replayed.
type Replaying struct {
	// Doubling also replays those of unknown outcome, whose effect may be
	// doubled by it. Without it a filter passes them over, and one that is
	// named by id is fault.Conflict for the whole lot.
	Doubling bool `json:"allow_doubling,omitzero"`
	// PerSecond is how many become due in a second; zero is all at once.
	PerSecond float64 `json:"per_second,omitzero"`
	// Note says why, for the record.
	Note string `json:"note,omitzero"`
}

// Replay puts a lot of dead letters on the schedule again.
func (c *Client) Replay(ctx context.Context, lot Lot, how Replaying) (LotDone, error) {
	return c.letters(ctx, "/replay", struct {
		Lot
		Replaying
	}{lot, how})
}

// Discard gives a lot of dead letters up.
func (c *Client) Discard(ctx context.Context, lot Lot, reason string) (LotDone, error) {
	return c.letters(ctx, "/discard", struct {
		Lot
		Reason string `json:"reason"`
	}{lot, reason})
}

func (c *Client) letters(ctx context.Context, how string, in any) (LotDone, error) {
	var out LotDone
	_, err := c.do(ctx, request{method: http.MethodPost, path: lettersPath + how, in: in}, &out)
	return out, err
}

// Resolution is what somebody found out about an action of unknown outcome.
type Resolution struct {
	Happened bool `json:"happened"`
	// GiveUp ends what did not happen instead of running it again.
	GiveUp bool `json:"give_up,omitzero"`
	// Note says how they know, for the record. It is required.
	Note string `json:"note"`
}

// Resolve says what became of an action of unknown outcome. fault.Conflict
// says that it is not, or no longer, unknown.
func (c *Client) Resolve(ctx context.Context, id envelope.ActionID, r Resolution) (Action, error) {
	var a Action
	_, err := c.do(ctx, request{method: http.MethodPost, path: lettersPath + "/" + id.String() + "/resolve", in: r}, &a)
	return a, err
}
