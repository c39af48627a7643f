package catalog_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/tenanttest"
)

// fixture is a tenant with one source, src, that has the tool act.
type fixture struct{ tenanttest.Fixture }

func newFixture(t testing.TB) fixture {
	t.Helper()
	return fixture{tenanttest.New(t)}
}

func (s fixture) snapshot() *catalog.Catalog {
	s.T.Helper()
	var snap *catalog.Catalog
	s.Must(func(ctx context.Context, tx pgx.Tx) (err error) {
		snap, err = catalog.Load(ctx, tx, s.Tenant)
		return err
	})
	return snap
}

func (s fixture) act() *catalog.Tool {
	s.T.Helper()
	found, ok := s.snapshot().Tool(policy.Key{Source: "src", Action: "act"})
	if !ok {
		s.T.Fatal("the tool act is gone")
	}
	return found
}
