package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
)

// Approval says how an action is approved.
type Approval struct {
	Note string `json:"note,omitzero"`
	// ETag is the Decision.ETag of the action as the approver saw it. The
	// server refuses if the action has another now; empty is not compared,
	// unless the action was edited.
	ETag string `json:"-"`
	// Args are sent in place of the proposed ones; nil leaves those.
	Args json.RawMessage `json:"args,omitempty"`
	// Always also lets through what is like it; nil does not.
	Always *Always `json:"always,omitempty"`
}

// Always lets through what is like an action, for a while.
type Always struct {
	// ExpiresIn is for how long; zero leaves it to the server.
	ExpiresIn envelope.Duration `json:"expires_in,omitzero"`
	// Scope is session, employee, automation or tenant; empty is session.
	Scope string `json:"scope,omitzero"`
	// Pins are JSON Pointers to the arguments that must be the same; the empty
	// one is all of them.
	Pins []string `json:"pins,omitempty"`
}

// Edited is what people changed of a proposal.
type Edited struct {
	By           string          `json:"by"`
	ProposedArgs json.RawMessage `json:"proposed_args"`
	Edits        []Edit          `json:"edits"`
}

// Edit is one change.
type Edit struct {
	By       string    `json:"by"`
	At       time.Time `json:"at"`
	Pointers []string  `json:"pointers"`
	Note     string    `json:"note,omitzero"`
}

// Vote is what one person said about an action.
type Vote struct {
	Round    int               `json:"round"`
	By       string            `json:"by"`
	Decision envelope.Decision `json:"decision"`
	Note     string            `json:"note"`
	At       time.Time         `json:"at"`
}

// Decided is what became of one action of a lot.
type Decided struct {
	ActionID envelope.ActionID `json:"action_id"`
	// Result is approved, voted, denied or refused.
	Result  string   `json:"result"`
	Needed  int      `json:"approvals_needed,omitzero"`
	Given   int      `json:"approvals_given,omitzero"`
	Problem *Problem `json:"problem,omitempty"`
}

// InboxItem is something that waits for a person.
type InboxItem struct {
	// Kind is approval, unknown (somebody has to find out what happened) or
	// compensation: a step of WorkflowID could not be taken back.
	Kind         string            `json:"kind"`
	ActionID     envelope.ActionID `json:"action_id"`
	Source       string            `json:"source"`
	Tool         string            `json:"tool"`
	Args         json.RawMessage   `json:"args"`
	Risk         envelope.Risk     `json:"risk"`
	SessionID    string            `json:"session_id,omitzero"`
	AutomationID string            `json:"automation_id,omitzero"`
	EmployeeID   string            `json:"employee_id,omitzero"`
	WorkflowID   uuid.UUID         `json:"workflow_id,omitzero"`
	Since        time.Time         `json:"since"`
	ExpiresAt    *time.Time        `json:"expires_at"`
	Needed       int               `json:"approvals_needed"`
	Given        int               `json:"approvals_given"`
	ApprovedBy   []string          `json:"approved_by"`
	EditedBy     string            `json:"edited_by,omitzero"`
	Escalated    bool              `json:"escalated"`
	Policy       string            `json:"policy,omitzero"`
	Note         string            `json:"note,omitzero"`
	Drift        string            `json:"drift,omitzero"`
	// ETag is what to decide with.
	ETag    string `json:"etag,omitzero"`
	Code    string `json:"code,omitzero"`
	Message string `json:"message,omitzero"`
}

// Review says how people look at the actions that a key covers, from a risk
// on.
type Review struct {
	Key       string             `json:"key"`
	Risk      envelope.Risk      `json:"risk,omitzero"`
	Approvals int                `json:"approvals,omitzero"`
	Wait      *envelope.Duration `json:"wait,omitempty"`
	Warn      *envelope.Duration `json:"warn,omitempty"`
	Escalate  *envelope.Duration `json:"escalate,omitempty"`
	// UpdatedBy and UpdatedAt are not sent.
	UpdatedBy string    `json:"updated_by,omitzero"`
	UpdatedAt time.Time `json:"updated_at,omitzero"`
}

const reviewsPath = "/api/v1/reviews"

// Approve lets an action run that waits for a decision, or counts as a vote
// where several people must agree, and waits that long for its end.
func (c *Client) Approve(ctx context.Context, id envelope.ActionID, in Approval, wait time.Duration) (Action, error) {
	rq := request{method: http.MethodPost, path: actionPath(id) + "/approve", header: ifMatch(in.ETag), in: in}
	rq.waiting("wait", wait)
	var a Action
	_, err := c.do(ctx, rq, &a)
	return a, err
}

// Deny refuses an action that waits for a decision. The note reaches the
// agent.
func (c *Client) Deny(ctx context.Context, id envelope.ActionID, note string) (Action, error) {
	in := struct {
		Note string `json:"note,omitzero"`
	}{note}
	var a Action
	_, err := c.do(ctx, request{method: http.MethodPost, path: actionPath(id) + "/deny", in: in}, &a)
	return a, err
}

// EditAction changes the arguments of an action that waits for a decision. Of
// the approval only Note, ETag and Args count.
func (c *Client) EditAction(ctx context.Context, id envelope.ActionID, in Approval) (Action, error) {
	in.Always = nil
	var a Action
	_, err := c.do(ctx, request{method: http.MethodPost, path: actionPath(id) + "/edit", header: ifMatch(in.ETag), in: in}, &a)
	return a, err
}

// ApproveMany approves up to 500 actions and answers for each, in order.
func (c *Client) ApproveMany(ctx context.Context, ids []envelope.ActionID, note string) ([]Decided, error) {
	return c.decideMany(ctx, "/approve", ids, note)
}

// DenyMany refuses up to 500 actions and answers for each, in order.
func (c *Client) DenyMany(ctx context.Context, ids []envelope.ActionID, note string) ([]Decided, error) {
	return c.decideMany(ctx, "/deny", ids, note)
}

func (c *Client) decideMany(ctx context.Context, how string, ids []envelope.ActionID, note string) ([]Decided, error) {
	in := struct {
		IDs  []envelope.ActionID `json:"ids"`
		Note string              `json:"note,omitzero"`
	}{ids, note}
	var out Page[Decided]
	_, err := c.do(ctx, request{method: http.MethodPost, path: actionsPath + how, in: in}, &out)
	return out.Items, err
}

// Votes reads who said what about an action, oldest first.
func (c *Client) Votes(ctx context.Context, id envelope.ActionID) ([]Vote, error) {
	var out Page[Vote]
	_, err := c.do(ctx, request{method: http.MethodGet, path: actionPath(id) + "/votes"}, &out)
	return out.Items, err
}

// Inbox lists what waits for a person, oldest first. A limit of zero means 50.
func (c *Client) Inbox(ctx context.Context, limit int, cursor string) (Page[InboxItem], error) {
	query := given("cursor", cursor)
	limited(query, limit)
	var page Page[InboxItem]
	_, err := c.do(ctx, request{method: http.MethodGet, path: "/api/v1/inbox", query: query}, &page)
	return page, err
}

// Reviews lists the review rules.
func (c *Client) Reviews(ctx context.Context) ([]Review, error) {
	var out Page[Review]
	_, err := c.do(ctx, request{method: http.MethodGet, path: reviewsPath}, &out)
	return out.Items, err
}

// PutReview sets a review rule.
func (c *Client) PutReview(ctx context.Context, r Review) error {
	_, err := c.do(ctx, request{method: http.MethodPut, path: reviewsPath, in: r}, nil)
	return err
}

// DeleteReview removes a review rule. An empty risk is low.
func (c *Client) DeleteReview(ctx context.Context, key string, risk envelope.Risk) error {
	query := url.Values{"key": {key}}
	if risk != "" {
		query.Set("risk", string(risk))
	}
	_, err := c.do(ctx, request{method: http.MethodDelete, path: reviewsPath, query: query}, nil)
	return err
}
