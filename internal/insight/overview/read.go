package overview

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// The tables that are counted.
const (
	outboxTable      = "outbox"
	deadLettersTable = "dead_letters"
)

// busiestTables are those whose size and dead rows matter.
func busiestTables() []string {
	return []string{outboxTable, deadLettersTable, "actions", "buckets", "decisions", "events", "river_job", "tool_executions"}
}

// Get reads the state of a tenant. The transaction is of the tenant's scope,
// which confines it to the tenant's rows.
func Get(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (Overview, error) {
	r := reading{pages: tenantPages, tenant: true}
	if err := r.read(ctx, tx, outboxTable, deadLettersTable); err != nil {
		return Overview{}, fmt.Errorf("overview of tenant %s: %w", tenant, err)
	}
	buckets, err := readBuckets(ctx, tx, r.counts.fullest(mostBuckets, mostBuckets), mostBuckets)
	if err != nil {
		return Overview{}, fmt.Errorf("overview of tenant %s: buckets: %w", tenant, err)
	}
	throughput, err := readThroughput(ctx, tx, tenant)
	if err != nil {
		return Overview{}, fmt.Errorf("overview of tenant %s: throughput: %w", tenant, err)
	}
	return Overview{
		At: r.at, Estimated: r.estimated, Backlog: r.counts.Backlog,
		Waiting: r.counts.waiting(r.approvals), Buckets: r.counts.filled(buckets, r.pauses), Breakers: r.breakers, Pauses: r.pauses,
		Approvals: r.approvals, DeadLetters: r.deadLetters, Throughput: throughput,
	}, nil
}

// reading is what is read for a tenant and for the fleet alike.
type reading struct {
	// pages bounds how much of a table is read; tenant is set if the
	// transaction sees one tenant's rows only.
	pages  int64
	tenant bool

	at          time.Time
	tables      []Table
	estimated   bool
	counts      counts
	breakers    []Breaker
	pauses      []Pause
	approvals   Approvals
	deadLetters []DeadLetters
}

func (r *reading) read(ctx context.Context, tx pgx.Tx, tables ...string) (err error) {
	if r.tables, err = readTables(ctx, tx, tables...); err != nil {
		return fmt.Errorf("sizes of tables: %w", err)
	}
	if r.pauses, err = readPauses(ctx, tx); err != nil {
		return fmt.Errorf("pauses: %w", err)
	}
	groups, estimated, err := readWaiting(ctx, tx, r.sampling(outboxTable))
	if err != nil {
		return fmt.Errorf("what waits: %w", err)
	}
	r.counts, r.estimated = count(groups, r.pauses), estimated
	if r.breakers, err = readBreakers(ctx, tx); err != nil {
		return fmt.Errorf("breakers: %w", err)
	}
	if r.approvals, r.at, err = readApprovals(ctx, tx); err != nil {
		return fmt.Errorf("approvals: %w", err)
	}
	if r.deadLetters, err = readDeadLetters(ctx, tx, r.sampling(deadLettersTable)); err != nil {
		return fmt.Errorf("dead letters: %w", err)
	}
	return nil
}

func (r *reading) sampling(name string) sampling {
	for _, t := range r.tables {
		if t.Name == name {
			return samplingOf(t, r.pages, r.tenant)
		}
	}
	return sampling{percent: 100} // it has no pages yet
}

// readTimeout bounds a reading of the fleet.
const readTimeout = 5 * time.Second

// Reader returns a function for Observe that reads the state of the fleet.
func Reader(db postgres.Begins) func(ctx context.Context) (Fleet, error) {
	return func(ctx context.Context) (Fleet, error) {
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		var f Fleet
		err := postgres.InTx(ctx, db, postgres.Worker(), func(tx pgx.Tx) (err error) {
			f, err = GetFleet(ctx, tx)
			return err
		})
		return f, err
	}
}

// GetFleet reads the state of the whole fleet, in a transaction of the worker's
// scope. Of buckets it names up to 100 with limits and the 20 fullest others;
// what waits in further ones is summed up as "(others)".
func GetFleet(ctx context.Context, tx pgx.Tx) (Fleet, error) {
	r := reading{pages: fleetPages}
	if err := r.read(ctx, tx, busiestTables()...); err != nil {
		return Fleet{}, fmt.Errorf("overview of the fleet: %w", err)
	}
	ids := r.counts.fullest(mostLimited, mostFull)
	buckets, err := readBuckets(ctx, tx, ids, mostLimited+mostFull)
	if err != nil {
		return Fleet{}, fmt.Errorf("overview of the fleet: buckets: %w", err)
	}
	if r.estimated {
		// The action that is due for longest may be in no page that was read.
		// If there are more buckets than are probed, each reading probes others.
		starts := append(ids, 0)
		oldest, err := readOldest(ctx, tx, starts[rand.IntN(len(starts))])
		if err != nil {
			return Fleet{}, fmt.Errorf("overview of the fleet: oldest: %w", err)
		}
		r.counts.OldestDue = max(r.counts.OldestDue, oldest)
	}
	lag, err := readCheckpointLag(ctx, tx)
	if err != nil {
		return Fleet{}, fmt.Errorf("overview of the fleet: checkpoints: %w", err)
	}
	past, err := readPastRetention(ctx, tx)
	if err != nil {
		return Fleet{}, fmt.Errorf("overview of the fleet: retention: %w", err)
	}
	f := r.fleet(buckets)
	f.CheckpointLag, f.PastRetention = lag, past
	return f, nil
}

// others is the name under which buckets are summed up; no bucket can have it.
const others = "(others)"

// fleet returns a reading as that of the fleet. Maps have every key that is
// known in advance, so that a gauge falls to 0 and does not vanish.
func (r *reading) fleet(buckets []Bucket) Fleet {
	f := Fleet{
		Backlog: r.counts.Backlog, Buckets: r.counts.filled(buckets, r.pauses), Breakers: r.breakers, Tables: r.tables,
		Waiting:     map[string]int64{reasonTurn: 0, "retry": 0, "quiet_hours": 0, reasonPaused: 0, "breaker_open": 0, "bucket": 0, reasonApproval: 0, "not_before": 0},
		Pauses:      map[string]int64{"everything": 0, "tenant": 0, "employee": 0, "source": 0, "bucket": 0, "tool": 0},
		DeadLetters: map[string]int64{"refused": 0, "exhausted": 0, "unknown": 0},
	}
	for _, w := range r.counts.waiting(r.approvals) {
		f.Waiting[w.Reason] = w.Envelopes
	}
	for _, p := range r.pauses {
		f.Pauses[p.Scope]++
	}
	for _, d := range r.deadLetters {
		f.DeadLetters[d.Reason] = d.Count
		if d.Reason == "unknown" {
			f.OldestUnknown = d.Oldest
		}
	}
	if rest := r.counts.rest(buckets); rest.Waiting > 0 {
		f.Buckets = append(f.Buckets, rest)
	}
	return f
}
