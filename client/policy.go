package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
)

// The paths of policy.
const (
	policyPath      = "/api/v1/policy"
	modesPath       = policyPath + "/modes"
	rulesPath       = policyPath + "/rules"
	grantsPath      = policyPath + "/grants"
	sessionsPath    = policyPath + "/sessions"
	preferencesPath = "/api/v1/preferences"
	reviewsPath     = "/api/v1/reviews"
)

// Modes lists the modes of the organisation and of automations.
func (c *Client) Modes(ctx context.Context) ([]wire.Mode, error) {
	return list[wire.Mode](ctx, c, modesPath, nil)
}

// PutMode sets a mode.
func (c *Client) PutMode(ctx context.Context, m wire.Mode) error {
	return c.tell(ctx, http.MethodPut, modesPath+"/"+url.PathEscape(m.Tool), given("automation_id", m.Automation), wire.Mode{Mode: m.Mode})
}

// DeleteMode removes a mode; automation is empty for the organisation's.
func (c *Client) DeleteMode(ctx context.Context, automation, tool string) error {
	return c.tell(ctx, http.MethodDelete, modesPath+"/"+url.PathEscape(tool), given("automation_id", automation), nil)
}

// Rules lists the rules about arguments.
func (c *Client) Rules(ctx context.Context) ([]wire.Rule, error) {
	return list[wire.Rule](ctx, c, rulesPath, nil)
}

// PutRule makes or changes the rule of an id.
func (c *Client) PutRule(ctx context.Context, id string, r wire.Rule) error {
	r.ID, r.ETag, r.Change = "", "", wire.Change{}
	return c.tell(ctx, http.MethodPut, rulesPath+"/"+url.PathEscape(id), nil, r)
}

// DeleteRule removes a rule about arguments.
func (c *Client) DeleteRule(ctx context.Context, id string) error {
	return c.tell(ctx, http.MethodDelete, rulesPath+"/"+url.PathEscape(id), nil, nil)
}

// CheckRule checks an expression, and evaluates it for past actions. It stores
// nothing.
func (c *Client) CheckRule(ctx context.Context, in wire.RuleCheck) (wire.RuleChecked, error) {
	return post[wire.RuleChecked](ctx, c, policyPath+"/check", in)
}

// PolicyUsage counts the actions of the last week by the rules that applied to
// them, and by the grants that allowed them.
func (c *Client) PolicyUsage(ctx context.Context) (wire.PolicyUsage, error) {
	return read[wire.PolicyUsage](ctx, c, policyPath+"/usage", nil)
}

// Grants lists the current grants, latest first; with ended, ended ones too.
func (c *Client) Grants(ctx context.Context, ended bool) ([]wire.Grant, error) {
	return list[wire.Grant](ctx, c, grantsPath, given("ended", flag(ended)))
}

// MakeGrant makes a grant and returns its id.
func (c *Client) MakeGrant(ctx context.Context, g wire.GrantInput) (uuid.UUID, error) {
	made, err := post[struct {
		ID uuid.UUID `json:"grant_id"`
	}](ctx, c, grantsPath, g)
	return made.ID, err
}

// PreviewGrant returns the grant that MakeGrant would make, and the past calls that
// it would have allowed.
func (c *Client) PreviewGrant(ctx context.Context, in wire.GrantInput) (wire.GrantPreview, error) {
	var g wire.GrantPreview
	_, err := c.do(ctx, request{method: http.MethodPost, path: grantsPath, query: given("dry_run", flag(true)), in: in}, &g)
	return g, err
}

// RevokeGrant ends a grant; actions that it allowed and that are not sent yet are pending
// again.
func (c *Client) RevokeGrant(ctx context.Context, id uuid.UUID) error {
	return c.tell(ctx, http.MethodDelete, grantsPath+"/"+id.String(), nil, nil)
}

// SessionModes lists the modes of a session, or of all if it is empty.
func (c *Client) SessionModes(ctx context.Context, session string) ([]wire.SessionMode, error) {
	return list[wire.SessionMode](ctx, c, sessionsPath, given("session_id", session))
}

// PutSessionMode sets the mode of a session for its ExpiresIn.
func (c *Client) PutSessionMode(ctx context.Context, m wire.SessionMode) error {
	return c.tell(ctx, http.MethodPut, sessionModePath(m.Session, m.Tool), nil, wire.SessionMode{Mode: m.Mode, ExpiresIn: m.ExpiresIn})
}

// DeleteSessionMode removes a mode of a session.
func (c *Client) DeleteSessionMode(ctx context.Context, session, tool string) error {
	return c.tell(ctx, http.MethodDelete, sessionModePath(session, tool), nil, nil)
}

func sessionModePath(session, tool string) string {
	return sessionsPath + "/" + url.PathEscape(session) + "/" + url.PathEscape(tool)
}

// Preferences lists the switched-off tools; with an employee, those switched
// off for that employee or for everybody.
func (c *Client) Preferences(ctx context.Context, employee envelope.EmployeeID) ([]wire.Preference, error) {
	return list[wire.Preference](ctx, c, preferencesPath, given("employee_id", idText(employee)))
}

// PutPreference switches tools off.
func (c *Client) PutPreference(ctx context.Context, p wire.Preference) error {
	return c.tell(ctx, http.MethodPut, preferencesPath+"/"+url.PathEscape(p.Tool), given("employee_id", idText(p.Employee)), nil)
}

// DeletePreference switches tools on again; the zero employee is everybody.
func (c *Client) DeletePreference(ctx context.Context, employee envelope.EmployeeID, tool string) error {
	return c.tell(ctx, http.MethodDelete, preferencesPath+"/"+url.PathEscape(tool), given("employee_id", idText(employee)), nil)
}

// idText writes the id of an employee; zero is empty.
func idText(id envelope.EmployeeID) string {
	if id == (envelope.EmployeeID{}) {
		return ""
	}
	return id.String()
}

// Reviews lists the review rules.
func (c *Client) Reviews(ctx context.Context) ([]wire.ReviewRule, error) {
	return list[wire.ReviewRule](ctx, c, reviewsPath, nil)
}

// PutReview sets a review rule. If the rule was changed since the ETag was
// read, the error is ErrStale.
func (c *Client) PutReview(ctx context.Context, r wire.ReviewRule) error {
	path, query := reviewsPath+"/"+url.PathEscape(r.Tool), given("risk", string(r.Risk))
	in := wire.ReviewRule{Approvals: r.Approvals, Wait: r.Wait, Warn: r.Warn, Escalate: r.Escalate}
	_, err := c.do(ctx, request{method: http.MethodPut, path: path, query: query, header: ifMatch(r.ETag), in: in}, nil)
	return err
}

// DeleteReview removes a review rule. An empty risk is low.
func (c *Client) DeleteReview(ctx context.Context, tool string, risk envelope.Risk) error {
	return c.tell(ctx, http.MethodDelete, reviewsPath+"/"+url.PathEscape(tool), given("risk", string(risk)), nil)
}

// Explain returns the decision of policy about a call, which is not made, and
// the reasons.
func (c *Client) Explain(ctx context.Context, q wire.Question) (wire.Explanation, error) {
	return post[wire.Explanation](ctx, c, policyPath+"/explain", q)
}

// MatrixFilter selects the rows of the matrix, and the calls that they are
// about; empty fields select all tools, and calls of nobody in particular.
type MatrixFilter struct {
	// Query finds tools, as in Tools.
	Query      string
	Automation string
	Session    string
	Employee   envelope.EmployeeID
}

// PolicyMatrix reads the decision of policy about each tool.
func (c *Client) PolicyMatrix(ctx context.Context, f MatrixFilter) ([]wire.MatrixRow, error) {
	query := given("q", f.Query, "automation_id", f.Automation, "session_id", f.Session)
	if f.Employee != (envelope.EmployeeID{}) {
		query.Set("employee_id", f.Employee.String())
	}
	return list[wire.MatrixRow](ctx, c, policyPath+"/matrix", query)
}

// Policy reads the policy as one document in JSON: everything but grants and
// the modes of sessions.
func (c *Client) Policy(ctx context.Context) (json.RawMessage, error) {
	return read[json.RawMessage](ctx, c, policyPath, nil)
}

// PutPolicy replaces the policy with a document in JSON.
func (c *Client) PutPolicy(ctx context.Context, doc json.RawMessage, o PutOptions) (wire.SettingChanges, error) {
	return c.putDocument(ctx, policyPath, doc, o)
}

// Simulate tries a policy on a page of the past, the latest action first.
func (c *Client) Simulate(ctx context.Context, s wire.Simulation) (wire.SimulationPage, error) {
	return post[wire.SimulationPage](ctx, c, policyPath+"/simulate", s)
}

// Limits reads every limit as one document in JSON.
func (c *Client) Limits(ctx context.Context) (json.RawMessage, error) {
	return read[json.RawMessage](ctx, c, limitsPath, nil)
}

// PutLimits replaces the limits with a document in JSON.
func (c *Client) PutLimits(ctx context.Context, doc json.RawMessage, o PutOptions) (wire.SettingChanges, error) {
	return c.putDocument(ctx, limitsPath, doc, o)
}

// PutOptions configure how a whole document of settings is replaced.
type PutOptions struct {
	// DryRun reports the changes and makes none.
	DryRun bool
	// IfMatch is the ETag of the document that the change is based on, from an
	// earlier dry run. If the document was changed since, the error is ErrChanged.
	// Empty applies the change to the current document.
	IfMatch string
}

// putDocument replaces the document at a path and returns the changes, with the
// ETag of the document afterwards.
func (c *Client) putDocument(ctx context.Context, path string, doc json.RawMessage, o PutOptions) (wire.SettingChanges, error) {
	if o.IfMatch == "" && !o.DryRun {
		answer, err := c.do(ctx, request{method: http.MethodGet, path: path}, nil)
		if err != nil {
			return wire.SettingChanges{}, err
		}
		o.IfMatch = etag(answer)
	}
	var out wire.SettingChanges
	answer, err := c.do(ctx, request{
		method: http.MethodPut, path: path, query: given("dry_run", flag(o.DryRun)), header: ifMatch(o.IfMatch), in: doc,
	}, &out)
	if err != nil {
		return wire.SettingChanges{}, err
	}
	out.ETag = etag(answer)
	return out, nil
}

// etag returns the entity tag of an answer without its quotes.
func etag(answer *http.Response) string { return strings.Trim(answer.Header.Get("ETag"), `"`) }
