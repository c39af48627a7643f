package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// openPatience bounds how long everything else may take to end while a
// transaction stays open.
const openPatience = 45 * time.Second

// feltOpen are transactions of the frozen worker that were open.
const feltOpen = "transactions left open"

func freezeOpenFault() fault {
	return fault{
		name: "freeze-tx",
		about: "a worker is stopped with SIGSTOP amid a transaction that claims or settles, and stays so, " +
			"as if its host were gone without a word; it is never woken",
		n: 400, over: 4 * time.Second,
		inject: freezeAmidTransaction, wantSigns: []string{feltOpen}, codes: []string{workerLost}, most: perHit,
	}
}

// freezeAmidTransaction freezes a worker for good while it has a transaction
// open, and waits until all else has ended. If something has not, it kills the
// worker, and the run counts as stuck.
func freezeAmidTransaction(ctx context.Context, t *faultRun) error {
	random := rand.New(rand.NewPCG(t.seed, 0)) // repeatable by seed
	search, cancel := context.WithTimeout(ctx, holdPatience)
	defer cancel()
	for open := 0; open == 0; t.addSign(feltOpen, open) {
		slot := random.IntN(t.workers)
		var resume func()
		var err error
		if open, resume, err = t.freezeOpen(search, slot); err != nil {
			return fmt.Errorf("freeze a worker amid a transaction: %w", err)
		}
		if open == 0 {
			resume()
			continue
		}
		defer t.fleet.kill(slot) // its host is gone
	}
	return t.awaitOthers(ctx)
}

// freezeOpen freezes a worker while statements wait in the database, and counts
// the transactions that are left open when they have run.
func (t *faultRun) freezeOpen(ctx context.Context, slot int) (open int, resume func(), err error) {
	if err := t.waitFor(ctx, holdTry); err != nil {
		return 0, nil, err
	}
	h, err := t.store.holdStatements(ctx)
	if err != nil {
		return 0, nil, err
	}
	_, err = h.await(ctx, claimRuns)
	at, resume, ok := t.fleet.freeze(slot)
	if err = errors.Join(err, h.release(ctx)); err != nil || !ok {
		return 0, func() {}, err
	}
	if err := t.waitFor(ctx, holdTry); err != nil { // the statements run now
		return 0, resume, err
	}
	if open, err = t.store.leftOpen(ctx, holdTry/2); open > 0 {
		t.injections.setDuration(t.injections.add(byFreeze, at), 0)
	}
	return open, resume, err
}

// awaitOthers waits until nothing is left, or it has taken too long.
func (t *faultRun) awaitOthers(ctx context.Context) error {
	if err := t.submittedShare(ctx, 1); err != nil {
		return err
	}
	for end := time.Now().Add(openPatience); ; {
		now, err := t.store.readState(ctx)
		if err != nil || now.left == 0 {
			return err
		}
		if time.Now().After(end) {
			t.mu.Lock()
			t.stuck = now.left
			t.mu.Unlock()
			return nil
		}
		if err := t.waitFor(ctx, pollInterval); err != nil {
			return err
		}
	}
}
