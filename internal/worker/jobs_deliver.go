package worker

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"

	"github.com/countersign-dev/countersign/internal/action/subscription"
)

const (
	// queueNotice is apart from the other periodic jobs: there may be much to
	// tell, and nothing else must wait for it.
	queueDeliver = "countersign_notice"
	// noticeFor is how long one job goes on telling.
	deliverFor = 30 * time.Second
)

// noticeArgs says: tell subscriptions what happened.
type deliverArgs struct{}

func (deliverArgs) Kind() string { return "countersign_notice" }

func (deliverArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: queueDeliver, MaxAttempts: 1}
}

type deliverWorker struct {
	river.WorkerDefaults[deliverArgs]
	relay *subscription.Relay
	busy  atomic.Bool
}

// Work goes on while there is something to tell. A job that comes while this
// process works at another has nothing to do.
func (w *deliverWorker) Work(ctx context.Context, _ *river.Job[deliverArgs]) error {
	if !w.busy.CompareAndSwap(false, true) {
		return nil
	}
	defer w.busy.Store(false)
	for until := time.Now().Add(deliverFor); time.Now().Before(until) && ctx.Err() == nil; {
		more, err := w.relay.Step(ctx)
		if err != nil || !more {
			return err
		}
	}
	return nil
}
