package overview

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/telemetry"
)

// The tables that are counted.
const (
	outboxTable  = "outbox"
	lettersTable = "dead_letters"
)

// hotTables are those whose size and dead rows matter.
func hotTables() []string {
	return []string{outboxTable, lettersTable, "actions", "buckets", "decisions", "events", "river_job", "tool_executions"}
}

// Of reads how a tenant stands. The transaction is of the tenant's scope,
// which is what confines it to the tenant's rows.
func Get(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (Overview, error) {
	r := reading{pages: tenantPages, mine: true}
	if err := r.read(ctx, tx, outboxTable, lettersTable); err != nil {
		return Overview{}, fmt.Errorf("overview of tenant %s: %w", tenant, err)
	}
	buckets, err := readBuckets(ctx, tx, r.tally.fullest(mostBuckets, mostBuckets), mostBuckets)
	if err != nil {
		return Overview{}, fmt.Errorf("overview of tenant %s: buckets: %w", tenant, err)
	}
	throughput, err := readThroughput(ctx, tx, tenant)
	if err != nil {
		return Overview{}, fmt.Errorf("overview of tenant %s: throughput: %w", tenant, err)
	}
	t := r.tally
	return Overview{
		At: r.at, Estimated: r.estimated, Due: t.due, Scheduled: t.scheduled, InFlight: t.inFlight, Overdue: t.overdue, OldestDue: t.oldestDue,
		Waiting: t.waiting(r.approvals), Buckets: t.filled(buckets, r.pauses), Breakers: r.breakers, Pauses: r.pauses,
		Approvals: r.approvals, DeadLetters: r.letters, Throughput: throughput,
	}, nil
}

// reading is what is read for a tenant and for the fleet alike.
type reading struct {
	pages int64
	mine  bool

	at        time.Time
	tables    []table
	estimated bool
	tally     tally
	breakers  []Breaker
	pauses    []Pause
	approvals Approvals
	letters   []DeadLetters
}

func (r *reading) read(ctx context.Context, tx pgx.Tx, tables ...string) (err error) {
	if r.tables, err = readTables(ctx, tx, tables...); err != nil {
		return fmt.Errorf("sizes of tables: %w", err)
	}
	if r.pauses, err = readPauses(ctx, tx); err != nil {
		return fmt.Errorf("pauses: %w", err)
	}
	groups, how, err := readWaiting(ctx, tx, r.look(outboxTable))
	if err != nil {
		return fmt.Errorf("what waits: %w", err)
	}
	r.tally, r.estimated = sumUp(groups, r.pauses), how.estimated()
	if r.breakers, err = readBreakers(ctx, tx); err != nil {
		return fmt.Errorf("breakers: %w", err)
	}
	if r.approvals, r.at, err = readApprovals(ctx, tx); err != nil {
		return fmt.Errorf("approvals: %w", err)
	}
	if r.letters, err = readLetters(ctx, tx, r.look(lettersTable)); err != nil {
		return fmt.Errorf("dead letters: %w", err)
	}
	return nil
}

func (r *reading) look(name string) look {
	for _, t := range r.tables {
		if t.name == name {
			return lookAt(t, r.pages, r.mine)
		}
	}
	return look{percent: 100} // it has no pages yet
}

// readFor bounds a reading of the fleet.
const readFor = 5 * time.Second

// Reader returns a function for telemetry that reads how the fleet stands.
func Reader(db postgres.Begins) func(ctx context.Context) (telemetry.Standing, error) {
	return func(ctx context.Context) (telemetry.Standing, error) {
		ctx, cancel := context.WithTimeout(ctx, readFor)
		defer cancel()
		var s telemetry.Standing
		err := postgres.InTx(ctx, db, postgres.Worker(), func(tx pgx.Tx) (err error) {
			s, err = Fleet(ctx, tx)
			return err
		})
		return s, err
	}
}

// Fleet reads how the whole fleet stands, in a transaction of the worker's
// scope. Of buckets it names up to 100 with limits and the 20 fullest others;
// what waits in further ones is summed up as "(others)".
func Fleet(ctx context.Context, tx pgx.Tx) (telemetry.Standing, error) {
	r := reading{pages: fleetPages}
	if err := r.read(ctx, tx, hotTables()...); err != nil {
		return telemetry.Standing{}, fmt.Errorf("overview of the fleet: %w", err)
	}
	ids := r.tally.fullest(mostLimited, mostFull)
	buckets, err := readBuckets(ctx, tx, ids, mostLimited+mostFull)
	if err != nil {
		return telemetry.Standing{}, fmt.Errorf("overview of the fleet: buckets: %w", err)
	}
	if r.estimated {
		// The one that waits longest may be in no page that was read. Where
		// there are more buckets than are asked, it is others each time.
		starts := append(ids, 0)
		oldest, err := readOldest(ctx, tx, starts[rand.IntN(len(starts))])
		if err != nil {
			return telemetry.Standing{}, fmt.Errorf("overview of the fleet: oldest: %w", err)
		}
		r.tally.oldestDue = max(r.tally.oldestDue, oldest)
	}
	uncovered, err := readUncovered(ctx, tx)
	if err != nil {
		return telemetry.Standing{}, fmt.Errorf("overview of the fleet: checkpoints: %w", err)
	}
	notices, err := readNotices(ctx, tx)
	if err != nil {
		return telemetry.Standing{}, fmt.Errorf("overview of the fleet: notices: %w", err)
	}
	return r.standing(buckets, uncovered, notices), nil
}
