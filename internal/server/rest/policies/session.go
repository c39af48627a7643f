package policies

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// GET /api/v1/policy/sessions lists the modes that hold for sessions.
func SessionModes(c *request.Call) error {
	return request.List(c, func(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) ([]settings.SessionMode, error) {
		return settings.SessionModes(ctx, tx, tenant, c.Query.Get("session_id"))
	})
}

// PUT /api/v1/policy/sessions sets a mode that holds for a session.
func PutSessionMode(c *request.Call) error {
	var body struct {
		Session   string            `json:"session_id"`
		Key       string            `json:"tool"`
		Mode      envelope.Mode     `json:"mode"`
		ExpiresIn envelope.Duration `json:"expires_in"`
	}
	if err := c.Decode(&body); err != nil {
		return err
	}
	if err := request.CheckDuration("/expires_in", body.ExpiresIn, time.Second, 30*request.Day); err != nil {
		return err
	}
	m := settings.SessionMode{Session: body.Session, Pattern: body.Key, Mode: body.Mode}
	c.Detail = map[string]any{"session_id": body.Session, "tool": body.Key, "mode": body.Mode, "expires_in": body.ExpiresIn}
	return c.Configure("policy "+body.Key+" of a session is "+string(body.Mode), func(ctx context.Context, tx pgx.Tx) error {
		_, err := settings.PutSessionMode(ctx, tx, c.By.Tenant, m, time.Duration(body.ExpiresIn), c.By.Name)
		return err
	})
}

// DELETE /api/v1/policy/sessions deletes a mode that holds for a session.
func DeleteSessionMode(c *request.Call) error {
	session, key := c.Query.Get("session_id"), c.Query.Get("tool")
	c.Detail = map[string]any{"session_id": session, "tool": key, "mode": nil}
	return c.Configure("policy "+key+" of a session removed", func(ctx context.Context, tx pgx.Tx) error {
		return settings.DeleteSessionMode(ctx, tx, c.By.Tenant, session, key)
	})
}
