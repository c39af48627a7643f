package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	// freezes is how often a worker is frozen, freezePause the time between.
	freezes     = 3
	freezePause = time.Second
)

// feltFreezes are envelopes that were taken from frozen workers, feltWakes the
// times that a worker came back with an outcome nobody would take any more.
const (
	feltFreezes = "actions taken over"
	feltWakes   = "late outcomes refused"
)

func freezeFault() fault {
	return fault{
		name:  "freeze",
		about: fmt.Sprintf("%d times, a worker is stopped with SIGSTOP past its lease, and woken with SIGCONT", freezes),
		n:     1000, over: 20 * time.Second,
		tool:      func(o *serverConfig) { o.Call *= 5 }, // so that a frozen worker holds calls
		inject:    freezeWorkers,
		wantSigns: []string{feltFreezes, feltWakes},
		codes:     []string{workerLost}, most: perHit,
	}
}

// freezeWorkers stops one worker after the other, for its lease and a half.
func freezeWorkers(ctx context.Context, t *faultRun) error {
	random := rand.New(rand.NewPCG(t.seed, 0)) // repeatable by seed
	first := random.IntN(t.workers)
	for n := range freezes {
		if !pause(ctx, freezePause) {
			return ctx.Err()
		}
		at, resume, ok := t.fleet.freeze((first + n) % t.workers)
		if !ok {
			return fmt.Errorf("there is no worker to freeze in place %d", (first+n)%t.workers)
		}
		one := t.injections.add(byFreeze, at)
		slept := pause(ctx, t.lease+t.lease/2)
		resume()
		t.injections.setDuration(one, time.Since(at))
		if !slept {
			return ctx.Err()
		}
	}
	if !pause(ctx, freezePause) { // the last one says what it brings
		return ctx.Err()
	}
	late, err := t.log.count("outcomes came after their leases were lost")
	t.addSign(feltWakes, late)
	return err
}
