package intake

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
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

// stored remembers which small rows the database has already, buckets and
// decisions, so that a batch writes only new ones. It learns of a row when
// the transaction that wrote it is committed.
type stored struct {
	mu        sync.RWMutex
	buckets   map[bucketKey]int64
	decisions map[decisionKey]bool
	ids       map[string]uuid.UUID
}

type bucketKey struct {
	tenant envelope.TenantID
	name   string
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
		buckets: make(map[bucketKey]int64), decisions: make(map[decisionKey]bool), ids: make(map[string]uuid.UUID),
	}
}

// learn takes note of rows that are committed.
func (s *stored) learn(tenant envelope.TenantID, buckets map[string]int64, decisions []decision) {
	if len(buckets) == 0 && len(decisions) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.buckets)+len(s.decisions)+len(s.ids) > maxStored {
		clear(s.buckets)
		clear(s.decisions)
		clear(s.ids)
	}
	for name, id := range buckets {
		s.buckets[bucketKey{tenant, name}] = id
	}
	for _, d := range decisions {
		s.decisions[decisionKey{tenant, d.id}] = true
		s.ids[content(d.Decision)] = d.id
	}
}

// fillBuckets finds the bucket of every row, making those that are new. It
// returns the ones that it had to ask for.
func (s *stored) fillBuckets(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, rows []row) (map[string]int64, error) {
	missing := make(map[string]bool)
	s.mu.RLock()
	for i := range rows {
		name := rows[i].bucketName()
		id, ok := s.buckets[bucketKey{tenant, name}]
		rows[i].bucket = id
		if !ok {
			missing[name] = true
		}
	}
	s.mu.RUnlock()
	if len(missing) == 0 {
		return nil, nil
	}
	ids, err := ensureBuckets(ctx, tx, tenant, missing)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		if rows[i].bucket == 0 {
			if rows[i].bucket = ids[rows[i].bucketName()]; rows[i].bucket == 0 {
				return nil, errors.New("bucket was made and not found")
			}
		}
	}
	return ids, nil
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
