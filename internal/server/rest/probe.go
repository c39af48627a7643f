package rest

import (
	"context"
	"net/http"
	"time"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/schemas"
)

// probeFor bounds how long a probe may take to find out.
const probeFor = 2 * time.Second

// health is the answer of a probe.
type health struct {
	Status string `json:"status"`
}

func (s *Server) getHealth(c *call) error { return c.json(http.StatusOK, health{"ok"}) }

func (s *Server) getReadiness(c *call) error {
	want, err := postgres.LatestSchema()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), probeFor)
	defer cancel()
	got, err := migratedTo(ctx, s.DB)
	if err != nil {
		return fault.Wrap(err, fault.Busy, "the database does not answer")
	}
	if got < want {
		return fault.New(fault.Busy, "the database is of version %d and must be migrated to %d", got, want)
	}
	return c.json(http.StatusOK, health{"ok"})
}

func (s *Server) getMetrics(c *call) error {
	if s.cfg.Scrape == nil {
		return errNoRoute
	}
	s.cfg.Scrape.ServeHTTP(c.w, c.r)
	return nil
}

func (s *Server) getOpenAPI(c *call) error {
	writeBody(c.w, http.StatusOK, "application/yaml", schemas.OpenAPI())
	return nil
}

func (s *Server) getOpenAPIAsJSON(c *call) error {
	writeBody(c.w, http.StatusOK, jsonType, s.law.text)
	return nil
}
