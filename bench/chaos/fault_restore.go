package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/bench/process"
	"github.com/countersign-dev/countersign/internal/action/fence"
	kind "github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/pause"
)

const (
	// lostAtLeast is the number of settled actions that the database loses, and an eighth of
	// all in a short run.
	lostAtLeast = 200
	// heldTimeout bounds the time until the database is held and can be recovered.
	heldTimeout = time.Minute
	// codeRecovered is the code of an action that a recovery ended, codeSentBefore that of
	// a repeated proposal whose call a worker reported.
	codeRecovered, codeSentBefore = "recovered", "sent_before"
)

// The signs of a database that was set back.
const (
	signHeld     = "databases held"
	signSetBack  = "settled actions lost"
	signReported = "calls reported by surviving workers"
	// signForgotten counts the accepted actions that the database lost.
	signForgotten = "accepted actions lost"
)

// restoreFaults returns the faults after which a person recovers the database.
func restoreFaults() []fault {
	return []fault{{
		name: "set-back",
		about: fmt.Sprintf("PostgreSQL crashes and its data folder is set back by at least %d settled actions, as on a standby that lagged; "+
			"the database is held, recovered and resumed, and all is proposed again", lostAtLeast),
		n: 1000, over: 12 * time.Second, ownServer: true, loses: true,
		inject: setBack, signs: []string{signHeld, signSetBack, signReported}, codes: []string{workerLost, codeRecovered}, most: perOutage,
	}}
}

// setBack sets the database back while actions are submitted and sent, recovers it as a
// person does, and proposes everything again.
func setBack(ctx context.Context, t *faultRun) error {
	if err := t.awaitSubmitted(ctx, 0.6); err != nil {
		return err
	}
	// A database that no worker had adopted has no commits that could be missing.
	err := process.Poll(ctx, pollInterval, func() (bool, error) {
		n, err := t.settled(ctx)
		return n > 0, err
	})
	if err != nil {
		return err
	}
	if err := t.during(byRestart, func() error { return t.db.Snapshot(ctx) }); err != nil {
		return err
	}
	before, err := t.awaitLosses(ctx, false)
	if err != nil {
		return err
	}
	if err := t.during(byRestart, func() error { return t.db.SetBack(ctx) }); err != nil {
		return err
	}
	after, err := t.settled(ctx)
	if err != nil {
		return err
	}
	t.addSign(signSetBack, before-after)
	return t.recoverAndRepeat(ctx)
}

// awaitLosses waits until enough actions are settled that the database can lose, and one is
// accepted if that is asked for. It returns the number of all that are settled.
func (t *faultRun) awaitLosses(ctx context.Context, accepted bool) (settled int, err error) {
	ctx, cancel := context.WithTimeout(ctx, heldTimeout)
	defer cancel()
	first, err := t.settled(ctx)
	if err != nil {
		return 0, err
	}
	stored, err := t.reader.Stored(ctx)
	if err != nil {
		return 0, err
	}
	err = process.Poll(ctx, pollInterval, func() (bool, error) {
		now, err := t.reader.Stored(ctx)
		if err != nil || accepted && now == stored {
			return false, err
		}
		settled, err = t.settled(ctx)
		return settled >= first+min(lostAtLeast, t.total()/8), err
	})
	if err != nil {
		return 0, fmt.Errorf("wait for actions that the database can lose: %w", err)
	}
	return settled, nil
}

// recoverAndRepeat recovers the database as a person does, and has the agents propose
// everything again.
func (t *faultRun) recoverAndRepeat(ctx context.Context) error {
	if err := t.recover(ctx); err != nil {
		return err
	}
	if err := t.awaitSubmitted(ctx, 1); err != nil {
		return err
	}
	stored, err := t.reader.Stored(ctx)
	if err != nil {
		return err
	}
	t.addSign(signForgotten, t.total()-stored)
	return t.agent.Repeat(ctx, 0, t.total())
}

// settled counts the actions that have ended.
func (t *faultRun) settled(ctx context.Context) (n int, err error) {
	now, err := t.reader.State(ctx)
	for _, ended := range now.Ended {
		n += ended
	}
	return n, err
}

// recover waits until the database is held and every worker has reported, recovers it,
// and resumes.
func (t *faultRun) recover(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, heldTimeout)
	defer cancel()
	var recovered fence.Plan
	err := process.Poll(ctx, pollInterval, func() (bool, error) {
		err := postgres.InTx(ctx, t.db.Pool, postgres.Admin(), func(tx pgx.Tx) error {
			order := fence.Recovery{By: "chaos"}
			found, err := order.Prepare(ctx, tx)
			if err != nil {
				return err
			}
			if found.Silent > 0 {
				return errReports
			}
			recovered, _, err = order.Apply(ctx, tx)
			return err
		})
		if errors.Is(err, errReports) || kind.KindOf(err) == kind.Conflict {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("recover the database: %w", err)
	}
	t.addSign(signHeld, 1)
	t.addSign(signReported, int(recovered.Recorded+recovered.Lost))
	fmt.Fprintf(t.stdout, "recovered: %d actions for a person, %d go on; of %d reported calls the database had lost the actions of %d\n",
		recovered.Unknown, recovered.Sendable, recovered.Recorded+recovered.Lost, recovered.Lost)
	return postgres.InTx(ctx, t.db.Pool, postgres.Admin(), func(tx pgx.Tx) error {
		return pause.LiftEverything(ctx, tx, "all is well", "chaos")
	})
}

// errReports is the error while workers have not reported their calls.
var errReports = errors.New("workers have not reported")
