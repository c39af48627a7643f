package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/countersign-dev/countersign/bench/chaos/database"
	"github.com/countersign-dev/countersign/bench/process"
	"github.com/countersign-dev/countersign/internal/postgres/embedded"
)

const (
	// restartPause is the time between two restarts of the database.
	restartPause = 2 * time.Second
	// holdTimeout is how long the database is held up, again and again, until
	// the statement in question is in it.
	holdTimeout = 20 * time.Second
	// fills is how often the disk is filled up, fullFor how long it is full,
	// and fillPause the time before each.
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
// leaves it so: what is there now ends with the server.
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
