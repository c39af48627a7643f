// Package limits handles requests about limits: buckets, quiet hours, the
// do-not-contact list, employees, pauses, breakers and settings.
package limits

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/document"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

// tenantSettings is the tenant's settings, as a collection of one.
var tenantSettings = request.Collection[limits.Tenant]{
	Name: "settings", Noun: "settings",
	Read: func(ctx context.Context, tx pgx.Tx, c *request.Call) ([]limits.Tenant, error) {
		settings, err := limits.TenantOf(ctx, tx, c.By.Tenant)
		return []limits.Tenant{settings}, err
	},
	Key: func(limits.Tenant) string { return "" },
}

// Settings handles GET /api/v1/settings. It shows the tenant's settings.
func Settings(c *request.Call) error { return tenantSettings.Show(c, "") }

// PutSettings handles PUT /api/v1/settings. It sets the tenant's settings.
func PutSettings(c *request.Call, settings limits.Tenant) error {
	return tenantSettings.Put(c, "", "", func(ctx context.Context, tx pgx.Tx) error {
		return limits.PutTenant(ctx, tx, c.By.Tenant, settings, c.By.Actor())
	})
}

// Get handles GET /api/v1/limits. It shows all limits as one document.
func Get(c *request.Call) error { return request.Show(c, limits.Export) }

// Put handles PUT /api/v1/limits. It replaces the limits by a document; with
// dry_run it returns the changes without making them.
func Put(c *request.Call, doc limits.Document) error {
	return request.PutDocument(c, limits.Export, func(ctx context.Context, tx pgx.Tx, dry bool) ([]document.Change, error) {
		return limits.Apply(ctx, tx, c.By.Tenant, doc, c.By.Actor(), dry)
	})
}

// CheckDocument checks a document of limits, in JSON, as the API does.
func CheckDocument(text []byte) error {
	return request.CheckDocument[limits.Document]("putLimits", text)
}
