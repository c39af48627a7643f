package main

import (
	"context"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"
)

// feltKills are envelopes that killed workers held.
const feltKills = "actions left under a lease"

func killFault() fault {
	return fault{
		name:  "kill",
		about: "a worker is killed with SIGKILL each second, and PostgreSQL crashes once on the way",
		n:     5000, over: 15 * time.Second,
		inject: func(ctx context.Context, t *faultRun) error {
			g, ctx := errgroup.WithContext(ctx)
			g.Go(func() error { return t.killWorkers(ctx, t.killEvery) })
			g.Go(func() error { return t.crashDatabase(ctx) })
			return g.Wait()
		},
		wantSigns: []string{feltKills},
		codes:     []string{workerLost}, most: func(e evidence) int { return e.count(byKill) * e.plan.concurrency },
	}
}

// killWorkers kills a worker at random at each interval until all that was
// submitted has been taken up.
func (t *faultRun) killWorkers(ctx context.Context, every time.Duration) error {
	random := rand.New(rand.NewPCG(t.seed, 0)) // repeatable by seed
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.claimed:
			return nil
		case <-ticker.C:
		}
		if at, ok := t.fleet.kill(random.IntN(t.workers)); ok {
			t.injections.setDuration(t.injections.add(byKill, at), 0)
		}
	}
}

// crashDatabase crashes and restarts the server while envelopes are being
// submitted, if the server is ours.
func (t *faultRun) crashDatabase(ctx context.Context) error {
	if t.db.restart == nil {
		return nil
	}
	if err := t.submittedShare(ctx, 0.75); err != nil {
		return err
	}
	for n := range t.restarts {
		if n > 0 && !pause(ctx, restartPause) {
			return ctx.Err()
		}
		if err := t.during(byRestart, func() error { return t.db.restart(ctx, crash) }); err != nil {
			return err
		}
	}
	return nil
}
