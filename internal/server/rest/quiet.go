package rest

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

func (s *Server) listQuietHours(c *call) error {
	var all []limits.QuietHours
	err := s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		var err error
		all, err = limits.QuietHoursList(ctx, tx, c.by.Tenant)
		return err
	})
	if err != nil {
		return err
	}
	return items(c, all)
}

func (s *Server) putQuietHours(c *call) error {
	var h limits.QuietHours
	if err := c.decode(&h); err != nil {
		return err
	}
	return s.change(c, func(ctx context.Context, tx pgx.Tx) error {
		return limits.PutQuietHours(ctx, tx, c.by.Tenant, h, c.by.Name)
	})
}

func (s *Server) deleteQuietHours(c *call) error {
	return s.change(c, func(ctx context.Context, tx pgx.Tx) error {
		return limits.DeleteQuietHours(ctx, tx, c.by.Tenant, limits.QuietScope(c.query.Get("scope")), c.query.Get("subject"), c.by.Name)
	})
}
