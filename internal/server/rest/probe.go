package rest

import (
	"context"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/server/openapi"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/schemas"
)

// probeFor bounds how long a probe may take to find out.
const probeFor = 2 * time.Second

// health is the answer of a probe.
type health struct {
	Status string `json:"status"`
}

func getHealth(c *request.Call) error { return c.JSON(http.StatusOK, health{"ok"}) }

func getReadiness(c *request.Call) error {
	want, err := postgres.LatestSchema()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.R.Context(), probeFor)
	defer cancel()
	got, err := migratedTo(ctx, c.DB)
	if err != nil {
		return fault.Wrap(err, fault.Busy, "the database does not answer")
	}
	if got < want {
		return fault.New(fault.Busy, "the database is of version %d and must be migrated to %d", got, want)
	}
	return c.JSON(http.StatusOK, health{"ok"})
}

func getMetrics(c *request.Call) error {
	if c.Scrape == nil {
		return request.ErrNoRoute
	}
	c.Scrape.ServeHTTP(c.W, c.R)
	return nil
}

func getOpenAPI(c *request.Call) error {
	c.Write(http.StatusOK, "application/yaml", schemas.OpenAPI())
	return nil
}

func getOpenAPIAsJSON(c *request.Call) error {
	contract, err := openapi.Load()
	if err != nil {
		return err
	}
	c.Write(http.StatusOK, openapi.JSON, contract.JSON())
	return nil
}

// migratedTo is the version of the database's schema. goose keeps it in a
// table of its own, which no query file knows.
func migratedTo(ctx context.Context, db postgres.Begins) (int64, error) {
	const query = "SELECT coalesce(max(g.version_id), 0)::bigint FROM goose_db_version g WHERE g.is_applied"
	var version int64
	err := postgres.InTx(ctx, db, postgres.Admin(), func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, query).Scan(&version)
	})
	return version, err
}
