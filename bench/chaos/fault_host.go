package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/countersign-dev/countersign/bench/chaos/database"
	"github.com/countersign-dev/countersign/bench/process"
	"github.com/countersign-dev/countersign/internal/postgres/embedded"
)

const (
	// freezes is the number of times that a worker is frozen, freezePause the time
	// between.
	freezes     = 3
	freezePause = time.Second
	// openTimeout bounds the time until everything else has ended while a
	// transaction stays open.
	openTimeout = 45 * time.Second
	// skewSeen is more than a run takes and less than every skew.
	skewSeen = 4 * time.Minute
	// skewKillEvery is the interval at which a worker is killed under skew, so
	// that its leases expire and others claim them.
	skewKillEvery = 2 * time.Second
)

// The signs that workers were hit.
const (
	// signKills counts the actions that killed workers held.
	signKills = "actions left under a lease"
	// signFreezes counts the actions taken from frozen workers, signLate the
	// outcomes of resumed workers that were refused.
	signFreezes = "actions taken over"
	signLate    = "late outcomes refused"
	// signOpen counts the open transactions of the frozen worker.
	signOpen = "transactions left open"
	// signStuck counts the actions that ended only after a worker was killed
	// for them.
	signStuck = "actions that had not ended"
	// signSkew counts the workers whose clock was seen to be wrong.
	signSkew = "wrong clocks"
)

// hostFaults returns the faults of the hosts that workers and the database run
// on.
func hostFaults() []fault {
	return []fault{{
		name:  "freeze",
		about: fmt.Sprintf("%d times, a worker is stopped with SIGSTOP past its lease, and woken with SIGCONT", freezes),
		n:     1000, over: 20 * time.Second,
		slow:   5, // so that a frozen worker has calls in flight
		inject: freezeWorkers, signs: []string{signFreezes, signLate}, codes: []string{workerLost}, most: perInjection,
	}, {
		name: "freeze-tx",
		about: "a worker is stopped with SIGSTOP amid a transaction that claims or settles, and stays so, " +
			"as if its host were gone without a word; it is never woken",
		n: 400, over: 4 * time.Second,
		inject: freezeInTransaction, signs: []string{signOpen}, codes: []string{workerLost}, most: perInjection,
	}, {
		name: "disk-full",
		about: fmt.Sprintf("PostgreSQL's disk (%d MB, a tmpfs) is full for %s, %d times; the second time its log needs space too, which it crashes of",
			database.DiskSize>>20, fullFor, fills),
		n: 1500, over: 18 * time.Second, smallDisk: true, ownServer: true,
		inject: fillDisk, signs: []string{database.SignFull, database.SignDown}, codes: []string{workerLost}, most: perOutage,
	}, {
		name: "clock-skew",
		about: fmt.Sprintf("the clocks of three workers are %s ahead, %s behind and right; one is killed every %s",
			skewOf(0), -skewOf(1), skewKillEvery),
		n: 1500, over: 12 * time.Second, skewed: true,
		inject: killSkewed, signs: []string{signSkew, signKills}, codes: []string{workerLost}, most: perInjection,
	}}
}

// killAll kills workers, and crashes the database once on the way.
func killAll(ctx context.Context, t *faultRun) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return t.killWorkers(ctx, t.killEvery) })
	g.Go(func() error { return t.crashDatabase(ctx) })
	return g.Wait()
}

// killSkewed kills workers, and counts those whose clocks are wrong.
func killSkewed(ctx context.Context, t *faultRun) error {
	if err := t.killWorkers(ctx, skewKillEvery); err != nil {
		return err
	}
	return t.addLogged(signSkew, "worker starting", skewSeen)
}

// random returns the random numbers of a run, repeatable by seed.
func (p plan) random() *rand.Rand { return rand.New(rand.NewPCG(p.seed, 0)) }

// killWorkers kills a random worker at each interval until every action has
// been claimed.
func (t *faultRun) killWorkers(ctx context.Context, every time.Duration) error {
	random := t.random()
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
		if at, ok := t.workerSet.Kill(random.IntN(t.workers)); ok {
			t.injections.setDuration(t.injections.add(byKill, at), 0)
		}
	}
}

// crashDatabase crashes and restarts the server while actions are being
// submitted, if this program started the server.
func (t *faultRun) crashDatabase(ctx context.Context) error {
	if t.db.Restart == nil {
		return nil
	}
	if err := t.awaitSubmitted(ctx, 0.75); err != nil {
		return err
	}
	for range t.restarts {
		if err := t.during(byRestart, func() error { return t.db.Restart(ctx, embedded.Immediate) }); err != nil {
			return err
		}
		if err := process.Wait(ctx, restartPause); err != nil {
			return err
		}
	}
	return nil
}

// freezeWorkers stops one worker after the other, for one and a half leases.
func freezeWorkers(ctx context.Context, t *faultRun) error {
	first := t.random().IntN(t.workers)
	for n := range freezes {
		if err := process.Wait(ctx, freezePause); err != nil {
			return err
		}
		slot := (first + n) % t.workers
		at, resume, ok := t.workerSet.Freeze(slot)
		if !ok {
			return fmt.Errorf("no worker to freeze in slot %d", slot)
		}
		one := t.injections.add(byFreeze, at)
		err := process.Wait(ctx, t.lease+t.lease/2)
		resume()
		t.injections.setDuration(one, time.Since(at))
		if err != nil {
			return err
		}
	}
	if err := process.Wait(ctx, freezePause); err != nil { // for the outcomes of the last one
		return err
	}
	return t.addLogged(signLate, "outcomes came after their leases were lost", 0)
}

// freezeInTransaction freezes a worker for good while it has a transaction
// open, and waits until all else has ended. If something has not, it kills the
// worker, and the run counts as stuck.
func freezeInTransaction(ctx context.Context, t *faultRun) error {
	random := t.random()
	search, cancel := context.WithTimeout(ctx, holdTimeout)
	defer cancel()
	for open := 0; open == 0; t.addSign(signOpen, open) {
		slot := random.IntN(t.workers)
		var resume func()
		var err error
		if open, resume, err = t.freezeOpen(search, slot); err != nil {
			return fmt.Errorf("freeze a worker in a transaction: %w", err)
		}
		if open == 0 {
			resume()
			continue
		}
		defer t.workerSet.Kill(slot) // as if its host were gone
	}
	return t.awaitOthers(ctx)
}

// freezeOpen freezes a worker while statements wait in the database, and counts
// the transactions that are left open when they have run.
func (t *faultRun) freezeOpen(ctx context.Context, slot int) (open int, resume func(), err error) {
	if err := process.Wait(ctx, database.HoldTry); err != nil {
		return 0, nil, err
	}
	h, err := t.db.Hold(ctx, database.ClaimRuns)
	if err != nil {
		return 0, nil, err
	}
	_, err = h.Await(ctx, database.ClaimRuns)
	at, resume, ok := t.workerSet.Freeze(slot)
	if err = errors.Join(err, h.Release(ctx)); err != nil || !ok {
		return 0, func() {}, err
	}
	if err := process.Wait(ctx, database.HoldTry); err != nil { // the statements run now
		return 0, resume, err
	}
	if open, err = t.db.LeftOpen(ctx, database.HoldTry/2); open > 0 {
		t.injections.setDuration(t.injections.add(byFreeze, at), 0)
	}
	return open, resume, err
}

// awaitOthers waits until no action is open, openTimeout at most.
func (t *faultRun) awaitOthers(ctx context.Context) error {
	if err := t.awaitSubmitted(ctx, 1); err != nil {
		return err
	}
	end := time.Now().Add(openTimeout)
	return process.Poll(ctx, pollInterval, func() (bool, error) {
		now, err := t.reader.State(ctx)
		if err == nil && now.Open > 0 && time.Now().After(end) {
			t.addSign(signStuck, now.Open)
			return true, nil
		}
		return now.Open == 0, err
	})
}

const (
	// restartPause is the time between two restarts of the database.
	restartPause = 2 * time.Second
	// holdTimeout bounds the time for which the database is held up, again and
	// again, until the statement is in it.
	holdTimeout = 20 * time.Second
	// fills is the number of times that the disk is filled up, fullFor the time
	// for which it is full, and fillPause the time before each.
	fills     = 2
	fullFor   = 4 * time.Second
	fillPause = 4 * time.Second
)

// points are the points at which the database is restarted, one after the other.
func points() []database.Point {
	return []database.Point{database.ClaimRuns, database.SettleRuns, database.ClaimCommits, database.SettleCommits}
}

// databaseFaults returns the faults that restart the database.
func databaseFaults() []fault {
	kill := fault{
		name: "kill", about: "a worker is killed with SIGKILL each second, and PostgreSQL crashes once on the way",
		n: 5000, over: 15 * time.Second,
		inject: killAll, signs: []string{signKills}, codes: []string{workerLost},
		most: func(e evidence) int { return e.count(byKill) * e.plan.concurrency },
	}
	restart := func(name string, mode embedded.Mode) fault {
		f := fault{
			name: name,
			about: fmt.Sprintf("PostgreSQL restarts (%s) while a claim, and while a settling, is running in it; "+
				"and when each has committed and its worker was not told", mode),
			n: 1500, over: 14 * time.Second, ownServer: true,
			inject: func(ctx context.Context, t *faultRun) error { return t.restartAtPoints(ctx, mode) },
			codes:  []string{workerLost}, most: perOutage,
		}
		for _, p := range points() {
			f.signs = append(f.signs, string(p))
		}
		return f
	}
	return []fault{kill, restart("pg-crash", embedded.Immediate), restart("pg-fast", embedded.Fast)}
}

// fillDisk fills the database's disk up and frees it again.
func fillDisk(ctx context.Context, t *faultRun) error {
	for n := range fills {
		if err := process.Wait(ctx, fillPause); err != nil {
			return err
		}
		err := t.during(byDisk, func() error {
			return t.db.Fill(ctx, fullFor, n > 0, func(sign string) { t.addSign(sign, 1) })
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// restartAtPoints restarts the database once at each point.
func (t *faultRun) restartAtPoints(ctx context.Context, mode embedded.Mode) error {
	for _, p := range points() {
		if err := process.Wait(ctx, restartPause); err != nil {
			return err
		}
		hold, err := t.holdAt(ctx, p)
		if err != nil {
			return fmt.Errorf("hold the database for %s: %w", p, err)
		}
		err = t.during(byRestart, func() error { return t.db.Restart(ctx, mode) })
		_ = hold.Release(ctx) // the hold ended with the server
		if err != nil {
			return err
		}
	}
	return nil
}

// holdAt holds the database up until a worker's session is at a point, and
// leaves it held: the sessions end with the server.
func (t *faultRun) holdAt(ctx context.Context, p database.Point) (*database.Hold, error) {
	ctx, cancel := context.WithTimeout(ctx, holdTimeout)
	defer cancel()
	for {
		h, err := t.db.Hold(ctx, p)
		if err != nil {
			return nil, err
		}
		caught, err := h.Await(ctx, p)
		if err == nil && caught[p] > 0 {
			for at, n := range caught {
				t.addSign(string(at), n)
			}
			return h, h.Leave(ctx)
		}
		if err := errors.Join(err, h.Release(ctx)); err != nil {
			return nil, err
		}
		if process.Wait(ctx, database.HoldTry) != nil {
			return nil, fmt.Errorf("no session came to this point: %w", context.Cause(ctx))
		}
	}
}
