package decision

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// Insert stores those decisions of a tenant, under their ids, that are new.
func Insert(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, decisions ...policy.Decision) error {
	// In one order everywhere, so that two transactions cannot deadlock.
	slices.SortFunc(decisions, func(a, b policy.Decision) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	p := &dbsqlc.DecisionInsertManyParams{TenantID: uuid.UUID(tenant)}
	for i, d := range decisions {
		if i > 0 && d.ID == decisions[i-1].ID {
			continue
		}
		p.DecisionIds, p.Modes = append(p.DecisionIds, d.ID), append(p.Modes, string(d.Mode))
		p.ModeSources, p.Traces = append(p.ModeSources, d.Source), append(p.Traces, d.TraceJSON)
	}
	return dbsqlc.New().DecisionInsertMany(ctx, tx, p)
}

// maxCached is the number of decisions after which a Cache is emptied.
const maxCached = 100_000

// Cache holds the decisions that the database has already, so that a batch
// writes only new ones. The zero value is empty. It is safe for concurrent use.
type Cache struct {
	mu     sync.RWMutex
	stored map[cacheKey]bool
}

type cacheKey struct {
	tenant envelope.TenantID
	id     uuid.UUID
}

// Add adds decisions whose transaction was committed.
func (c *Cache) Add(tenant envelope.TenantID, decisions []policy.Decision) {
	if len(decisions) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stored == nil || len(c.stored) > maxCached {
		c.stored = make(map[cacheKey]bool)
	}
	for _, d := range decisions {
		c.stored[cacheKey{tenant, d.ID}] = true
	}
}

// Insert stores the decisions that the cache does not hold, and returns them for
// Add.
func (c *Cache) Insert(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, decisions []policy.Decision) ([]policy.Decision, error) {
	var missing []policy.Decision
	c.mu.RLock()
	for _, d := range decisions {
		if !c.stored[cacheKey{tenant, d.ID}] {
			missing = append(missing, d)
		}
	}
	c.mu.RUnlock()
	if len(missing) == 0 {
		return nil, nil
	}
	return missing, Insert(ctx, tx, tenant, missing...)
}
