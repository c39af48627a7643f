package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/bench/chaos/counting"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source/connect"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// sourceID is the counting server in the tenant's catalog.
const sourceID = "counter"

// maxAttempts is more than any fault takes.
const maxAttempts = 20

// newTenant creates a tenant whose only source is the counting server, with the
// tools of the classes under test, and everything allowed.
func newTenant(ctx context.Context, pool *pgxpool.Pool, cache *settings.Cache, name, url string, classes []envelope.Effect) (tenant envelope.TenantID, err error) {
	config, err := json.Marshal(connect.MCPConfig{Transport: "http", URL: url + "/mcp"})
	if err != nil {
		return tenant, err
	}
	err = postgres.InTx(ctx, pool, postgres.Admin(), func(tx pgx.Tx) (err error) {
		if tenant, err = identity.NewTenant(ctx, tx, fmt.Sprintf("chaos-%s-%d", name, time.Now().UnixMilli())); err != nil {
			return err
		}
		for _, b := range buckets() {
			if err := limits.PutBucket(ctx, tx, tenant, b, "chaos"); err != nil {
				return err
			}
		}
		return catalog.PutSource(ctx, tx, tenant, catalog.Source{ID: sourceID, Kind: catalog.KindMCP, Config: config, Enabled: true})
	})
	if err != nil {
		return tenant, fmt.Errorf("create tenant: %w", err)
	}
	log := slog.New(slog.DiscardHandler)
	live := connect.NewPool(connect.Config{Networks: safehttp.Loopback()})
	defer live.Close()
	if err := connect.NewRefresher(pool, cache, live, log).Refresh(ctx, tenant, sourceID); err != nil {
		return tenant, fmt.Errorf("list tools: %w", err)
	}
	err = postgres.InTx(ctx, pool, postgres.Admin(), func(tx pgx.Tx) error {
		for _, effect := range classes {
			key := policy.Key{Source: sourceID, Action: toolOf(effect)}
			if err := catalog.ConfigureTool(ctx, tx, tenant, key, catalog.Overrides{Effect: effect, MaxAttempts: maxAttempts}); err != nil {
				return err
			}
		}
		return settings.PutMode(ctx, tx, tenant, "", "*", envelope.ModeAllow, "chaos")
	})
	if err != nil {
		return tenant, fmt.Errorf("configure tools: %w", err)
	}
	return tenant, nil
}

func toolOf(effect envelope.Effect) string {
	if effect == envelope.EffectKeyed {
		return counting.ToolKeyed
	}
	return counting.ToolOnce
}

// buckets are the buckets that the actions of each class are spread over: two
// without limits, one with a concurrency limit that leases of dead workers
// count towards, and one with a rate.
func buckets() []limits.Bucket {
	return []limits.Bucket{
		{Name: "bucket.0"},
		{Name: "bucket.1"},
		{Name: "bucket.2", Concurrency: 16},
		{Name: "bucket.3", Rate: &limits.Rate{Limit: 200, Per: envelope.Duration(time.Second), Burst: 50}},
	}
}

// bucketName returns the bucket of an action's number.
func bucketName(n int) string {
	all := buckets()
	return all[n/2%len(all)].Name
}
