package client

import (
	"context"
	"net/http"

	"github.com/countersign-dev/countersign/envelope"
)

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

// Ready asks whether the server can work. It needs no token.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.do(ctx, request{method: http.MethodGet, path: "/readyz"}, nil)
	return err
}
