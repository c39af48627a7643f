// Package tenanttest owns the fixture of tests that need a tenant with a source
// and its tools in the database.
package tenanttest

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
)

// Fixture is a tenant with one source, src, that has the tool act.
type Fixture struct {
	T      testing.TB
	DB     postgres.Begins
	Tenant envelope.TenantID
}

// New creates a tenant in a transaction that is rolled back after the test.
func New(t testing.TB) Fixture {
	t.Helper()
	f := Fixture{T: t, DB: dbtest.Tx(t), Tenant: envelope.TenantID(uuid.Must(uuid.NewV7()))}
	f.Exec("INSERT INTO tenants (tenant_id, name) VALUES ($1, $2)", f.Tenant.String(), "t-"+f.Tenant.String())
	f.Put(Builtin("src"))
	f.List("src", Tool("act"))
	return f
}

// Builtin returns an enabled source.
func Builtin(id string) catalog.Source {
	return catalog.Source{ID: id, Kind: catalog.KindBuiltin, Enabled: true}
}

// Tool returns a tool that takes any arguments.
func Tool(name string) source.Tool {
	return source.Tool{Name: name, Title: "Act", Description: "Acts.", InputSchema: json.RawMessage(`{"type":"object"}`)}
}

// Exec runs a statement as the connection's own user.
func (f Fixture) Exec(sql string, args ...any) {
	f.T.Helper()
	err := postgres.InTx(f.T.Context(), f.DB, postgres.Admin(), func(tx pgx.Tx) error {
		_, err := tx.Exec(f.T.Context(), sql, args...)
		return err
	})
	if err != nil {
		f.T.Fatal(err)
	}
}

// Try calls fn in a transaction of the tenant's scope.
func (f Fixture) Try(fn func(ctx context.Context, tx pgx.Tx) error) error {
	return postgres.InTx(f.T.Context(), f.DB, postgres.API(f.Tenant), func(tx pgx.Tx) error { return fn(f.T.Context(), tx) })
}

// Must is Try that fails the test on an error.
func (f Fixture) Must(fn func(ctx context.Context, tx pgx.Tx) error) {
	f.T.Helper()
	if err := f.Try(fn); err != nil {
		f.T.Fatal(err)
	}
}

// Put stores a source.
func (f Fixture) Put(src catalog.Source) {
	f.T.Helper()
	f.Must(func(ctx context.Context, tx pgx.Tx) error { return catalog.PutSource(ctx, tx, f.Tenant, src) })
}

// List stores a listing of a source.
func (f Fixture) List(source string, tools ...source.Tool) {
	f.T.Helper()
	f.Must(func(ctx context.Context, tx pgx.Tx) error {
		return catalog.PutListing(ctx, tx, f.Tenant, source, tools)
	})
}

// Person stores an operator with an id and the role operator, unless there is
// one.
func Person(t testing.TB, db postgres.Begins, tenant envelope.TenantID, id uuid.UUID, name string) {
	t.Helper()
	const insert = "INSERT INTO operators (tenant_id, operator_id, name, role_set) VALUES ($1, $2, $3, 'operator') ON CONFLICT DO NOTHING"
	Fixture{T: t, DB: db, Tenant: tenant}.Exec(insert, tenant.String(), id.String(), name)
}
