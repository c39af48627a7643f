package settings

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// Cache holds the latest settings of each tenant. It never returns an older
// version than requested, so it needs no expiry: the version is read with the
// work itself. It is safe for concurrent use.
type Cache struct {
	mu    sync.RWMutex
	known map[envelope.TenantID]*Settings
	// language is created when first needed, and shared by all tenants.
	language func() (*policy.Language, error)
}

// NewCache returns an empty cache.
func NewCache() *Cache {
	return &Cache{known: make(map[envelope.TenantID]*Settings), language: sync.OnceValues(policy.NewLanguage)}
}

// At returns the tenant's settings of the given version or a newer one, reading
// them through tx if necessary.
func (c *Cache) At(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, version int64) (*Settings, error) {
	c.mu.RLock()
	snap := c.known[tenant]
	c.mu.RUnlock()
	if snap != nil && snap.Version >= version {
		return snap, nil
	}
	snap, err := load(ctx, tx, tenant, c.language)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.known[tenant]; old == nil || old.Version < snap.Version {
		c.known[tenant] = snap
	}
	return snap, nil
}

// Known returns the tenant's cached settings, which may be outdated, or nil.
func (c *Cache) Known(tenant envelope.TenantID) *Settings {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.known[tenant]
}

// Current returns the tenant's current settings.
func (c *Cache) Current(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (*Settings, error) {
	snap, _, err := c.CurrentAndState(ctx, tx, tenant)
	return snap, err
}

// CurrentAndState returns the tenant's current settings, and its state, whose
// clock determines which parts of the settings have expired.
func (c *Cache) CurrentAndState(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (*Settings, State, error) {
	states, err := States(ctx, tx, []envelope.TenantID{tenant})
	if err != nil {
		return nil, State{}, err
	}
	snap, err := c.At(ctx, tx, tenant, states[tenant].Version)
	return snap, states[tenant], err
}
