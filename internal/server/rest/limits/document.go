// Package limits handles requests about limits: buckets, quiet hours, the do-not-contact
// list, employees, pauses, breakers and settings.
package limits

import (
	"context"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/server/openapi"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

// GET /api/v1/settings shows the tenant's settings.
func Settings(c *request.Call) error {
	var settings limits.Tenant
	err := c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		var err error
		settings, err = limits.TenantOf(ctx, tx, c.By.Tenant)
		return err
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, settings)
}

// PUT /api/v1/settings sets the tenant's settings.
func PutSettings(c *request.Call) error {
	var settings limits.Tenant
	if err := c.Decode(&settings); err != nil {
		return err
	}
	return c.Change(func(ctx context.Context, tx pgx.Tx) error {
		return limits.PutTenant(ctx, tx, c.By.Tenant, settings, c.By.Name)
	})
}

// GET /api/v1/limits shows all limits as one document.
func Get(c *request.Call) error {
	var doc limits.Document
	err := c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		var err error
		doc, err = limits.Export(ctx, tx, c.By.Tenant)
		return err
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, doc)
}

// PUT /api/v1/limits replaces the limits by a document, or answers what would
// change with dry_run.
func Put(c *request.Call) error {
	var doc limits.Document
	if err := c.Decode(&doc); err != nil {
		return err
	}
	dry := c.Query.Get("dry_run") == "true"
	changes := []limits.Change{}
	err := c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		made, err := limits.Apply(ctx, tx, c.By.Tenant, doc, c.By.Name, dry)
		changes = append(changes[:0], made...)
		return err
	})
	if err != nil {
		return err
	}
	if !dry {
		c.Wake()
	}
	return c.JSON(http.StatusOK, struct {
		DryRun  bool            `json:"dry_run"`
		Changes []limits.Change `json:"changes"`
	}{dry, changes})
}

// CheckDocument checks a document of limits, in JSON, against openapi.yaml and
// the rules of each setting say, as the API does. The error is an
// *envelope.InvalidError whose pointers lead into the document.
func CheckDocument(text []byte) error {
	contract, err := openapi.Load()
	if err != nil {
		return err
	}
	op, err := contract.Operation("putLimits")
	if err != nil {
		return err
	}
	if err := op.CheckBody(text); err != nil {
		return err
	}
	var doc limits.Document
	if err := request.Decode(text, &doc); err != nil {
		return err
	}
	return doc.Validate()
}
