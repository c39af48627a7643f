package rest

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

func (s *Server) listSessionModes(c *call) error {
	return listed(s, c, func(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) ([]settings.SessionMode, error) {
		return settings.SessionModes(ctx, tx, tenant, c.query.Get("session_id"))
	})
}

func (s *Server) putSessionMode(c *call) error {
	var body struct {
		Session string        `json:"session_id"`
		Key     string        `json:"key"`
		Mode    envelope.Mode `json:"mode"`
		Seconds int64         `json:"expires_in_seconds"`
	}
	if err := c.decode(&body); err != nil {
		return err
	}
	m := settings.SessionMode{Session: body.Session, Pattern: body.Key, Mode: body.Mode}
	c.detail = map[string]any{"session_id": body.Session, "key": body.Key, "mode": body.Mode, "expires_in_seconds": body.Seconds}
	return s.configure(c, "policy "+body.Key+" of a session is "+string(body.Mode), func(ctx context.Context, tx pgx.Tx) error {
		_, err := settings.PutSessionMode(ctx, tx, c.by.Tenant, m, time.Duration(body.Seconds)*time.Second, c.by.Name)
		return err
	})
}

func (s *Server) deleteSessionMode(c *call) error {
	session, key := c.query.Get("session_id"), c.query.Get("key")
	c.detail = map[string]any{"session_id": session, "key": key, "mode": nil}
	return s.configure(c, "policy "+key+" of a session removed", func(ctx context.Context, tx pgx.Tx) error {
		return settings.DeleteSessionMode(ctx, tx, c.by.Tenant, session, key)
	})
}
