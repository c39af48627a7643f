package worker

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source/connect"
)

const (
	queuePoll     = "countersign_poll"
	queuePeriodic = "countersign_periodic"
)

// periodic is what the fleet's leader starts from time to time. A process
// also looks for due work by itself, at least every Config.Poll.
func periodic() []*river.PeriodicJob {
	every := func(d time.Duration, args river.JobArgs) *river.PeriodicJob {
		return river.NewPeriodicJob(river.PeriodicInterval(d),
			func() (river.JobArgs, *river.InsertOpts) { return args, nil },
			&river.PeriodicJobOpts{RunOnStart: true})
	}
	return []*river.PeriodicJob{
		every(5*time.Second, refreshArgs{}),
		every(5*time.Second, reconcileArgs{}),
		every(time.Hour, partitionArgs{}),
		every(time.Minute, checkpointArgs{}),
		every(24*time.Hour, retentionArgs{}),
		every(24*time.Hour, pruneDryRunsArgs{}),
		every(time.Hour, pruneSessionsArgs{}),
		every(time.Hour, pruneWorkflowsArgs{}),
	}
}

// periodicOpts is how a periodic job is inserted: tried once, since the next comes
// soon.
func periodicOpts() river.InsertOpts { return river.InsertOpts{Queue: queuePeriodic, MaxAttempts: 1} }

// pollArgs says: look now.
type pollArgs struct{}

func (pollArgs) Kind() string { return "countersign_poll" }

func (pollArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: queuePoll, MaxAttempts: 1}
}

type pollWorker struct {
	river.WorkerDefaults[pollArgs]
	look func()
}

func (w *pollWorker) Work(context.Context, *river.Job[pollArgs]) error {
	w.look()
	return nil
}

// refreshArgs says: list the sources again whose listing is old, or that
// somebody wants listed now.
type refreshArgs struct{}

func (refreshArgs) Kind() string { return "countersign_refresh" }

func (refreshArgs) InsertOpts() river.InsertOpts { return periodicOpts() }

type refreshWorker struct {
	river.WorkerDefaults[refreshArgs]
	refresher *connect.Refresher
	age       time.Duration
	// busy is held while sources are listed. A source that hangs is not asked
	// again meanwhile, nor does it fill the queue.
	busy sync.Mutex
	// swept is when connections that were replaced were let go; busy guards it.
	swept time.Time
}

// sweepPause is longer than a call may take, which may still run on a
// connection that was replaced.
const sweepPause = time.Minute

func (w *refreshWorker) Work(ctx context.Context, _ *river.Job[refreshArgs]) error {
	if !w.busy.TryLock() {
		return nil
	}
	defer w.busy.Unlock()
	if now := time.Now(); now.Sub(w.swept) >= sweepPause {
		w.refresher.Sweep()
		w.swept = now
	}
	return w.refresher.RefreshStale(ctx, w.age)
}

// partitionArgs says: make the ledger's coming partitions.
type partitionArgs struct{}

func (partitionArgs) Kind() string { return "countersign_partition" }

func (partitionArgs) InsertOpts() river.InsertOpts { return periodicOpts() }

type partitionWorker struct {
	river.WorkerDefaults[partitionArgs]
	db postgres.Begins
}

func (w *partitionWorker) Work(ctx context.Context, _ *river.Job[partitionArgs]) error {
	return ensurePartitions(ctx, w.db)
}

func ensurePartitions(ctx context.Context, db postgres.Begins) error {
	return postgres.InTx(ctx, db, postgres.Worker(), func(tx pgx.Tx) error {
		return audit.EnsurePartitions(ctx, tx, 2)
	})
}
