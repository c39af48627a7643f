package route

import (
	"context"
	"net/http"
	"time"

	"github.com/countersign-dev/countersign/internal/server/openapi"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/schemas"
)

// probeTimeout bounds the duration of a probe.
const probeTimeout = 2 * time.Second

// health is the answer of a probe.
type health struct {
	Status string `json:"status"`
}

func getHealth(c *request.Call) error { return c.JSON(http.StatusOK, health{"ok"}) }

func getReadiness(c *request.Call) error {
	ctx, cancel := context.WithTimeout(c.R.Context(), probeTimeout)
	defer cancel()
	if err := c.Ready(ctx); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, health{"ok"})
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
