package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/insight/simulate"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// The paths of policy.
const (
	modesPath       = "/api/v1/policy/modes"
	rulesPath       = "/api/v1/policy/rules"
	grantsPath      = "/api/v1/policy/grants"
	sessionsPath    = "/api/v1/policy/sessions"
	explainPath     = "/api/v1/policy/explain"
	policyPath      = "/api/v1/policy"
	preferencesPath = "/api/v1/preferences"
)

// Modes lists the modes of the organisation and of automations.
func (c *Client) Modes(ctx context.Context) ([]settings.Mode, error) {
	return listOf[settings.Mode](ctx, c, modesPath)
}

// PutModeOf sets an automation's mode for the tools that a key covers.
func (c *Client) PutModeOf(ctx context.Context, automation, key string, mode envelope.Mode) error {
	in := struct {
		Automation string        `json:"automation_id,omitzero"`
		Key        string        `json:"key"`
		Mode       envelope.Mode `json:"mode"`
	}{automation, key, mode}
	return c.tell(ctx, http.MethodPut, modesPath, nil, in)
}

// DeleteMode removes a mode; automation is empty for the organisation's.
func (c *Client) DeleteMode(ctx context.Context, automation, key string) error {
	return c.tell(ctx, http.MethodDelete, modesPath, given("automation_id", automation, "key", key), nil)
}

// Rules lists the rules about arguments.
func (c *Client) Rules(ctx context.Context) ([]settings.Rule, error) {
	return listOf[settings.Rule](ctx, c, rulesPath)
}

// PutRule makes or changes a rule about arguments.
func (c *Client) PutRule(ctx context.Context, r settings.Rule) error {
	in := struct {
		Automation string `json:"automation_id,omitzero"`
		Key        string `json:"key"`
		Expression string `json:"expression"`
		Mode       string `json:"mode"`
		Reason     string `json:"reason,omitzero"`
		Enabled    bool   `json:"enabled"`
	}{r.Automation, r.Pattern, r.Expression, r.Mode, r.Reason, r.Enabled}
	return c.tell(ctx, http.MethodPut, rulesPath+"/"+url.PathEscape(r.ID), nil, in)
}

// DeleteRule removes a rule about arguments.
func (c *Client) DeleteRule(ctx context.Context, id string) error {
	return c.tell(ctx, http.MethodDelete, rulesPath+"/"+url.PathEscape(id), nil, nil)
}

// Grants lists the grants that hold, the latest first; if ended is set, also
// those that do not hold any more.
func (c *Client) Grants(ctx context.Context, ended bool) ([]settings.Grant, error) {
	query := url.Values{}
	if ended {
		query.Set("ended", "true")
	}
	return listWith[settings.Grant](ctx, c, grantsPath, query)
}

// MakeGrant lets calls of a tool through beforehand. Without a digest the
// grant is for the definition that the tool has now.
func (c *Client) MakeGrant(ctx context.Context, g settings.Grant) (uuid.UUID, error) {
	in := struct {
		Key        string                     `json:"key"`
		Digest     []byte                     `json:"digest,omitempty"`
		Employee   envelope.EmployeeID        `json:"employee_id,omitzero"`
		Session    string                     `json:"session_id,omitzero"`
		Automation string                     `json:"automation_id,omitzero"`
		Pins       map[string]json.RawMessage `json:"pins,omitempty"`
		ExpiresIn  envelope.Duration          `json:"expires_in,omitzero"`
		Reason     string                     `json:"reason,omitzero"`
	}{g.Tool.String(), g.Digest, g.Employee, g.Session, g.Automation, g.Pins, envelope.Duration(g.For), g.Reason}
	var out struct {
		ID uuid.UUID `json:"grant_id"`
	}
	_, err := c.do(ctx, request{method: http.MethodPost, path: grantsPath, in: in}, &out)
	return out.ID, err
}

// RevokeGrant takes a grant back.
func (c *Client) RevokeGrant(ctx context.Context, id uuid.UUID) error {
	return c.tell(ctx, http.MethodDelete, grantsPath+"/"+id.String(), nil, nil)
}

// SessionModes lists what narrows a session, or all of them if it is empty.
func (c *Client) SessionModes(ctx context.Context, session string) ([]settings.SessionMode, error) {
	return listWith[settings.SessionMode](ctx, c, sessionsPath, given("session_id", session))
}

// PutSessionMode narrows a session for some time.
func (c *Client) PutSessionMode(ctx context.Context, session, key string, mode envelope.Mode, lasts time.Duration) error {
	in := struct {
		Session   string            `json:"session_id"`
		Key       string            `json:"key"`
		Mode      envelope.Mode     `json:"mode"`
		ExpiresIn envelope.Duration `json:"expires_in"`
	}{session, key, mode, envelope.Duration(lasts)}
	return c.tell(ctx, http.MethodPut, sessionsPath, nil, in)
}

// DeleteSessionMode removes what narrows a session.
func (c *Client) DeleteSessionMode(ctx context.Context, session, key string) error {
	return c.tell(ctx, http.MethodDelete, sessionsPath, given("session_id", session, "key", key), nil)
}

// Preferences lists what is switched off; for an employee, if one is named,
// its own and everybody's.
func (c *Client) Preferences(ctx context.Context, employee envelope.EmployeeID) ([]settings.Preference, error) {
	return listWith[settings.Preference](ctx, c, preferencesPath, forEmployee(employee))
}

// PutPreference switches tools off; the zero employee is everybody.
func (c *Client) PutPreference(ctx context.Context, employee envelope.EmployeeID, key string) error {
	in := struct {
		Employee envelope.EmployeeID `json:"employee_id,omitzero"`
		Key      string              `json:"key"`
	}{employee, key}
	return c.tell(ctx, http.MethodPut, preferencesPath, nil, in)
}

// DeletePreference switches tools on again.
func (c *Client) DeletePreference(ctx context.Context, employee envelope.EmployeeID, key string) error {
	query := forEmployee(employee)
	query.Set("key", key)
	return c.tell(ctx, http.MethodDelete, preferencesPath, query, nil)
}

// Question is a call about which policy is asked.
type Question struct {
	Tool envelope.Tool `json:"tool"`
	// Args are left out where no arguments are meant.
	Args       json.RawMessage     `json:"args,omitempty"`
	Employee   envelope.EmployeeID `json:"employee_id,omitzero"`
	Session    string              `json:"session_id,omitzero"`
	Automation string              `json:"automation_id,omitzero"`
	Risk       envelope.Risk       `json:"risk,omitzero"`
	// Approval is required if the agent asks for a person.
	Approval envelope.Approval `json:"approval,omitzero"`
}

// Explanation is what policy would decide, with every layer's word.
type Explanation struct {
	Key      string        `json:"key"`
	Mode     envelope.Mode `json:"mode"`
	Source   string        `json:"mode_source"`
	Decision uuid.UUID     `json:"decision_id"`
	Version  int64         `json:"config_version"`
	Trace    []policy.Step `json:"trace"`
}

// Explain asks what policy would decide about a call, and why.
func (c *Client) Explain(ctx context.Context, q Question) (Explanation, error) {
	var e Explanation
	_, err := c.do(ctx, request{method: http.MethodPost, path: explainPath, in: q}, &e)
	return e, err
}

// Policy reads the policy as one document: everything but grants and the modes
// of sessions.
func (c *Client) Policy(ctx context.Context) (settings.Document, error) {
	var doc settings.Document
	_, err := c.do(ctx, request{method: http.MethodGet, path: policyPath}, &doc)
	return doc, err
}

// PutPolicy makes the policy what a document in JSON says, and returns what
// changed; with dry, what would.
func (c *Client) PutPolicy(ctx context.Context, doc json.RawMessage, dry bool) ([]limits.Change, error) {
	return c.putDocument(ctx, policyPath, doc, dry)
}

// Simulation is a part of the past on which a policy is tried.
type Simulation struct {
	// From and To bound when an action was proposed; a zero To is now.
	From time.Time `json:"since"`
	To   time.Time `json:"until,omitzero"`
	// Tool is a pattern; empty is all.
	Tool string `json:"tool,omitzero"`
	// Policy is a document in JSON, whose sections stand in for those of now.
	Policy json.RawMessage `json:"policy"`
	// Cursor is the NextCursor of the page before.
	Cursor string `json:"cursor,omitzero"`
	// Most is how many actions the page goes through; zero means 2000.
	Most int `json:"limit,omitzero"`
}

// Simulated is a page of a simulation.
type Simulated struct {
	simulate.Report
	NextCursor *string `json:"next_cursor"`
}

// Simulate tries a policy on a page of the past, the latest action first.
func (c *Client) Simulate(ctx context.Context, s Simulation) (Simulated, error) {
	var out Simulated
	_, err := c.do(ctx, request{method: http.MethodPost, path: policyPath + "/simulate", in: s}, &out)
	return out, err
}

// forEmployee is the query that names an employee, if there is one.
func forEmployee(id envelope.EmployeeID) url.Values {
	query := url.Values{}
	if id != (envelope.EmployeeID{}) {
		query.Set("employee_id", id.String())
	}
	return query
}

// listWith reads a list that has no pages, narrowed by a query.
func listWith[T any](ctx context.Context, c *Client, path string, query url.Values) ([]T, error) {
	var out Page[T]
	_, err := c.do(ctx, request{method: http.MethodGet, path: path, query: query}, &out)
	return out.Items, err
}
