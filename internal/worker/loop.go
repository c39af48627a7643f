package worker

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/subscription"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// loop repeats some work in every worker process. Work that is due every
// second is a loop and not a River job, which would cost a handful of
// transactions each time to find out that there is nothing to do.
type loop struct {
	// name is for the log: what the worker waits to do.
	name string
	work func(context.Context) error
	// every is the pause between two runs, debounce the least time from the
	// start of one to the start of the next when the loop is woken.
	every, debounce time.Duration
	wake            chan struct{}
	log             *slog.Logger
}

func newLoop(name string, every, debounce time.Duration, log *slog.Logger, work func(context.Context) error) *loop {
	return &loop{name: name, work: work, every: every, debounce: debounce, wake: make(chan struct{}, 1), log: log}
}

// poll starts a run soon. It does not block.
func (l *loop) poll() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run works until ctx ends. Work that ctx cuts short is rolled back, and done
// by another worker.
func (l *loop) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var began time.Time
	for failures := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
			if early := l.debounce - time.Since(began); early > 0 {
				timer.Reset(early)
				continue
			}
		case <-timer.C:
		}
		began = time.Now()
		err := l.work(ctx)
		if ctx.Err() != nil {
			return
		}
		pause := l.every
		if failures++; err == nil {
			failures = 0
		} else {
			pause = min(l.every<<min(failures, 3), 5*time.Second)
			l.log.ErrorContext(ctx, "worker waits for the database", slog.String("operation", l.name), slog.Int("failures", failures), slog.Any("error", err))
		}
		timer.Reset(pause)
	}
}

// deliver proposes the messages of subscriptions until none is due.
func deliver(relay *subscription.Relay) func(context.Context) error {
	return func(ctx context.Context) error {
		for ctx.Err() == nil {
			more, err := relay.Step(ctx)
			if err != nil || !more {
				return err
			}
		}
		return nil
	}
}

// expire ends waits for people and policy that have expired, and records
// reminders.
func expire(db postgres.Begins) func(context.Context) error {
	const most = 1000
	return func(ctx context.Context) error {
		for _, step := range []func(context.Context, postgres.Begins, int) (int, error){approval.Expire, approval.Remind} {
			for n := most; n == most; {
				var err error
				if n, err = step(ctx, db, most); err != nil {
					return err
				}
			}
		}
		return ExpirePolicy(ctx, db)
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
	var sweeps []outbox.Sweep
	err := postgres.InTx(ctx, db, postgres.Worker(), func(tx pgx.Tx) (err error) {
		sweeps, err = outbox.Sweeps(ctx, tx, most)
		return err
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
