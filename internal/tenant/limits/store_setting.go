package limits

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// PutTenant stores a tenant's own settings.
func PutTenant(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, t Tenant, by string) error {
	return change(ctx, tx, tenant, by, func(d *editor) error { return d.putTenant(ctx, t) })
}

// PutQuietHours stores the quiet hours of a scope and subject, instead of
// those that were there.
func PutQuietHours(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, h QuietHours, by string) error {
	return change(ctx, tx, tenant, by, func(d *editor) error { return d.putQuiet(ctx, h, by) })
}

// DeleteQuietHours removes the quiet hours of a scope and subject; if there
// are none, that is fault.NotFound.
func DeleteQuietHours(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, scope QuietScope, subject, by string) error {
	return change(ctx, tx, tenant, by, func(d *editor) error { return d.dropQuiet(ctx, scope, subject) })
}

// PutEmployee stores an employee's trust and scopes. It holds for envelopes
// that wait already.
func PutEmployee(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, e Employee, by string) error {
	return change(ctx, tx, tenant, by, func(d *editor) error { return d.putEmployee(ctx, e, by) })
}

// DeleteEmployee removes an employee's entry, so that the default one holds;
// if there is none, that is fault.NotFound.
func DeleteEmployee(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id envelope.EmployeeID, by string) error {
	return change(ctx, tx, tenant, by, func(d *editor) error { return d.dropEmployee(ctx, id) })
}

// PutToolRule stores what an operator says about a tool, instead of what was
// said; an empty rule leaves all to the defaults again. It holds for envelopes
// that wait already, except for the number of attempts.
func PutToolRule(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, r ToolRule, by string) error {
	return change(ctx, tx, tenant, by, func(d *editor) error { return d.putRule(ctx, r) })
}

func ruleParams(tenant envelope.TenantID, r ToolRule) *dbsqlc.ToolRulePutParams {
	p := &dbsqlc.ToolRulePutParams{
		TenantID: uuid.UUID(tenant), SourceID: r.Source, Name: r.Name, Scopes: r.Scopes, RetryJitter: r.Retry.Jitter,
	}
	if r.Recipients != nil {
		// An empty list says that it addresses nobody; nil would be NULL.
		p.Recipients = append([]string{}, *r.Recipients...)
	}
	if r.Retry.MaxAttempts != 0 {
		p.MaxAttempts = new(int32(r.Retry.MaxAttempts))
	}
	if r.Retry.Base != 0 {
		p.RetryBaseSeconds = new(r.Retry.Base.Seconds())
	}
	if r.Retry.Cap != 0 {
		p.RetryCapSeconds = new(r.Retry.Cap.Seconds())
	}
	return p
}
