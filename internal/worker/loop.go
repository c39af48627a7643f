package worker

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/proposal"
	"github.com/countersign-dev/countersign/internal/action/reconcile"
	"github.com/countersign-dev/countersign/internal/action/subscription"
	"github.com/countersign-dev/countersign/internal/action/workflow"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

const (
	// lookEvery is the pause between two queries for work of the loops.
	lookEvery = time.Second
	// The debounces are the least times between two runs of a loop.
	sweepDebounce     = 250 * time.Millisecond
	deliverDebounce   = 20 * time.Millisecond
	expireDebounce    = 1900 * time.Millisecond
	reconcileDebounce = 4900 * time.Millisecond
	workflowDebounce  = 10 * time.Millisecond
	workflowIdle      = 50 * time.Millisecond
	// workflowMinPoll and workflowMaxPoll bound the pause between two polls
	// while workflows are running.
	workflowMinPoll = 50 * time.Millisecond
	workflowMaxPoll = 200 * time.Millisecond
	// workflowPollShare is the ratio of a pause to the poll before it, so that
	// polls which take long, because many workflows wait, are made less often.
	workflowPollShare = 20
)

// loop repeats some work in every worker process, whenever it is woken. Work
// that may be due every second is a loop and not a River job, which would cost a
// handful of transactions each time to find out that there is nothing to do.
type loop struct {
	// name is for the log: the work that the worker waits for.
	name string
	// work returns the pause until the next run; zero for none before the loop
	// is woken.
	work func(context.Context) (time.Duration, error)
	// debounce is the least time from the start of a run to the next, and idle that
	// from a run that found no work; zero is as debounce.
	debounce, idle time.Duration
	wake           chan struct{}
	log            *slog.Logger
}

func newLoop(name string, debounce time.Duration, log *slog.Logger, work func(context.Context) (time.Duration, error)) *loop {
	return &loop{name: name, work: work, debounce: debounce, wake: make(chan struct{}, 1), log: log}
}

// poll starts a run soon. It does not block.
func (l *loop) poll() {
	signal(l.wake)
}

// run works until ctx ends. Work that ctx cuts short is rolled back, and done
// by another worker.
func (l *loop) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var began time.Time
	debounce := l.debounce
	for failures := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
			if early := debounce - time.Since(began); early > 0 {
				timer.Reset(early)
				continue
			}
		case <-timer.C:
		}
		began = time.Now()
		pause, err := l.work(ctx)
		if ctx.Err() != nil {
			return
		}
		if failures++; err == nil {
			failures = 0
		} else {
			pause = min(500*time.Millisecond<<min(failures, 4), 5*time.Second)
			l.log.ErrorContext(ctx, "worker waits for the database", slog.String("operation", l.name), slog.Int("failures", failures), slog.Any("error", err))
		}
		if debounce = l.debounce; pause > 0 {
			timer.Reset(pause)
		} else {
			timer.Stop()
			debounce = max(debounce, l.idle)
		}
	}
}

// look wakes the loops that have work, which one query finds out for all.
func (f *Worker) look(age time.Duration) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		work, err := backgroundWork(ctx, f.db, age)
		if err != nil {
			return 0, err
		}
		for _, found := range []struct {
			due  bool
			loop *loop
		}{
			{work.Sweeps, f.sweep}, {work.Messages, f.deliver}, {work.Expiries, f.expire}, {work.Reconciliations, f.reconcile},
			{work.Workflows, f.advance}, {work.Proposals, f.take},
		} {
			if found.due {
				found.loop.poll()
			}
			if found.due && found.loop == f.deliver {
				f.subscribed.Store(true)
			}
		}
		if work.Listings {
			if _, err := f.client.Insert(ctx, refreshArgs{}, nil); err != nil {
				return 0, err
			}
		}
		return lookEvery, nil
	}
}

// takeProposals takes proposals made in SQL until none waits, or all that does
// has to wait for a pause to end.
func takeProposals(taker *proposal.Taker) func(context.Context) (time.Duration, error) {
	var ends time.Time // of a pause
	return func(ctx context.Context) (time.Duration, error) {
		for ctx.Err() == nil {
			more, pause, err := taker.Step(ctx)
			if err != nil || !more {
				return max(0, time.Until(ends)), err
			}
			if pause > 0 && (time.Now().After(ends) || time.Now().Add(pause).Before(ends)) {
				ends = time.Now().Add(pause)
			}
		}
		return 0, nil
	}
}

// deliver proposes the messages of subscriptions until none is due.
func deliver(relay *subscription.Relay) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		for ctx.Err() == nil {
			if more, err := relay.Step(ctx); err != nil || !more {
				return 0, err
			}
		}
		return 0, nil
	}
}

// reconciliations makes the reconciling reads that are due. Actions that run
// again are claimed at once.
func reconciliations(r *reconcile.Reconciler, poll func()) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		for ctx.Err() == nil {
			if n, err := r.Sweep(ctx); err != nil || n == 0 {
				return 0, err
			}
			poll()
		}
		return 0, nil
	}
}

// workflows advances workflows. live reports whether any were running at the
// last poll.
type workflows struct {
	driver *workflow.Driver
	live   atomic.Bool
}

func (w *workflows) advance(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	moved, live, err := w.driver.Sweep(ctx)
	if err != nil {
		return 0, err
	}
	w.live.Store(live)
	switch {
	case moved > 0:
		return workflowMinPoll, nil
	case !live:
		return 0, nil
	}
	return min(max(workflowPollShare*time.Since(began), workflowMinPoll), workflowMaxPoll), nil
}

// expire ends waits for people and policy that have expired, records reminders,
// and withdraws proposals that an owner of mail made pointless.
func expire(db postgres.Begins) func(context.Context) (time.Duration, error) {
	const most = 1000
	return func(ctx context.Context) (time.Duration, error) {
		for _, step := range []func(context.Context, postgres.Begins, int) (int, error){approval.Expire, approval.Remind, approval.Withdraw} {
			for n := most; n == most; {
				var err error
				if n, err = step(ctx, db, most); err != nil {
					return 0, err
				}
			}
		}
		return 0, ExpirePolicy(ctx, db)
	}
}

// ExpirePolicy records the grants and session modes that have expired, a page
// a transaction. An expired one does not apply even before that; but actions
// that it approved are rechecked only when the version of the tenant's settings
// goes up.
func ExpirePolicy(ctx context.Context, db postgres.Begins) error {
	const most = 500
	for taken := most; taken == most; {
		err := postgres.InTx(ctx, db, postgres.Worker(), func(tx pgx.Tx) (err error) {
			taken, err = settings.Expire(ctx, tx, most)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Sweep ends the actions that kills cover, and wakes those that a pause or
// quiet hours no longer hold, a page a transaction. It calls wake after each
// change that it has carried out.
func Sweep(ctx context.Context, db postgres.Begins, wake func()) error {
	const most, page = 100, 1000
	sweeps, err := postgres.InTxReturning(ctx, db, postgres.Worker(), func(tx pgx.Tx) ([]outbox.Sweep, error) {
		return outbox.Sweeps(ctx, tx, most)
	})
	if err != nil {
		return fmt.Errorf("sweep pauses: %w", err)
	}
	for i := range sweeps {
		var at outbox.SweepCursor
		for ended := false; !ended; {
			err := postgres.InTx(ctx, db, postgres.Worker().Planned(), func(tx pgx.Tx) (err error) {
				at, ended, err = sweeps[i].Step(ctx, tx, at, page)
				return err
			})
			if err != nil {
				return fmt.Errorf("sweep pauses: %w", err)
			}
		}
		wake()
	}
	return nil
}
