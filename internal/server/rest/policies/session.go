package policies

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// maxSessionMode is the longest time for which a mode of a session holds.
const maxSessionMode = 30 * request.Day

// sessionModes is the collection of modes of sessions.
var sessionModes = request.Collection[wire.SessionMode]{
	Name: "session-modes", Noun: "mode of a session",
	Read: func(ctx context.Context, tx pgx.Tx, c *request.Call) ([]wire.SessionMode, error) {
		all, err := settings.SessionModes(ctx, tx, c.By.Tenant, cmp.Or(c.R.PathValue("session_id"), c.Query.Get("session_id")))
		return request.Map(all, func(m settings.SessionMode) wire.SessionMode {
			return wire.SessionMode{Session: m.Session, Tool: m.Pattern, Mode: m.Mode, ExpiresAt: m.ExpiresAt, Change: m.LastChange}
		}), err
	},
	Key:  func(m wire.SessionMode) string { return modeKey(m.Session, m.Tool) },
	ETag: func(m *wire.SessionMode) *string { return &m.ETag },
}

// SessionModes handles GET /api/v1/policy/sessions. It lists the modes of
// sessions.
func SessionModes(c *request.Call) error { return sessionModes.List(c) }

// PutSessionMode handles PUT /api/v1/policy/sessions/{session_id}/{tool}. It
// sets a mode of a session.
func PutSessionMode(c *request.Call, body wire.SessionMode) error {
	if err := request.CheckDuration("/expires_in", body.ExpiresIn, time.Second, maxSessionMode); err != nil {
		return err
	}
	m := settings.SessionMode{Session: c.R.PathValue("session_id"), Pattern: c.R.PathValue("tool"), Mode: body.Mode}
	c.Detail = map[string]any{"session_id": m.Session, "tool": m.Pattern, "mode": m.Mode, "expires_in": body.ExpiresIn}
	return sessionModes.Put(c, modeKey(m.Session, m.Pattern), "policy "+m.Pattern+" of a session is "+string(m.Mode), func(ctx context.Context, tx pgx.Tx) error {
		_, err := settings.PutSessionMode(ctx, tx, c.By.Tenant, m, time.Duration(body.ExpiresIn), c.By.Actor())
		return err
	})
}

// DeleteSessionMode handles DELETE /api/v1/policy/sessions/{session_id}/{tool}.
// It deletes a mode of a session.
func DeleteSessionMode(c *request.Call) error {
	session, tool := c.R.PathValue("session_id"), c.R.PathValue("tool")
	c.Detail = map[string]any{"session_id": session, "tool": tool, "mode": nil}
	return sessionModes.Delete(c, modeKey(session, tool), "policy "+tool+" of a session removed", func(ctx context.Context, tx pgx.Tx) error {
		return settings.DeleteSessionMode(ctx, tx, c.By.Tenant, session, tool)
	})
}
