package policies

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// modes is the collection of modes, by automation and pattern.
var modes = request.Collection[wire.Mode]{
	Name: "modes", Noun: "mode",
	Read: func(ctx context.Context, tx pgx.Tx, c *request.Call) ([]wire.Mode, error) {
		all, err := settings.Modes(ctx, tx, c.By.Tenant, c.Named("tool")...)
		return request.Map(all, func(m settings.Mode) wire.Mode {
			return wire.Mode{Automation: m.Automation, Tool: m.Pattern, Mode: envelope.Mode(m.Mode), Change: m.LastChange}
		}), err
	},
	Key:  func(m wire.Mode) string { return modeKey(m.Automation, m.Tool) },
	ETag: func(m *wire.Mode) *string { return &m.ETag },
}

func modeKey(automation, tool string) string { return automation + " " + tool }

// modeInPath returns the automation and the pattern of the mode in the path and
// the query, and the mode's name in events.
func modeInPath(c *request.Call) (automation, tool, name string) {
	automation, tool = c.Query.Get("automation_id"), c.R.PathValue("tool")
	if automation == "" {
		return automation, tool, "policy " + tool
	}
	return automation, tool, "policy " + tool + " of automation " + automation
}

// Modes handles GET /api/v1/policy/modes. It lists the modes of tools.
func Modes(c *request.Call) error { return modes.List(c) }

// PutMode handles PUT /api/v1/policy/modes/{tool}. It sets the mode of a tool
// or pattern.
func PutMode(c *request.Call, body wire.Mode) error {
	automation, tool, name := modeInPath(c)
	c.Detail = map[string]any{"automation_id": automation, "tool": tool, "mode": body.Mode}
	return modes.Put(c, modeKey(automation, tool), name+" is "+string(body.Mode), func(ctx context.Context, tx pgx.Tx) error {
		return settings.PutMode(ctx, tx, c.By.Tenant, automation, tool, body.Mode, c.By.Actor())
	})
}

// DeleteMode handles DELETE /api/v1/policy/modes/{tool}. It deletes the mode of
// a tool or pattern.
func DeleteMode(c *request.Call) error {
	automation, tool, name := modeInPath(c)
	c.Detail = map[string]any{"automation_id": automation, "tool": tool, "mode": nil}
	return modes.Delete(c, modeKey(automation, tool), name+" removed", func(ctx context.Context, tx pgx.Tx) error {
		return settings.DeleteMode(ctx, tx, c.By.Tenant, automation, tool)
	})
}
