package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/catalog"
	"github.com/countersign-dev/countersign/internal/executor"
	"github.com/countersign-dev/countersign/internal/identity"
	"github.com/countersign-dev/countersign/internal/policy"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// sourceID is the counting server in the tenant's catalog.
const sourceID = "tally"

// newTenant makes a tenant whose only source is the counting server, with the
// tool of the class under test, and everything allowed.
func newTenant(ctx context.Context, pool *pgxpool.Pool, cache *catalog.Cache, url string, effect envelope.Effect) (envelope.TenantID, error) {
	config, err := json.Marshal(catalog.MCPConfig{Transport: "http", URL: url + "/mcp"})
	if err != nil {
		return envelope.TenantID{}, err //nolint:wrapcheck // cannot happen
	}
	var tenant envelope.TenantID
	err = postgres.InTx(ctx, pool, postgres.Admin(), func(tx pgx.Tx) error {
		var err error
		name := fmt.Sprintf("chaos-%s-%d", effect, time.Now().UnixMilli())
		tenant, err = identity.NewTenant(ctx, tx, name)
		return err
	})
	if err != nil {
		return tenant, fmt.Errorf("make tenant: %w", err)
	}
	err = postgres.InTx(ctx, pool, postgres.API(tenant), func(tx pgx.Tx) error {
		return catalog.PutSource(ctx, tx, tenant, catalog.Source{ID: sourceID, Kind: catalog.KindMCP, Config: config, Enabled: true})
	})
	if err != nil {
		return tenant, fmt.Errorf("put source: %w", err)
	}
	log := slog.New(slog.DiscardHandler)
	live := catalog.NewLive(catalog.Vault{}, executor.BreakerConfig{}, log, nil)
	defer live.Close()
	if err := catalog.NewRefresher(pool, cache, live, log).Refresh(ctx, tenant, sourceID); err != nil {
		return tenant, fmt.Errorf("list tools: %w", err)
	}
	err = postgres.InTx(ctx, pool, postgres.API(tenant), func(tx pgx.Tx) error {
		key := policy.Key{Source: sourceID, Action: toolOf(effect)}
		if err := catalog.ConfigureTool(ctx, tx, tenant, key, catalog.Overrides{Effect: effect}); err != nil {
			return err //nolint:wrapcheck // wrapped below
		}
		return catalog.PutMode(ctx, tx, tenant, "", "*", envelope.ModeAllow, "chaos")
	})
	if err != nil {
		return tenant, fmt.Errorf("configure tool: %w", err)
	}
	return tenant, nil
}

func toolOf(effect envelope.Effect) string {
	if effect == envelope.EffectKeyed {
		return toolKeyed
	}
	return toolOnce
}
