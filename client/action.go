package client

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
)

const (
	actionsPath = "/api/v1/actions"
	toolsPath   = "/api/v1/tools"
	// maxServerWait is the longest that the server waits within one request.
	maxServerWait = 5 * time.Minute
)

// Submitted is an accepted proposal.
type Submitted struct {
	Action wire.Action
	// Known reports whether the proposal had been accepted before.
	Known bool
	// Pending reports whether the action had not ended when the time to wait
	// was over.
	Pending bool
}

// Propose proposes an action, and waits that long for its end; zero does not
// wait. Its ExternalID makes it safe to repeat: the same name with the same
// content is the same action. A proposal that policy denies is a *Problem of
// the kind ErrDenied that has the recorded action.
func (c *Client) Propose(ctx context.Context, p envelope.Proposal, wait time.Duration) (Submitted, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return Submitted{}, err
	}
	return c.Submit(ctx, text, wait)
}

// Submit is Propose for a proposal in JSON, which is sent unchanged.
func (c *Client) Submit(ctx context.Context, proposal json.RawMessage, wait time.Duration) (Submitted, error) {
	var s Submitted
	rq := request{method: http.MethodPost, path: actionsPath, in: proposal, repeatable: true}
	answer, err := c.do(ctx, rq.waiting("wait", wait), &s.Action)
	if err != nil {
		return Submitted{}, err
	}
	s.Known, s.Pending = answer.StatusCode == http.StatusOK, pending(answer)
	return s, nil
}

// SubmitBatch proposes up to envelope.MaxItems actions and returns a result
// for each, in order. A refused one does not affect the others.
func (c *Client) SubmitBatch(ctx context.Context, proposals []json.RawMessage) ([]wire.BatchItem, error) {
	var out wire.Page[wire.BatchItem]
	in := struct {
		Items []json.RawMessage `json:"items"`
	}{proposals}
	_, err := c.do(ctx, request{method: http.MethodPost, path: actionsPath + "/batch", in: in, repeatable: true}, &out)
	return out.Items, err
}

// Invoke calls a tool, by source:tool, its full name or a name that only one
// source has. A call that was denied, expired, undone or failed is returned
// with the *Problem of it.
func (c *Client) Invoke(ctx context.Context, tool string, call wire.Call) (wire.Invocation, error) {
	rq := request{method: http.MethodPost, path: toolPath(tool), in: call, wait: 30 * time.Second, repeatable: call.ExternalID != "" || call.DryRun}
	if call.Wait != nil {
		rq.wait = time.Duration(*call.Wait)
	}
	var inv wire.Invocation
	_, err := c.do(ctx, rq, &inv)
	if p, ok := asProblem(err); ok && p.Execution != nil {
		inv = *p.Execution
	}
	return inv, err
}

// ActionFilter narrows a list of actions; its zero fields do not.
type ActionFilter struct {
	Status                            envelope.Status
	Approval                          envelope.Approval
	Tool, Source, Session, ExternalID string
	Automation, Employee, Workflow    string
	// Query is words that the actions have.
	Query string
	// Phases and Risks are any of these.
	Phases []envelope.Phase
	Risks  []envelope.Risk
	// Since and Until bound when it was proposed: from Since on, before Until.
	Since, Until time.Time
	// Oldest lists the oldest first.
	Oldest bool
	// Summary cuts the arguments of each item and leaves out the trace of policy.
	Summary bool
	// Limit is the size of a page; zero means 50.
	Limit int
	// Cursor is the NextCursor of the page before.
	Cursor string
}

// Actions lists actions, newest first unless the filter has another order. A page may
// be short or empty, and still have a NextCursor.
func (c *Client) Actions(ctx context.Context, f ActionFilter) (wire.Page[wire.Action], error) {
	order := ""
	if f.Oldest {
		order = "oldest"
	}
	return read[wire.Page[wire.Action]](ctx, c, actionsPath, given(
		"status", string(f.Status), "approval", string(f.Approval), "tool", f.Tool, "source", f.Source,
		"session_id", f.Session, "external_id", f.ExternalID, "q", f.Query, "phase", joined(f.Phases), "risk", joined(f.Risks),
		"automation_id", f.Automation, "employee_id", f.Employee, "workflow_id", f.Workflow,
		"since", moment(f.Since), "until", moment(f.Until), "order", order, "view", view(f.Summary), "cursor", f.Cursor, "limit", number(f.Limit)))
}

// joined writes words as a query takes several.
func joined[T ~string](words []T) string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = string(w)
	}
	return strings.Join(all, ",")
}

// AllActions iterates over the actions of every page.
func (c *Client) AllActions(ctx context.Context, f ActionFilter) iter.Seq2[wire.Action, error] {
	return Items(func(cursor string) (wire.Page[wire.Action], error) {
		if cursor != "" {
			f.Cursor = cursor
		}
		return c.Actions(ctx, f)
	})
}

// Action reads an action.
func (c *Client) Action(ctx context.Context, id envelope.ActionID) (wire.Action, error) {
	return read[wire.Action](ctx, c, actionPath(id), nil)
}

// Wait returns an action when it has ended or the time is over; ended reports
// whether it has.
func (c *Client) Wait(ctx context.Context, id envelope.ActionID, atMost time.Duration) (a wire.Action, ended bool, err error) {
	for until := time.Now().Add(atMost); ; {
		left := min(max(time.Until(until), time.Millisecond), maxServerWait)
		rq := request{method: http.MethodGet, path: actionPath(id) + "/wait"}
		answer, err := c.do(ctx, rq.waiting("wait", left), &a)
		if err != nil {
			return wire.Action{}, false, err
		}
		if ended = !pending(answer); ended || time.Until(until) <= 0 {
			return a, ended, nil
		}
	}
}

// Attempts lists the attempts of an action, oldest first.
func (c *Client) Attempts(ctx context.Context, id envelope.ActionID) ([]wire.Attempt, error) {
	return list[wire.Attempt](ctx, c, actionPath(id)+"/attempts", nil)
}

// History lists the history of an action, oldest first.
func (c *Client) History(ctx context.Context, id envelope.ActionID) ([]wire.HistoryItem, error) {
	return list[wire.HistoryItem](ctx, c, actionPath(id)+"/history", nil)
}

// Forecast returns when an action would be sent if it were approved now, and the
// obstacles.
func (c *Client) Forecast(ctx context.Context, id envelope.ActionID) (wire.Forecast, error) {
	return read[wire.Forecast](ctx, c, actionPath(id)+"/forecast", nil)
}

// Search finds things by how their ids and names begin, at most ten of a kind.
func (c *Client) Search(ctx context.Context, text string) ([]wire.SearchResult, error) {
	page, err := read[wire.Page[wire.SearchResult]](ctx, c, "/api/v1/search", given("q", text))
	return page.Items, err
}

// Undo takes back an action that has not been sent.
func (c *Client) Undo(ctx context.Context, id envelope.ActionID) (wire.Action, error) {
	return post[wire.Action](ctx, c, actionPath(id)+"/undo", nil)
}

// Revert proposes the reversal of a completed action, and returns it. An action
// has one: reverting again returns the same.
func (c *Client) Revert(ctx context.Context, id envelope.ActionID) (wire.Action, error) {
	var a wire.Action
	_, err := c.do(ctx, request{method: http.MethodPost, path: actionPath(id) + "/revert", repeatable: true}, &a)
	return a, err
}

// RevertMany reverts several actions, and returns a result for each.
func (c *Client) RevertMany(ctx context.Context, in wire.RevertRequest) (wire.RevertResult, error) {
	var out wire.RevertResult
	_, err := c.do(ctx, request{method: http.MethodPost, path: actionsPath + "/revert", in: in, repeatable: true}, &out)
	return out, err
}

// Approve approves an action that waits for a decision, or counts as a vote
// where several people must agree, and waits that long for its end.
func (c *Client) Approve(ctx context.Context, id envelope.ActionID, in wire.Approval, wait time.Duration) (wire.Action, error) {
	var a wire.Action
	rq := request{method: http.MethodPost, path: actionPath(id) + "/approve", header: ifMatch(in.ETag), in: in}
	_, err := c.do(ctx, rq.waiting("wait", wait), &a)
	return a, err
}

// PreviewAlways returns the grant that approving an action with always would make,
// and the past calls that it would have allowed.
func (c *Client) PreviewAlways(ctx context.Context, id envelope.ActionID, etag string, in wire.Always) (wire.GrantPreview, error) {
	var g wire.GrantPreview
	_, err := c.do(ctx, request{method: http.MethodPost, path: actionPath(id) + "/always", header: ifMatch(etag), in: in}, &g)
	return g, err
}

// Deny denies an action that waits for a decision. The agent receives the
// note.
func (c *Client) Deny(ctx context.Context, id envelope.ActionID, in wire.Denial) (wire.Action, error) {
	var a wire.Action
	_, err := c.do(ctx, request{method: http.MethodPost, path: actionPath(id) + "/deny", header: ifMatch(in.ETag), in: in}, &a)
	return a, err
}

// EditAction changes the arguments of an action that waits for a decision. It
// uses Note, ETag and Args of the approval.
func (c *Client) EditAction(ctx context.Context, id envelope.ActionID, in wire.Approval) (wire.Action, error) {
	in.Always = nil
	var a wire.Action
	_, err := c.do(ctx, request{method: http.MethodPost, path: actionPath(id) + "/edit", header: ifMatch(in.ETag), in: in}, &a)
	return a, err
}

// ApproveMany approves up to 500 actions and returns a result for each, in
// order.
func (c *Client) ApproveMany(ctx context.Context, in wire.BulkDecision) ([]wire.Decided, error) {
	page, err := post[wire.Page[wire.Decided]](ctx, c, actionsPath+"/approve", in)
	return page.Items, err
}

// DenyMany denies up to 500 actions and returns a result for each, in order.
func (c *Client) DenyMany(ctx context.Context, in wire.BulkDecision) ([]wire.Decided, error) {
	page, err := post[wire.Page[wire.Decided]](ctx, c, actionsPath+"/deny", in)
	return page.Items, err
}

// Votes lists the votes on an action, oldest first.
func (c *Client) Votes(ctx context.Context, id envelope.ActionID) ([]wire.Vote, error) {
	return list[wire.Vote](ctx, c, actionPath(id)+"/votes", nil)
}

// InboxFilter narrows the inbox; its zero fields do not.
type InboxFilter struct {
	// Kinds are of wire.InboxApproval and the others. InboxNotify alone is left out
	// unless it is named.
	Kinds []string
	// Cohort selects actions of triage about messages of a cohort, and takes the scope
	// mail:read.
	Cohort string
	// Tool is a tool or a pattern, as source:name, where either may be *.
	Tool, Source        string
	Session, Automation string
	// Person is the id of the person, or of the token of nobody, who proposed.
	Person string
	// Query is words that the items have.
	Query string
	Risks []envelope.Risk
	// Escalated, if set, selects items that were, or were not, escalated.
	Escalated     *bool
	ExpiresBefore time.Time
	// Order is oldest, newest, expiry, risk, session or tool; empty is oldest. Summary cuts the
	// arguments of each item. Counts take neither.
	Order   string
	Summary bool
	// Limit is the size of a page; zero means 50.
	Limit int
	// Cursor is the NextCursor of the page before, in the same order.
	Cursor string
}

const inboxPath = "/api/v1/inbox"

func (f InboxFilter) query() url.Values {
	escalated := ""
	if f.Escalated != nil {
		escalated = strconv.FormatBool(*f.Escalated)
	}
	return given("kind", joined(f.Kinds), "cohort", f.Cohort, "tool", f.Tool, "source", f.Source, "session", f.Session, "automation", f.Automation,
		"person", f.Person, "q", f.Query, "risk", joined(f.Risks), "escalated", escalated, "expires_before", moment(f.ExpiresBefore))
}

// Inbox lists the actions that wait for a person, with the caller's choices.
func (c *Client) Inbox(ctx context.Context, f InboxFilter) (wire.Page[wire.InboxItem], error) {
	query := f.query()
	maps.Copy(query, given("order", f.Order, "view", view(f.Summary), "cursor", f.Cursor, "limit", number(f.Limit)))
	return read[wire.Page[wire.InboxItem]](ctx, c, inboxPath, query)
}

// InboxCounts counts the items of the inbox.
func (c *Client) InboxCounts(ctx context.Context, f InboxFilter) (wire.InboxCounts, error) {
	return read[wire.InboxCounts](ctx, c, inboxPath+"/counts", f.query())
}

// Acknowledge acknowledges actions of triage that ran without a person, and
// returns how many nobody had acknowledged.
func (c *Client) Acknowledge(ctx context.Context, ids []envelope.ActionID) (int, error) {
	done, err := post[wire.InboxNoticed](ctx, c, inboxPath+"/acknowledge", wire.InboxNotices{IDs: ids})
	return done.Acknowledged, err
}

// Interrupts lists the items of the inbox in the schema of LangGraph's Agent Inbox.
func (c *Client) Interrupts(ctx context.Context, f InboxFilter) (wire.Page[wire.Interrupt], error) {
	query := f.query()
	maps.Copy(query, given("order", f.Order, "cursor", f.Cursor, "limit", number(f.Limit)))
	return read[wire.Page[wire.Interrupt]](ctx, c, inboxPath+"/interrupts", query)
}

// Respond decides about an action by a response of LangGraph's Agent Inbox. etag is
// that of the interrupt; a notice has none.
func (c *Client) Respond(ctx context.Context, id envelope.ActionID, etag string, in wire.HumanResponse) (wire.Action, error) {
	var a wire.Action
	_, err := c.do(ctx, request{method: http.MethodPost, path: actionPath(id) + "/respond", header: ifMatch(etag), in: in}, &a)
	return a, err
}

// view returns the value of the query parameter view.
func view(summary bool) string {
	if summary {
		return "summary"
	}
	return ""
}

// ExecutionFilter narrows the log of executions; its zero fields do not.
type ExecutionFilter struct {
	Tool, Source string
	Status       wire.ExecutionStatus
	Session      string
	Employee     string
	// User is the id of the token that proposed, UserName its name.
	User, UserName string
	Workflow       string
	Automation     string
	Code, Via, IP  string
	Since, Until   time.Time
	// Summary is as in ActionFilter.
	Summary bool
	// Limit is the size of a page; zero means 50.
	Limit int
	// Cursor is the NextCursor of the page before.
	Cursor string
}

const executionsPath = "/api/v1/executions"

// Executions reads a page of the log of executions, newest first. A page may
// be short, or empty, and still have a NextCursor: the list ends where that is
// nil.
func (c *Client) Executions(ctx context.Context, f ExecutionFilter) (wire.Page[wire.Execution], error) {
	return read[wire.Page[wire.Execution]](ctx, c, executionsPath, given(
		"tool", f.Tool, "source", f.Source, "status", string(f.Status), "session_id", f.Session, "employee_id", f.Employee, "token_id", f.User, "user", f.UserName,
		"workflow_id", f.Workflow, "automation_id", f.Automation, "code", f.Code, "via", f.Via, "ip", f.IP,
		"since", moment(f.Since), "until", moment(f.Until), "view", view(f.Summary), "limit", number(f.Limit), "cursor", f.Cursor))
}

// Execution reads the complete record of an action or a dry run.
func (c *Client) Execution(ctx context.Context, id envelope.ActionID) (wire.ExecutionDetail, error) {
	return read[wire.ExecutionDetail](ctx, c, executionsPath+"/"+id.String(), nil)
}

func actionPath(id envelope.ActionID) string { return actionsPath + "/" + id.String() }

func toolPath(name string) string { return toolsPath + "/" + url.PathEscape(name) }

func pending(answer *http.Response) bool { return answer.Header.Get("Countersign-Pending") == "true" }
