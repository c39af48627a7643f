package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/countersign-dev/countersign/internal/postgres/embedded"
)

// crash is how a server ends without a clean shutdown.
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

// lockPoint is what a worker's session is doing when the database goes away.
type lockPoint string

// The lock points. One whose statement runs is undone by the crash; one that
// commits is there afterwards, but its worker was never told.
const (
	claimRuns     lockPoint = "claims rolled back"
	claimCommits  lockPoint = "claims committed but not confirmed"
	settleRuns    lockPoint = "settlements rolled back"
	settleCommits lockPoint = "settlements committed but not confirmed"
)

func lockPoints() []lockPoint { return []lockPoint{claimRuns, settleRuns, claimCommits, settleCommits} }

func restartFaults() []fault {
	var all []fault
	for name, mode := range map[string]embedded.Mode{"pg-crash": embedded.Immediate, "pg-fast": embedded.Fast} {
		all = append(all, fault{
			name: name,
			about: fmt.Sprintf("PostgreSQL restarts (%s) while a claim, and while a settling, is running in it; "+
				"and when each has committed and its worker was not told", mode),
			n: 1500, over: 14 * time.Second, ours: true,
			inject:    func(ctx context.Context, t *faultRun) error { return t.restartAtMoments(ctx, mode) },
			wantSigns: []string{string(claimRuns), string(settleRuns), string(claimCommits), string(settleCommits)},
			codes:     []string{workerLost}, most: perOutage,
		})
	}
	if all[0].name > all[1].name {
		all[0], all[1] = all[1], all[0]
	}
	return all
}

// restartAtMoments restarts the database once at each lock point.
func (t *faultRun) restartAtMoments(ctx context.Context, mode embedded.Mode) error {
	for _, m := range lockPoints() {
		if !pause(ctx, restartPause) {
			return ctx.Err()
		}
		caught, release, err := t.hold(ctx, m)
		if err != nil {
			return fmt.Errorf("hold the database for %s: %w", m, err)
		}
		for what, n := range caught {
			t.addSign(string(what), n)
		}
		err = t.during(byRestart, func() error { return t.db.restart(ctx, mode) })
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
func (t *faultRun) hold(ctx context.Context, m lockPoint) (map[lockPoint]int, func(context.Context) error, error) {
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
	// readState says what the workers' sessions are in the middle of.
	look func(context.Context) (map[lockPoint]int, error)
	// release lets everything go on. leave lets nothing go on before the
	// database has gone down, and has it come up as it was; what it returns is
	// called then.
	release func(context.Context) error
	leave   func(context.Context) (func(context.Context) error, error)
}

// await looks for a while whether a session has come to the moment.
func (h held) await(ctx context.Context, m lockPoint) (map[lockPoint]int, error) {
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
