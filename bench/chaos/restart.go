package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/countersign-dev/countersign/internal/postgres/embedded"
)

// crash is how a server goes down that is not asked.
const crash = embedded.Immediate

const (
	// restartPause is the time between two restarts of the database.
	restartPause = 2 * time.Second
	// holdPatience is how long the database is held up, in tries of holdTry,
	// until the statement that is waited for is in it.
	holdPatience = 20 * time.Second
	holdTry      = 300 * time.Millisecond
	holdLook     = 5 * time.Millisecond
)

// moment is what a worker's session is in the middle of when the database goes
// away.
type moment string

// The moments. One whose statement runs is undone by the crash; one that
// commits is there afterwards, but its worker was never told.
const (
	claimRuns     moment = "claims undone"
	claimCommits  moment = "claims committed, untold"
	settleRuns    moment = "settlings undone"
	settleCommits moment = "settlings committed, untold"
)

func moments() []moment { return []moment{claimRuns, settleRuns, claimCommits, settleCommits} }

func restartFaults() []fault {
	var all []fault
	for name, mode := range map[string]embedded.Mode{"pg-crash": embedded.Immediate, "pg-fast": embedded.Fast} {
		all = append(all, fault{
			name: name,
			about: fmt.Sprintf("PostgreSQL restarts (%s) while a claim, and while a settling, is running in it; "+
				"and when each has committed and its worker was not told", mode),
			n: 1500, over: 14 * time.Second, ours: true,
			strike: func(ctx context.Context, t *trial) error { return t.restartAtMoments(ctx, mode) },
			feels:  []string{string(claimRuns), string(settleRuns), string(claimCommits), string(settleCommits)},
			codes:  []string{workerLost}, most: perOutage,
		})
	}
	if all[0].name > all[1].name {
		all[0], all[1] = all[1], all[0]
	}
	return all
}

// restartAtMoments restarts the database once at each moment.
func (t *trial) restartAtMoments(ctx context.Context, mode embedded.Mode) error {
	for _, m := range moments() {
		if !pause(ctx, restartPause) {
			return ctx.Err()
		}
		caught, release, err := t.hold(ctx, m)
		if err != nil {
			return fmt.Errorf("hold the database for %s: %w", m, err)
		}
		for what, n := range caught {
			t.feel(string(what), n)
		}
		err = t.during(blowRestart, func() error { return t.db.restart(ctx, mode) })
		_ = release(ctx) // what it would let go of has gone down
		if err != nil {
			return err
		}
	}
	return nil
}

// hold brings the database to a standstill at a moment and leaves it so: what
// is there now goes down with it. It returns how many sessions of workers are
// at which moment, and what gives back our own part in it afterwards.
func (t *trial) hold(ctx context.Context, m moment) (map[moment]int, func(context.Context) error, error) {
	ctx, cancel := context.WithTimeout(ctx, holdPatience)
	defer cancel()
	take := t.store.holdStatements
	if m == claimCommits || m == settleCommits {
		take = t.store.holdCommits
	}
	for {
		h, err := take(ctx)
		if err != nil {
			return nil, nil, err
		}
		caught, err := h.await(ctx, m)
		if err == nil && caught[m] > 0 {
			release, err := h.leave(ctx)
			return caught, release, err
		}
		if err := errors.Join(err, h.release(ctx)); err != nil {
			return nil, nil, err
		}
		if !pause(ctx, holdTry) {
			return nil, nil, fmt.Errorf("none came by: %w", context.Cause(ctx))
		}
	}
}

// held is a database that is held up.
type held struct {
	// look says what the workers' sessions are in the middle of.
	look func(context.Context) (map[moment]int, error)
	// release lets everything go on. leave lets nothing go on before the
	// database has gone down, and has it come up as it was; what it returns is
	// called then.
	release func(context.Context) error
	leave   func(context.Context) (func(context.Context) error, error)
}

// await looks for a while whether a session has come to the moment.
func (h held) await(ctx context.Context, m moment) (map[moment]int, error) {
	ticker := time.NewTicker(holdLook)
	defer ticker.Stop()
	for end := time.Now().Add(holdTry); ; {
		caught, err := h.look(ctx)
		if err != nil || caught[m] > 0 || time.Now().After(end) {
			return caught, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-ticker.C:
		}
	}
}
