package rest

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

func (s *Server) listBreakers(c *call) error {
	var all []limits.Breaker
	err := s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		var err error
		all, err = limits.Breakers(ctx, tx, c.by.Tenant)
		return err
	})
	if err != nil {
		return err
	}
	return items(c, all)
}

func (s *Server) resetBreaker(c *call) error {
	return s.change(c, func(ctx context.Context, tx pgx.Tx) error {
		return limits.ResetBreaker(ctx, tx, c.by.Tenant, c.r.PathValue("id"), c.by.Name)
	})
}
