package worker

import (
	"context"
	"time"

	"github.com/riverqueue/river"

	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/retention"
)

const (
	// queueUpkeep is apart from the other periodic jobs, which must not wait
	// for what goes through much data.
	queueUpkeep = "countersign_upkeep"
	// upkeepFor is how long one such job goes on before it makes room for
	// another, and upkeepPause when it comes back.
	upkeepFor   = 5 * time.Second
	upkeepPause = time.Second
)

func upkeep() river.InsertOpts { return river.InsertOpts{Queue: queueUpkeep, MaxAttempts: 1} }

// inTurns does a part of some work, and has River bring the job back for the
// rest.
func inTurns(ctx context.Context, work func(more func() bool) (bool, error)) error {
	until := time.Now().Add(upkeepFor)
	done, err := work(func() bool { return time.Now().Before(until) && ctx.Err() == nil })
	if err != nil || done || ctx.Err() != nil {
		return err
	}
	return river.JobSnooze(upkeepPause)
}

// sealArgs says: seal the events that are complete.
type sealArgs struct{}

func (sealArgs) Kind() string { return "countersign_seal" }

func (sealArgs) InsertOpts() river.InsertOpts { return upkeep() }

type sealWorker struct {
	river.WorkerDefaults[sealArgs]
	db postgres.Begins
}

func (w *sealWorker) Work(ctx context.Context, _ *river.Job[sealArgs]) error {
	return inTurns(ctx, func(more func() bool) (bool, error) { return audit.SealAll(ctx, w.db, more) })
}

// retainArgs says: delete what is past what its tenant keeps.
type retainArgs struct{}

func (retainArgs) Kind() string { return "countersign_retain" }

func (retainArgs) InsertOpts() river.InsertOpts { return upkeep() }

type retainWorker struct {
	river.WorkerDefaults[retainArgs]
	db postgres.Begins
}

func (w *retainWorker) Work(ctx context.Context, _ *river.Job[retainArgs]) error {
	return inTurns(ctx, func(more func() bool) (bool, error) { return retention.Sweep(ctx, w.db, more) })
}
