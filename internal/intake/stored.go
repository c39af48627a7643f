package intake

import (
	"bytes"
	"context"
	"crypto/sha256"
	"slices"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/policy"
)

// maxStored bounds what a process remembers of each kind; past it, it starts
// afresh.
const maxStored = 100_000

// stored remembers which decisions the database has already, so that a batch
// writes only new ones. It learns of one when the transaction that wrote it is
// committed.
type stored struct {
	mu        sync.RWMutex
	decisions map[decisionKey]bool
	ids       map[string]uuid.UUID
}

type decisionKey struct {
	tenant envelope.TenantID
	id     uuid.UUID
}

// decision is what policy said, with the id that it is stored under.
type decision struct {
	policy.Decision
	id uuid.UUID
}

func newStored() *stored {
	return &stored{
		decisions: make(map[decisionKey]bool), ids: make(map[string]uuid.UUID),
	}
}

// learn takes note of decisions that are committed.
func (s *stored) learn(tenant envelope.TenantID, decisions []decision) {
	if len(decisions) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.decisions)+len(s.ids) > maxStored {
		clear(s.decisions)
		clear(s.ids)
	}
	for _, d := range decisions {
		s.decisions[decisionKey{tenant, d.id}] = true
		s.ids[content(d.Decision)] = d.id
	}
}

// fillDecisions gives every row the id of its decision and writes the
// decisions that are new. It returns those.
func (s *stored) fillDecisions(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, rows []row) ([]decision, error) {
	seen := make(map[uuid.UUID]bool)
	var missing []decision
	s.mu.RLock()
	for i := range rows {
		d := &rows[i].decision
		key := content(d.Decision)
		id, ok := s.ids[key]
		if !ok {
			sum := sha256.Sum256([]byte(key))
			id = uuid.UUID(sum[:16])
		}
		d.id = id
		if !s.decisions[decisionKey{tenant, id}] && !seen[id] {
			seen[id] = true
			missing = append(missing, *d)
		}
	}
	s.mu.RUnlock()
	if len(missing) == 0 {
		return nil, nil
	}
	// In one order everywhere, so that two processes cannot deadlock.
	slices.SortFunc(missing, func(a, b decision) int { return bytes.Compare(a.id[:], b.id[:]) })
	return missing, insertDecisions(ctx, tx, tenant, missing)
}

func content(d policy.Decision) string {
	return string(d.Mode) + "\x00" + d.Source + "\x00" + string(d.TraceJSON)
}
