package worker

import (
	"context"
	"log/slog"
	"time"

	"github.com/countersign-dev/countersign/internal/postgres"
)

const (
	// lookEvery is the pause between two queries for work of the loops.
	lookEvery = time.Second
	// The debounces are the least times between two runs of a loop.
	countDebounce     = 1900 * time.Millisecond
	sweepDebounce     = 250 * time.Millisecond
	deliverDebounce   = 20 * time.Millisecond
	expireDebounce    = 1900 * time.Millisecond
	reconcileDebounce = 4900 * time.Millisecond
	workflowDebounce  = 10 * time.Millisecond
	workflowIdle      = 50 * time.Millisecond
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

// look wakes the loops that have work, which one query finds out for all of
// them.
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
			{work.Workflows, f.advance}, {work.Proposals, f.take}, {work.Proposals, f.count}, {work.Words, f.index},
		} {
			if found.due {
				found.loop.poll()
			}
			if found.due && found.loop == f.deliver {
				f.subscribed.Store(true)
			}
		}
		if work.Listings {
			f.jobs.Refresh()
			f.work.poll()
		}
		return postgres.PollPause(lookEvery), nil
	}
}
