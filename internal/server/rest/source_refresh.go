package rest

import (
	"context"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/tenant/catalog"
)

// refreshSource asks the fleet to list a source out of turn. It is no change
// of configuration: the listing that follows tells what it changed.
func (s *Server) refreshSource(c *call) error {
	id := c.r.PathValue("id")
	var asked time.Time
	err := s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		var err error
		asked, err = catalog.AskRefresh(ctx, tx, c.by.Tenant, id)
		return err
	})
	if err != nil {
		return err
	}
	return c.json(http.StatusAccepted, struct {
		ID      string    `json:"id"`
		AskedAt time.Time `json:"asked_at"`
	}{id, asked.UTC()})
}
