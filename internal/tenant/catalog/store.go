package catalog

import (
	"context"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// Load reads a tenant's sources and tools.
func Load(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (*Catalog, error) {
	q, id := dbsqlc.New(), uuid.UUID(tenant)
	c := &Catalog{
		sources: make(map[string]Source), tools: make(map[policy.Key]*Tool), named: make(map[string][]*Tool),
	}
	sources, err := q.SourceList(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	for _, r := range sources {
		c.sources[r.SourceID] = sourceFromRow(r)
	}
	tools, err := q.ToolList(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	for _, r := range tools {
		t, err := toolFromRow(r, c.sources[r.SourceID])
		if err != nil {
			return nil, err
		}
		if c.sources[r.SourceID].Kind == KindWebhook {
			t.extendRetries(r.MaxAttempts != 0)
		}
		c.tools[t.Key] = t
		for _, name := range []string{r.Name, t.FullName.String()} {
			c.named[name] = append(c.named[name], t)
		}
	}
	c.index = sync.OnceValue(func() *index { return newIndex(c.tools) })
	c.snapshotRules, err = SnapshotRules(ctx, tx, tenant)
	return c, err
}
