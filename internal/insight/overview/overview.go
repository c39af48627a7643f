// Package overview reads the state of a tenant and of the whole fleet: waiting
// and in-flight actions, the limits that delay them, and the work for people. It
// owns the bounds that make a reading as cheap with a long queue as with a short
// one, and the gauges of the fleet.
//
// It changes nothing. It does not count large numbers exactly: beyond some
// thousands it estimates, and marks the estimates.
package overview

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// Fleet is the state of the whole fleet at one moment, with bounded lists: each
// element is a separate time series.
type Fleet struct {
	Backlog
	// Waiting counts actions by the reason for waiting.
	Waiting map[string]int64
	// Buckets are those with limits, the fullest others, and the sum of the
	// rest.
	Buckets []Bucket
	// Breakers are the circuit breakers that have ever opened.
	Breakers []Breaker
	// Pauses counts pauses by scope.
	Pauses map[string]int64
	// DeadLetters counts dead letters by reason. OldestUnknown is the age of the
	// oldest with an unknown outcome.
	DeadLetters   map[string]int64
	OldestUnknown time.Duration
	// CheckpointLag is the age of the oldest uncovered event.
	CheckpointLag time.Duration
	// Held reports whether nothing is claimed until a person recovers the database.
	Held bool
	// Proposals counts the waiting proposals in SQL, up to 10,000.
	// OldestProposal is the age of the oldest.
	Proposals      int64
	OldestProposal time.Duration
	// PastRetention counts rows older than their tenants' retention, by kind.
	PastRetention map[string]int64
	// Tables are the busiest tables.
	Tables []Table
}

// Backlog is the state of the outbox.
type Backlog struct {
	// Due counts actions that could be claimed now or that a bucket delays,
	// Scheduled those that wait for a later time, and InFlight those claimed by
	// a worker.
	Due, Scheduled, InFlight int64
	// Overdue counts expired leases that no worker has claimed again.
	Overdue int64
	// Startable counts the due actions that could run if a worker were free.
	Startable int64
	// OldestDue is how long the oldest startable action has waited for a
	// worker, or 0.
	OldestDue time.Duration
}

// Bucket is the state of a bucket.
type Bucket struct {
	// Tenant is the name of the tenant.
	Tenant, Name string
	Waiting      int64
	// OldestDue is how long the first waiting action has been due.
	OldestDue time.Duration
	Paused    bool
	// Limited reports whether the bucket has a limit of any kind; otherwise the
	// fields below are not set.
	Limited bool
	// Permits is the number of actions that may start now; negative without a
	// rate or a calendar.
	Permits int64
	// InUse is the number of open calls, and Concurrency the maximum; negative
	// without a concurrency limit.
	InUse, Concurrency int64
	// OpensIn is the time until the next permit. ClosedBy is the reason why the
	// bucket is closed, if it is not a lack of permits.
	OpensIn  time.Duration
	ClosedBy string

	id int64
}

// api returns the bucket in the form of the API, with nil for missing values.
func (b Bucket) api() wire.OverviewBucket {
	shown := wire.OverviewBucket{
		Name: b.Name, Waiting: b.Waiting, OldestDue: b.OldestDue.Seconds(), Paused: b.Paused, Limited: b.Limited, OpensIn: b.OpensIn.Seconds(),
		ClosedBy: postgres.OrNull(b.ClosedBy),
	}
	if b.Permits >= 0 {
		shown.Permits = &b.Permits
	}
	if b.Concurrency >= 0 {
		shown.InUse, shown.Concurrency = &b.InUse, &b.Concurrency
	}
	return shown
}

// Breaker is the state of a source's circuit breaker for the fleet. Openings
// counts its openings since the last success.
type Breaker struct {
	// Tenant is the name of the tenant.
	Tenant string
	wire.OverviewBreaker
}

// Pause is a pause in effect.
type Pause struct {
	// Tenant is the name of the tenant; empty for a pause of everything.
	Tenant string
	wire.OverviewPause
}

// Table is the size of a table with its indexes and partitions, and its row
// counts by the statistics.
type Table struct {
	Name       string
	Bytes      int64
	Live, Dead int64

	heapBytes int64
}

// The counted tables.
const (
	outboxTable      = "outbox"
	deadLettersTable = "dead_letters"
)

// busiestTables returns the tables whose size and dead rows matter.
func busiestTables() []string {
	return []string{outboxTable, deadLettersTable, "actions", "buckets", "decisions", "events", "river_job", "tool_executions"}
}

// Get reads the state of a tenant. The transaction must have the tenant's scope,
// which confines it to the tenant's rows.
func Get(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (wire.Overview, error) {
	r := reading{pages: tenantPages, tenant: true}
	if err := r.read(ctx, tx, outboxTable, deadLettersTable); err != nil {
		return wire.Overview{}, fmt.Errorf("overview of tenant %s: %w", tenant, err)
	}
	buckets, err := readBuckets(ctx, tx, r.counts.fullest(mostBuckets, mostBuckets), mostBuckets)
	if err != nil {
		return wire.Overview{}, fmt.Errorf("overview of tenant %s: buckets: %w", tenant, err)
	}
	_, oldestDue, _ := r.counts.startable(buckets)
	throughput, err := readThroughput(ctx, tx, tenant)
	if err != nil {
		return wire.Overview{}, fmt.Errorf("overview of tenant %s: throughput: %w", tenant, err)
	}
	o := wire.Overview{
		At: r.at.UTC(), Estimated: r.estimated, Due: r.counts.Due, Scheduled: r.counts.Scheduled, InFlight: r.counts.InFlight,
		LeasesOverdue: r.counts.Overdue, OldestDue: oldestDue.Seconds(), Waiting: r.counts.waiting(r.approvals),
		Approvals: r.approvals, DeadLetters: r.deadLetters, Throughput: throughput,
		Buckets: []wire.OverviewBucket{}, Breakers: []wire.OverviewBreaker{}, Pauses: []wire.OverviewPause{},
	}
	for _, b := range r.counts.filled(buckets, r.pauses) {
		o.Buckets = append(o.Buckets, b.api())
	}
	for _, b := range r.breakers {
		o.Breakers = append(o.Breakers, b.OverviewBreaker)
	}
	for _, p := range r.pauses {
		o.Pauses = append(o.Pauses, p.OverviewPause)
	}
	return o, nil
}

// reading holds the values that are read for a tenant and for the fleet alike.
type reading struct {
	// pages bounds the pages read of a table. tenant is set if the transaction
	// sees only one tenant's rows.
	pages  int64
	tenant bool

	at          time.Time
	tables      []Table
	estimated   bool
	counts      counts
	breakers    []Breaker
	pauses      []Pause
	approvals   wire.OverviewApprovals
	deadLetters []wire.OverviewDeadLetters
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
	return sampling{percent: 100} // the table has no pages yet
}

// readTimeout bounds a reading of the fleet.
const readTimeout = 5 * time.Second

// Reader returns a read function for Observe.
func Reader(db postgres.Begins) func(ctx context.Context) (Fleet, error) {
	return func(ctx context.Context) (Fleet, error) {
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		return postgres.InTxReturning(ctx, db, postgres.Worker(), func(tx pgx.Tx) (Fleet, error) {
			return GetFleet(ctx, tx)
		})
	}
}

// GetFleet reads the state of the whole fleet, in a transaction of the worker's
// scope. It returns up to 100 buckets with limits and the 20 fullest others; the
// rest is summed as "(others)".
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
	var complete bool
	if r.counts.Startable, r.counts.OldestDue, complete = r.counts.startable(buckets); r.estimated || !complete {
		// The oldest due action may be in a page or a bucket that was not read.
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
	past, held, err := readPastRetention(ctx, tx)
	if err != nil {
		return Fleet{}, fmt.Errorf("overview of the fleet: retention: %w", err)
	}
	f := r.fleet(buckets)
	f.CheckpointLag, f.PastRetention, f.Held = lag, past, held
	if f.Proposals, f.OldestProposal, err = readProposals(ctx, tx); err != nil {
		return Fleet{}, fmt.Errorf("overview of the fleet: proposals: %w", err)
	}
	return f, nil
}

// others is the name of the sum of buckets; no bucket can have it.
const others = "(others)"

// fleet converts a reading to a Fleet. Maps contain every known key, so that a
// gauge falls to 0 and does not vanish.
func (r *reading) fleet(buckets []Bucket) Fleet {
	f := Fleet{
		Backlog: r.counts.Backlog, Buckets: r.counts.filled(buckets, r.pauses), Breakers: r.breakers, Tables: r.tables,
		Waiting:     map[string]int64{reasonTurn: 0, "retry": 0, "quiet_hours": 0, reasonPaused: 0, "breaker_open": 0, "login_lost": 0, "login_unavailable": 0, "bucket": 0, reasonApproval: 0, "not_before": 0, "held": 0},
		Pauses:      map[string]int64{"everything": 0, "tenant": 0, "employee": 0, "source": 0, "bucket": 0, "tool": 0, "automation": 0},
		DeadLetters: map[string]int64{"refused": 0, "exhausted": 0, "unknown": 0},
	}
	for _, w := range r.counts.waiting(r.approvals) {
		f.Waiting[w.Reason] = w.Actions
	}
	for _, p := range r.pauses {
		f.Pauses[p.Scope]++
	}
	for _, d := range r.deadLetters {
		f.DeadLetters[d.Reason] = d.Count
		if d.Reason == "unknown" {
			f.OldestUnknown = seconds(d.Oldest)
		}
	}
	if rest := r.counts.rest(buckets); rest.Waiting > 0 {
		f.Buckets = append(f.Buckets, rest)
	}
	return f
}
