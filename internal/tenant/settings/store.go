package settings

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// State is what a claim needs to know of a tenant before anything else.
type State struct {
	// Version is that of its catalog, policy and limits.
	Version int64
	// BreakerOpen says that a breaker of the tenant is not closed.
	BreakerOpen bool
	// Now is the database's clock, as of the transaction's start.
	Now time.Time
}

// States returns the current state of each tenant that exists.
func States(ctx context.Context, tx pgx.Tx, tenants []envelope.TenantID) (map[envelope.TenantID]State, error) {
	ids := make([]uuid.UUID, len(tenants))
	for i, t := range tenants {
		ids[i] = uuid.UUID(t)
	}
	rows, err := dbsqlc.New().TenantVersions(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	states := make(map[envelope.TenantID]State, len(rows))
	for _, r := range rows {
		states[envelope.TenantID(r.TenantID)] = State{r.ConfigVersion, r.BreakerOpen, r.Now}
	}
	return states, nil
}

// load reads a tenant's settings. The version is read first: if something
// changes in between, the settings are newer than their version, and are only
// read again too often.
func load(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, language func() (*policy.Language, error)) (*Settings, error) {
	versions, err := dbsqlc.New().TenantVersions(ctx, tx, []uuid.UUID{uuid.UUID(tenant)})
	if err != nil {
		return nil, err
	}
	if len(versions) == 0 {
		return nil, fault.New(fault.NotFound, "no tenant %s", tenant)
	}
	s := &Settings{Tenant: tenant, Version: versions[0].ConfigVersion, automations: make(map[string]policy.Rules), decider: policy.NewDecider()}
	if s.Limits, err = limits.Load(ctx, tx, tenant); err != nil {
		return nil, fmt.Errorf("limits: %w", err)
	}
	if s.Catalog, err = catalog.Load(ctx, tx, tenant); err != nil {
		return nil, fmt.Errorf("catalog: %w", err)
	}
	if err := s.loadPolicy(ctx, tx, language); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	if err := s.loadSubscriptions(ctx, tx); err != nil {
		return nil, fmt.Errorf("subscriptions: %w", err)
	}
	return s, nil
}
