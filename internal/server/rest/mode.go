package rest

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

func (s *Server) listModes(c *call) error { return listed(s, c, settings.Modes) }

func (s *Server) putMode(c *call) error {
	var body struct {
		Automation, Key string
		Mode            envelope.Mode
	}
	if err := c.decode(&body); err != nil {
		return err
	}
	c.detail = map[string]any{"automation": body.Automation, "key": body.Key, "mode": body.Mode}
	return s.configure(c, "policy "+ruleName(body.Automation, body.Key)+" is "+string(body.Mode), func(ctx context.Context, tx pgx.Tx) error {
		return settings.PutMode(ctx, tx, c.by.Tenant, body.Automation, body.Key, body.Mode, c.by.Name)
	})
}

func (s *Server) deleteMode(c *call) error {
	automation, key := c.query.Get("automation"), c.query.Get("key")
	c.detail = map[string]any{"automation": automation, "key": key, "mode": nil}
	return s.configure(c, "policy "+ruleName(automation, key)+" removed", func(ctx context.Context, tx pgx.Tx) error {
		return settings.DeleteMode(ctx, tx, c.by.Tenant, automation, key)
	})
}

// ruleName names a rule in an event.
func ruleName(automation, key string) string {
	if automation == "" {
		return key
	}
	return key + " of automation " + automation
}

// listed answers with all that the tenant has of something.
func listed[T any](s *Server, c *call, read func(context.Context, pgx.Tx, envelope.TenantID) ([]T, error)) error {
	var all []T
	err := s.inTx(c, func(ctx context.Context, tx pgx.Tx) (err error) {
		all, err = read(ctx, tx, c.by.Tenant)
		return err
	})
	if err != nil {
		return err
	}
	return items(c, all)
}
