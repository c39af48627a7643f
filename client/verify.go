package client

import (
	"context"
	"encoding/json"
	"net/http"
)

const verifyPath = "/api/v1/tools/verify"

// VerifyRule says how a read finds out whether a call of a tool happened.
type VerifyRule struct {
	// Tool is a tool of the same source that only reads.
	Tool string `json:"tool"`
	// Args is the template of its arguments.
	Args json.RawMessage `json:"args,omitempty"`
	// Happened is a JSON Pointer into its answer.
	Happened string `json:"happened"`
	// Resend runs a call of class once again that was not found.
	Resend bool `json:"resend,omitzero"`
}

// VerifySetting is the rule of one tool; a nil rule is none.
type VerifySetting struct {
	Source string      `json:"source"`
	Name   string      `json:"name"`
	Verify *VerifyRule `json:"verify,omitempty"`
}

// VerifyRules lists the tools that have a verifying read.
func (c *Client) VerifyRules(ctx context.Context) ([]VerifySetting, error) {
	var out Page[VerifySetting]
	_, err := c.do(ctx, request{method: http.MethodGet, path: verifyPath}, &out)
	return out.Items, err
}

// PutVerifyRule sets or removes the rule of a tool.
func (c *Client) PutVerifyRule(ctx context.Context, s VerifySetting) error {
	_, err := c.do(ctx, request{method: http.MethodPut, path: verifyPath, in: s}, nil)
	return err
}
