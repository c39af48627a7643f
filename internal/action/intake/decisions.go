package intake

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// maxCachedDecisions bounds what a process remembers; past it, it starts afresh.
const maxCachedDecisions = 100_000

// decisionCache remembers which decisions the database has already, so that a batch
// writes only new ones. It learns of one when the transaction that wrote it is
// committed.
type decisionCache struct {
	mu        sync.RWMutex
	decisions map[decisionKey]bool
}

type decisionKey struct {
	tenant envelope.TenantID
	id     uuid.UUID
}

func newDecisionCache() *decisionCache {
	return &decisionCache{decisions: make(map[decisionKey]bool)}
}

// add takes note of decisions that are committed.
func (s *decisionCache) add(tenant envelope.TenantID, decisions []policy.Decision) {
	if len(decisions) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.decisions) > maxCachedDecisions {
		clear(s.decisions)
	}
	for _, d := range decisions {
		s.decisions[decisionKey{tenant, d.ID}] = true
	}
}

// insertMissing writes the decisions that are new. It returns those.
func (s *decisionCache) insertMissing(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, rows []row) ([]policy.Decision, error) {
	seen := make(map[uuid.UUID]bool)
	var missing []policy.Decision
	s.mu.RLock()
	for i := range rows {
		d := rows[i].decision
		if !s.decisions[decisionKey{tenant, d.ID}] && !seen[d.ID] {
			seen[d.ID] = true
			missing = append(missing, d)
		}
	}
	s.mu.RUnlock()
	if len(missing) == 0 {
		return nil, nil
	}
	// In one order everywhere, so that two processes cannot deadlock.
	slices.SortFunc(missing, func(a, b policy.Decision) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return missing, insertDecisions(ctx, tx, tenant, missing)
}
