package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/countersign-dev/countersign/envelope"
)

const actionsPath = "/api/v1/actions"

// Action is an action, and what was decided about it.
type Action struct {
	Envelope envelope.Envelope `json:"envelope"`
	Phase    envelope.Phase    `json:"phase"`
	Effect   envelope.Effect   `json:"effect"`
	Policy   Verdict           `json:"policy"`
	// Decision is nil where no person is asked.
	Decision *Decision `json:"decision"`
	// NextAttemptAt is when it is due, while it is on the schedule.
	NextAttemptAt *time.Time `json:"next_attempt_at"`
	// Waiting is nil where it waits for nothing.
	Waiting *Waiting `json:"waiting"`
}

// Waiting is what an action waits for.
type Waiting struct {
	// For is one word, Message a line for people.
	For     string `json:"for"`
	Message string `json:"message"`
	// Until is when it ends at the soonest; nil if nobody can say.
	Until *time.Time `json:"until"`
}

// Verdict is what policy said when an action was proposed.
type Verdict struct {
	Mode envelope.Mode `json:"mode"`
	// Source is the layer that set the mode, and those that made it stricter.
	Source string `json:"source"`
	Trace  []Step `json:"trace"`
}

// Step is what one layer of policy said.
type Step struct {
	Layer string `json:"layer"`
	Said  string `json:"said,omitzero"`
	Key   string `json:"key,omitzero"`
	// Rule is the id of the rule about arguments, or of the grant.
	Rule    string `json:"rule,omitzero"`
	Detail  string `json:"detail,omitzero"`
	Version string `json:"version,omitzero"`
}

// Decision is that of a person, or the wait for one.
type Decision struct {
	ExpiresAt *time.Time `json:"expires_at"`
	At        *time.Time `json:"at"`
	By        string     `json:"by"`
	Note      string     `json:"note"`
	// Needed and Given count the people who must agree, and do.
	Needed int `json:"approvals_needed"`
	Given  int `json:"approvals_given"`
	// ETag is what to decide with; empty where there is nothing to decide.
	ETag string `json:"etag,omitzero"`
	// Edited is nil where the envelope has what was proposed.
	Edited *Edited `json:"edited,omitempty"`
}

// Attempt is a row of the ledger.
type Attempt struct {
	Attempt    int             `json:"attempt"`
	Status     envelope.Status `json:"status"`
	Code       string          `json:"code,omitzero"`
	Message    string          `json:"message,omitzero"`
	Result     json.RawMessage `json:"result,omitempty"`
	ProviderID string          `json:"provider_id,omitzero"`
	Worker     string          `json:"worker,omitzero"`
	StartedAt  *time.Time      `json:"started_at"`
	FinishedAt time.Time       `json:"finished_at"`
}

// Page is a part of a list. NextCursor gets the next one; it is nil at the
// end.
type Page[T any] struct {
	Items      []T     `json:"items"`
	NextCursor *string `json:"next_cursor"`
}

// Submitted is an accepted proposal.
type Submitted struct {
	Action Action
	// Known says that it had been accepted before.
	Known bool
	// Pending says that it had not ended when the time to wait was over.
	Pending bool
}

// Submit proposes one action, and waits that long for its end; zero does not
// wait. The proposal goes out as it is, so that the server's strict parser
// sees what the caller wrote. One that policy denies is a *Problem of the kind
// fault.Denied that carries the action.
func (c *Client) Submit(ctx context.Context, proposal json.RawMessage, wait time.Duration) (Submitted, error) {
	var s Submitted
	rq := request{method: http.MethodPost, path: actionsPath, in: proposal}
	rq.waiting("wait", wait)
	answer, err := c.do(ctx, rq, &s.Action)
	if err != nil {
		return Submitted{}, err
	}
	s.Known, s.Pending = answer.StatusCode == http.StatusOK, pending(answer)
	return s, nil
}

// BatchItem is what became of one proposal of a batch.
type BatchItem struct {
	Index int `json:"index"`
	// Result is accepted, known, denied or refused.
	Result   string             `json:"result"`
	ActionID *envelope.ActionID `json:"action_id,omitempty"`
	Phase    envelope.Phase     `json:"phase,omitzero"`
	Problem  *Problem           `json:"problem,omitempty"`
}

// SubmitMany proposes up to envelope.MaxItems actions and answers for each, in
// order. One that is refused leaves the others alone.
func (c *Client) SubmitMany(ctx context.Context, proposals []json.RawMessage) ([]BatchItem, error) {
	var out Page[BatchItem]
	in := struct {
		Items []json.RawMessage `json:"items"`
	}{proposals}
	_, err := c.do(ctx, request{method: http.MethodPost, path: actionsPath + "/batch", in: in}, &out)
	return out.Items, err
}

// Filter narrows a list of actions; its zero fields do not.
type Filter struct {
	Status                            envelope.Status
	Approval                          envelope.Approval
	Tool, Source, Session, ExternalID string
	// Limit is how many a page holds; zero means 50.
	Limit int
	// Cursor is the NextCursor of the page before.
	Cursor string
}

// Actions lists actions, newest first.
func (c *Client) Actions(ctx context.Context, f Filter) (Page[Action], error) {
	query := given(
		"status", string(f.Status), "approval", string(f.Approval), "tool", f.Tool, "source", f.Source,
		"session_id", f.Session, "external_id", f.ExternalID, "cursor", f.Cursor)
	limited(query, f.Limit)
	var page Page[Action]
	_, err := c.do(ctx, request{method: http.MethodGet, path: actionsPath, query: query}, &page)
	return page, err
}

// Action reads an action.
func (c *Client) Action(ctx context.Context, id envelope.ActionID) (Action, error) {
	var a Action
	_, err := c.do(ctx, request{method: http.MethodGet, path: actionPath(id)}, &a)
	return a, err
}

// Wait reads an action when it has ended, or as it stands when the time is
// over; ended says which.
func (c *Client) Wait(ctx context.Context, id envelope.ActionID, atMost time.Duration) (a Action, ended bool, err error) {
	rq := request{method: http.MethodGet, path: actionPath(id) + "/wait"}
	rq.waiting("wait", atMost)
	answer, err := c.do(ctx, rq, &a)
	if err != nil {
		return Action{}, false, err
	}
	return a, !pending(answer), nil
}

// Attempts reads what the ledger says of an action, oldest first.
func (c *Client) Attempts(ctx context.Context, id envelope.ActionID) ([]Attempt, error) {
	var out Page[Attempt]
	_, err := c.do(ctx, request{method: http.MethodGet, path: actionPath(id) + "/attempts"}, &out)
	return out.Items, err
}

// Undo takes an action back that has not been sent.
func (c *Client) Undo(ctx context.Context, id envelope.ActionID) (Action, error) {
	var a Action
	_, err := c.do(ctx, request{method: http.MethodPost, path: actionPath(id) + "/undo"}, &a)
	return a, err
}

func actionPath(id envelope.ActionID) string { return actionsPath + "/" + id.String() }

func pending(answer *http.Response) bool { return answer.Header.Get("Countersign-Pending") == "true" }

// waiting asks the server to take its time.
func (rq *request) waiting(parameter string, d time.Duration) {
	if d > 0 {
		rq.query, rq.wait = url.Values{parameter: {duration(d)}}, d
	}
}

// given makes a query of names and values, leaving out the empty ones.
func given(pairs ...string) url.Values {
	query := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			query.Set(pairs[i], pairs[i+1])
		}
	}
	return query
}

func limited(query url.Values, limit int) {
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
}
