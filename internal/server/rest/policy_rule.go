package rest

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

func (s *Server) listRules(c *call) error { return listed(s, c, settings.Rules) }

func (s *Server) putRule(c *call) error {
	rule := settings.Rule{Enabled: true}
	if err := c.decode(&rule); err != nil {
		return err
	}
	rule.ID = c.r.PathValue("id")
	c.detail = map[string]any{
		"automation": rule.Automation, "key": rule.Pattern, "expression": rule.Expression, "mode": rule.Mode, "reason": rule.Reason, "enabled": rule.Enabled,
	}
	return s.configure(c, "policy rule "+rule.ID+" set", func(ctx context.Context, tx pgx.Tx) error {
		snap, err := s.Catalog.Current(ctx, tx, c.by.Tenant)
		if err != nil {
			return err
		}
		return settings.PutRule(ctx, tx, snap, rule, c.by.Name)
	})
}

func (s *Server) deleteRule(c *call) error {
	id := c.r.PathValue("id")
	return s.configure(c, "policy rule "+id+" removed", func(ctx context.Context, tx pgx.Tx) error {
		return settings.DeleteRule(ctx, tx, c.by.Tenant, id)
	})
}
