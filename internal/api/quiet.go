package api

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/limit"
)

func (s *Server) listQuietHours(c *call) error {
	var all []limit.QuietHours
	err := s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		var err error
		all, err = limit.QuietHoursList(ctx, tx, c.by.Tenant)
		return err
	})
	if err != nil {
		return err
	}
	return items(c, all)
}

func (s *Server) putQuietHours(c *call) error {
	var h limit.QuietHours
	if err := c.decode(&h); err != nil {
		return err
	}
	return s.change(c, func(ctx context.Context, tx pgx.Tx) error {
		return limit.PutQuietHours(ctx, tx, c.by.Tenant, h, c.by.Name)
	})
}

func (s *Server) deleteQuietHours(c *call) error {
	return s.change(c, func(ctx context.Context, tx pgx.Tx) error {
		return limit.DeleteQuietHours(ctx, tx, c.by.Tenant, limit.QuietScope(c.query.Get("scope")), c.query.Get("subject"), c.by.Name)
	})
}
