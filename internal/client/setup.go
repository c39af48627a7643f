package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/limit"
)

// SourceInput describes a source of tools that is to be stored.
type SourceInput struct {
	// Kind is mcp.
	Kind   string          `json:"kind"`
	Config json.RawMessage `json:"config"`
	// Credentials are stored encrypted and never shown again.
	Credentials json.RawMessage `json:"credentials,omitempty"`
	// DefaultRisk is read, write or danger, for tools that do not say.
	DefaultRisk string `json:"default_risk,omitzero"`
}

// PutSource makes or changes a source.
func (c *Client) PutSource(ctx context.Context, id string, src SourceInput) error {
	_, err := c.do(ctx, request{method: http.MethodPut, path: "/api/v1/sources/" + url.PathEscape(id), in: src}, nil)
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

// PutMode sets the organisation's mode for the tools that a key covers, such
// as mail:* or mail:send_email.
func (c *Client) PutMode(ctx context.Context, key string, mode envelope.Mode) error {
	in := struct {
		Key  string        `json:"key"`
		Mode envelope.Mode `json:"mode"`
	}{key, mode}
	_, err := c.do(ctx, request{method: http.MethodPut, path: "/api/v1/policy/modes", in: in}, nil)
	return err
}

// Tool is a tool that can be proposed.
type Tool struct {
	Key         string          `json:"key"`
	Source      string          `json:"source"`
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
	Risk        string          `json:"risk"`
	Effect      envelope.Effect `json:"effect"`
	MaxAttempts int             `json:"max_attempts"`
	Mode        envelope.Mode   `json:"mode"`
	Enabled     bool            `json:"enabled"`
	Drifted     bool            `json:"drifted"`
	Digest      string          `json:"digest"`
	// Recipients are JSON Pointers to whom the arguments address; they are
	// guessed unless an operator confirmed them.
	Recipients          []string `json:"recipients"`
	RecipientsConfirmed bool     `json:"recipients_confirmed"`
	// Scopes are what an employee must have to use it.
	Scopes []string `json:"scopes"`
	// Retry is what an operator set; the rest is left to the defaults.
	Retry limit.Retry `json:"retry"`
}

// Tools lists every tool of every source.
func (c *Client) Tools(ctx context.Context) ([]Tool, error) {
	var out Page[Tool]
	_, err := c.do(ctx, request{method: http.MethodGet, path: "/api/v1/tools"}, &out)
	return out.Items, err
}

// Ready asks whether the server can work. It needs no token.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.do(ctx, request{method: http.MethodGet, path: "/readyz"}, nil)
	return err
}
