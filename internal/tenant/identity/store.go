package identity

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// NewTenant makes a tenant without any source, rule or token. It needs a
// transaction of the scope postgres.Admin. A name that is taken is
// fault.Conflict, one that breaks the rules fault.Invalid.
func NewTenant(ctx context.Context, tx pgx.Tx, name string) (envelope.TenantID, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return envelope.TenantID{}, err
	}
	return envelope.TenantID(id), violations.Fault(dbsqlc.New().TenantInsert(ctx, tx, &dbsqlc.TenantInsertParams{TenantID: id, Name: name}))
}

// TenantByName finds a tenant, in a transaction of the scope postgres.Admin.
// One that is not there is fault.NotFound.
func TenantByName(ctx context.Context, tx pgx.Tx, name string) (envelope.TenantID, error) {
	id, err := dbsqlc.New().TenantByName(ctx, tx, name)
	return envelope.TenantID(id), postgres.Found(err, fault.New(fault.NotFound, "no tenant of that name"))
}

// TenantName is what a tenant is called, in a transaction of its scope.
func TenantName(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (string, error) {
	return dbsqlc.New().TenantName(ctx, tx, uuid.UUID(tenant))
}
