package connection_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/tenant/tenanttest"
)

// fixture is a tenant with a cache of its settings.
type fixture struct {
	tenanttest.Fixture
	cache *settings.Cache
}

func newFixture(t testing.TB) fixture {
	t.Helper()
	return fixture{tenanttest.New(t), settings.NewCache()}
}

func (s fixture) mode(automation, pattern string, mode envelope.Mode) {
	s.T.Helper()
	s.Must(func(ctx context.Context, tx pgx.Tx) error {
		return settings.PutMode(ctx, tx, s.Tenant, automation, pattern, mode, "ada")
	})
}

func (s fixture) snapshot() *settings.Settings {
	s.T.Helper()
	var snap *settings.Settings
	s.Must(func(ctx context.Context, tx pgx.Tx) (err error) {
		snap, err = s.cache.Current(ctx, tx, s.Tenant)
		return err
	})
	return snap
}
