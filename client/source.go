package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// Source is a source of tools as it is stored, without its credentials.
type Source struct {
	ID             string          `json:"source_id"`
	Kind           string          `json:"kind"`
	Config         json.RawMessage `json:"config"`
	HasCredentials bool            `json:"has_credentials"`
	DefaultRisk    string          `json:"default_risk,omitzero"`
	Enabled        bool            `json:"enabled"`
	// DriftGuard is full or interface.
	DriftGuard string     `json:"drift_guard"`
	Quarantine bool       `json:"quarantine"`
	ListedAt   *time.Time `json:"listed_at"`
	ListError  *string    `json:"list_error"`
	LeftOut    int        `json:"left_out"`
}

// SourceInput describes a source of tools that is to be stored.
type SourceInput struct {
	Kind   string          `json:"kind"`
	Config json.RawMessage `json:"config"`
	// Credentials are stored encrypted and never shown again.
	Credentials json.RawMessage `json:"credentials,omitempty"`
	// DefaultRisk is read, write or danger, for tools that do not say.
	DefaultRisk string `json:"default_risk,omitzero"`
	// Enabled is true unless it says otherwise; the guard and the quarantine
	// stay as they are.
	Enabled    *bool  `json:"enabled,omitempty"`
	DriftGuard string `json:"drift_guard,omitzero"`
	Quarantine *bool  `json:"quarantine,omitempty"`
}

// Sources lists the sources of tools.
func (c *Client) Sources(ctx context.Context) ([]Source, error) {
	var out Page[Source]
	_, err := c.do(ctx, request{method: http.MethodGet, path: "/api/v1/sources"}, &out)
	return out.Items, err
}

// PutSource makes or changes a source.
func (c *Client) PutSource(ctx context.Context, id string, src SourceInput) error {
	_, err := c.do(ctx, request{method: http.MethodPut, path: sourcePath(id), in: src}, nil)
	return err
}

// DeleteSource removes a source and its tools.
func (c *Client) DeleteSource(ctx context.Context, id string) error {
	_, err := c.do(ctx, request{method: http.MethodDelete, path: sourcePath(id)}, nil)
	return err
}

// RefreshSource asks for a source's tools to be listed now. It is done when
// the source's ListedAt is later than the time that it returns.
func (c *Client) RefreshSource(ctx context.Context, id string) (time.Time, error) {
	var out struct {
		AskedAt time.Time `json:"asked_at"`
	}
	_, err := c.do(ctx, request{method: http.MethodPost, path: sourcePath(id) + "/refresh"}, &out)
	return out.AskedAt, err
}

func sourcePath(id string) string { return "/api/v1/sources/" + url.PathEscape(id) }
