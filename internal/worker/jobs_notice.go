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
	queueNotice = "countersign_notice"
	// noticeFor is how long one job goes on telling.
	noticeFor = 30 * time.Second
)

// noticeArgs says: tell subscriptions what happened.
type noticeArgs struct{}

func (noticeArgs) Kind() string { return "countersign_notice" }

func (noticeArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: queueNotice, MaxAttempts: 1}
}

type noticeWorker struct {
	river.WorkerDefaults[noticeArgs]
	relay *subscription.Relay
	busy  atomic.Bool
}

// Work goes on while there is something to tell. A job that comes while this
// process works at another has nothing to do.
func (w *noticeWorker) Work(ctx context.Context, _ *river.Job[noticeArgs]) error {
	if !w.busy.CompareAndSwap(false, true) {
		return nil
	}
	defer w.busy.Store(false)
	for until := time.Now().Add(noticeFor); time.Now().Before(until) && ctx.Err() == nil; {
		more, err := w.relay.Step(ctx)
		if err != nil || !more {
			return err
		}
	}
	return nil
}
