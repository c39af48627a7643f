package connect_test

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
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// fixture is a tenant with one source, src, that has the tool act.
type fixture struct {
	t      testing.TB
	db     postgres.Begins
	tenant envelope.TenantID
	cache  *settings.Cache
}

func newFixture(t testing.TB) fixture {
	t.Helper()
	s := fixture{t: t, db: dbtest.Tx(t), tenant: envelope.TenantID(uuid.Must(uuid.NewV7())), cache: settings.NewCache()}
	if err := postgres.InTx(t.Context(), s.db, postgres.Admin(), func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "INSERT INTO tenants (tenant_id, name) VALUES ($1, $2)", s.tenant.String(), "t-"+s.tenant.String())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	s.put(builtin("src"))
	s.list("src", tool("act"))
	return s
}

func builtin(id string) catalog.Source {
	return catalog.Source{ID: id, Kind: catalog.KindBuiltin, Enabled: true}
}

func tool(name string) source.Tool {
	return source.Tool{Name: name, Title: "Act", Description: "Acts.", InputSchema: json.RawMessage(`{"type":"object"}`)}
}

// try makes a change as the tenant.
func (s fixture) try(fn func(ctx context.Context, tx pgx.Tx) error) error {
	return postgres.InTx(s.t.Context(), s.db, postgres.API(s.tenant), func(tx pgx.Tx) error { return fn(s.t.Context(), tx) })
}

func (s fixture) must(fn func(ctx context.Context, tx pgx.Tx) error) {
	s.t.Helper()
	if err := s.try(fn); err != nil {
		s.t.Fatal(err)
	}
}

func (s fixture) put(src catalog.Source) {
	s.t.Helper()
	s.must(func(ctx context.Context, tx pgx.Tx) error { return catalog.PutSource(ctx, tx, s.tenant, src) })
}

func (s fixture) list(source string, tools ...source.Tool) {
	s.t.Helper()
	s.must(func(ctx context.Context, tx pgx.Tx) error {
		return catalog.PutListing(ctx, tx, s.tenant, source, tools)
	})
}

func (s fixture) mode(automation, pattern string, mode envelope.Mode) {
	s.t.Helper()
	s.must(func(ctx context.Context, tx pgx.Tx) error {
		return settings.PutMode(ctx, tx, s.tenant, automation, pattern, mode, "ada")
	})
}

func (s fixture) snapshot() *settings.Settings {
	s.t.Helper()
	var snap *settings.Settings
	s.must(func(ctx context.Context, tx pgx.Tx) (err error) {
		snap, err = s.cache.Current(ctx, tx, s.tenant)
		return err
	})
	return snap
}
