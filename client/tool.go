package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

// Tool is a tool that can be proposed.
type Tool struct {
	Key    string `json:"key"`
	Source string `json:"source"`
	Name   string `json:"name"`
	// FullName is module.entity.action; two tools may share one.
	FullName     string          `json:"full_name"`
	Module       string          `json:"module"`
	Entity       string          `json:"entity"`
	Action       string          `json:"action"`
	Title        string          `json:"title"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"input_schema"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	Risk         string          `json:"risk"`
	Effect       envelope.Effect `json:"effect"`
	SideEffects  []string        `json:"side_effects"`
	Reversible   bool            `json:"reversible"`
	// Reversal is how a call is undone; nil if nobody said how.
	Reversal         *Reversal     `json:"reversal,omitempty"`
	MaxAttempts      int           `json:"max_attempts"`
	Mode             envelope.Mode `json:"mode"`
	RequiresApproval bool          `json:"requires_approval"`
	Enabled          bool          `json:"enabled"`
	Drifted          bool          `json:"drifted"`
	// Drift is none, text or interface.
	Drift       string `json:"drift"`
	Quarantined bool   `json:"quarantined"`
	Digest      string `json:"digest"`
	// Recipients are JSON Pointers to whom the arguments address; they are
	// guessed unless an operator confirmed them.
	Recipients          []string `json:"recipients"`
	RecipientsConfirmed bool     `json:"recipients_confirmed"`
	// Scopes are what an employee must have to use it.
	Scopes []string `json:"scopes"`
	// Retry is what an operator set; the rest is left to the defaults.
	Retry limits.Retry `json:"retry"`
}

// Reversal is a call that undoes another.
type Reversal struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args,omitempty"`
}

// ToolFilter says which tools to list; its zero value lists all.
type ToolFilter struct {
	// Query is words to search for; what fits best comes first.
	Query, Source, Risk string
	Limit               int
}

// ToolList is what a filter found.
type ToolList struct {
	Items   []Tool       `json:"items"`
	Sources []ToolSource `json:"sources"`
}

// ToolSource says how a source of tools stands.
type ToolSource struct {
	ID      string `json:"source_id"`
	Enabled bool   `json:"enabled"`
	// Error says why its tools could not be listed, so that it has none here;
	// nil if they could.
	Error *string `json:"error"`
}

// Tools lists every tool of every source.
func (c *Client) Tools(ctx context.Context) ([]Tool, error) {
	found, err := c.FindTools(ctx, ToolFilter{})
	return found.Items, err
}

// FindTools lists the tools that a filter finds.
func (c *Client) FindTools(ctx context.Context, f ToolFilter) (ToolList, error) {
	query := url.Values{}
	for name, value := range map[string]string{"q": f.Query, "source": f.Source, "risk": f.Risk} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if f.Limit > 0 {
		query.Set("limit", strconv.Itoa(f.Limit))
	}
	var out ToolList
	_, err := c.do(ctx, request{method: http.MethodGet, path: "/api/v1/tools", query: query}, &out)
	return out, err
}

// Tool reads a tool by source:name, its full name, or a name that only one
// source has.
func (c *Client) Tool(ctx context.Context, name string) (Tool, error) {
	var out Tool
	_, err := c.do(ctx, request{method: http.MethodGet, path: "/api/v1/tools/" + url.PathEscape(name)}, &out)
	return out, err
}

// ToolDiff is what changed in a tool's definition since it was accepted. All
// of it is fit to be shown.
type ToolDiff struct {
	Key              string           `json:"key"`
	Drift            string           `json:"drift"`
	Drifted          bool             `json:"drifted"`
	Quarantined      bool             `json:"quarantined"`
	Digest           string           `json:"digest"`
	InterfaceDigest  string           `json:"interface_digest"`
	AcceptedDigest   *string          `json:"accepted_digest"`
	AcceptedKnown    bool             `json:"accepted_known"`
	HiddenCharacters bool             `json:"hidden_characters"`
	Changes          []ToolDifference `json:"changes"`
}

// ToolDifference is one difference between two definitions. Was and Now are
// nil where there was, or is, nothing.
type ToolDifference struct {
	Pointer          string          `json:"pointer"`
	Was              json.RawMessage `json:"was,omitempty"`
	Now              json.RawMessage `json:"now,omitempty"`
	Strength         string          `json:"strength"`
	HiddenCharacters bool            `json:"hidden_characters"`
}

// DiffTool tells what changed in the definition of the tool of a key.
func (c *Client) DiffTool(ctx context.Context, key string) (ToolDiff, error) {
	var out ToolDiff
	_, err := c.do(ctx, request{method: http.MethodGet, path: "/api/v1/tools/diff", query: url.Values{"key": {key}}}, &out)
	return out, err
}

// AcceptTool accepts the definition that has a digest.
func (c *Client) AcceptTool(ctx context.Context, source, name, digest string) error {
	in := struct {
		Source string `json:"source"`
		Name   string `json:"name"`
		Digest string `json:"digest"`
	}{source, name, digest}
	_, err := c.do(ctx, request{method: http.MethodPost, path: "/api/v1/tools/accept", in: in}, nil)
	return err
}

// Overrides are what an operator knows better of a tool than its source.
type Overrides struct {
	Source      string          `json:"source"`
	Name        string          `json:"name"`
	Risk        string          `json:"risk,omitzero"`
	Effect      envelope.Effect `json:"effect,omitzero"`
	MaxAttempts int             `json:"max_attempts,omitzero"`
}

// ConfigureTool sets a tool's overrides; those left out go back to what
// follows from the source.
func (c *Client) ConfigureTool(ctx context.Context, o Overrides) error {
	_, err := c.do(ctx, request{method: http.MethodPut, path: "/api/v1/tools/overrides", in: o}, nil)
	return err
}

// ToolDescription is what an operator says that a tool is and does; what is
// left out is inferred.
type ToolDescription struct {
	Source string `json:"source"`
	Name   string `json:"name"`
	Module string `json:"module,omitzero"`
	Entity string `json:"entity,omitzero"`
	Action string `json:"action,omitzero"`
	// SideEffects are what a call changes; nil leaves it to a guess.
	SideEffects *[]string `json:"side_effects,omitempty"`
	Reversal    *Reversal `json:"reversal,omitempty"`
}

// DescribeTool sets what an operator says of a tool, instead of what was said.
func (c *Client) DescribeTool(ctx context.Context, d ToolDescription) error {
	_, err := c.do(ctx, request{method: http.MethodPut, path: "/api/v1/tools/metadata", in: d}, nil)
	return err
}
