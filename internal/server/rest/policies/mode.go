package policies

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// GET /api/v1/policy/modes lists the modes of tools.
func Modes(c *request.Call) error { return request.List(c, settings.Modes) }

// PUT /api/v1/policy/modes sets the mode of a tool or pattern.
func PutMode(c *request.Call) error {
	var body struct {
		Automation string `json:"automation_id"`
		Tool       string
		Mode       envelope.Mode
	}
	if err := c.Decode(&body); err != nil {
		return err
	}
	c.Detail = map[string]any{"automation_id": body.Automation, "tool": body.Tool, "mode": body.Mode}
	return c.Configure("policy "+ruleName(body.Automation, body.Tool)+" is "+string(body.Mode), func(ctx context.Context, tx pgx.Tx) error {
		return settings.PutMode(ctx, tx, c.By.Tenant, body.Automation, body.Tool, body.Mode, c.By.Name)
	})
}

// DELETE /api/v1/policy/modes deletes the mode of a tool or pattern.
func DeleteMode(c *request.Call) error {
	automation, key := c.Query.Get("automation_id"), c.Query.Get("tool")
	c.Detail = map[string]any{"automation_id": automation, "tool": key, "mode": nil}
	return c.Configure("policy "+ruleName(automation, key)+" removed", func(ctx context.Context, tx pgx.Tx) error {
		return settings.DeleteMode(ctx, tx, c.By.Tenant, automation, key)
	})
}

// ruleName returns the name of a rule in an event.
func ruleName(automation, key string) string {
	if automation == "" {
		return key
	}
	return key + " of automation " + automation
}
