// Package limits handles requests about limits: buckets, quiet hours, the
// do-not-contact list, employees, pauses, breakers and settings.
package limits

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/server/openapi"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/document"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

// GET /api/v1/settings shows the tenant's settings.
func Settings(c *request.Call) error { return request.Show(c, limits.TenantOf) }

// PUT /api/v1/settings sets the tenant's settings.
func PutSettings(c *request.Call) error {
	var settings limits.Tenant
	if err := c.Decode(&settings); err != nil {
		return err
	}
	current := func(ctx context.Context, tx pgx.Tx) (any, error) { return limits.TenantOf(ctx, tx, c.By.Tenant) }
	return c.Change(func(ctx context.Context, tx pgx.Tx) error {
		if err := c.CheckMatch(ctx, tx, current); err != nil {
			return err
		}
		return limits.PutTenant(ctx, tx, c.By.Tenant, settings, c.By.Name)
	})
}

// GET /api/v1/limits shows all limits as one document.
func Get(c *request.Call) error { return request.Show(c, limits.Export) }

// PUT /api/v1/limits replaces the limits by a document, or answers what would
// change with dry_run.
func Put(c *request.Call) error {
	var doc limits.Document
	if err := c.Decode(&doc); err != nil {
		return err
	}
	return request.PutDocument(c, limits.Export, func(ctx context.Context, tx pgx.Tx, dry bool) ([]document.Change, error) {
		return limits.Apply(ctx, tx, c.By.Tenant, doc, c.By.Name, dry)
	})
}

// CheckDocument checks a document of limits, in JSON, against openapi.yaml and
// the rules of each setting, as the API does. The error is an
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
