package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/bench/process"
	"github.com/countersign-dev/countersign/internal/action/fence"
	"github.com/countersign-dev/countersign/internal/postgres"
)

const (
	// noticedAfter is the time from the end of a primary to the promotion of a standby, and
	// fencedAfter that from the promotion to the end of a frozen primary: longer than a
	// worker waits for the database.
	noticedAfter = 3 * time.Second
	fencedAfter  = 12 * time.Second
	// lagsFor is how long the standbys receive nothing, at least.
	lagsFor = 1500 * time.Millisecond
	// splitFor is the time for which all connections are made to a primary that came back:
	// longer than workers and agents wait for the database, twice.
	splitFor = 24 * time.Second
)

// The signs of a failover.
const (
	// signMoved counts the sessions of workers and agents on the promoted server, signReopened
	// the fences that opened by themselves.
	signMoved    = "sessions on the promoted server"
	signReopened = "fences opened by workers"
	// signSplit counts, at its most, the sessions on the primary that came back, and
	// signHanging those whose commit waited there for a standby.
	signSplit   = "sessions on the old primary"
	signHanging = "commits that waited there"
)

// failoverFaults returns the faults after which a standby is promoted. The load balancer is
// the list of hosts in DATABASE_URL.
func failoverFaults() []fault {
	promoted := func(name, about string, over time.Duration, inject injector) fault {
		return fault{
			name: "failover-" + name, about: "the primary " + about + ", and a synchronous standby is promoted",
			n: 1500, over: over, ownServer: true, standbys: synchronous,
			inject: inject, signs: []string{signMoved, signReopened}, codes: []string{workerLost}, most: perOutage,
		}
	}
	split := promoted("", "", 30*time.Second, splitBrain)
	split.name = "split-brain"
	split.about = "after a synchronous failover the old primary comes back; half of the connections, and then all, are made to it"
	split.signs = append(split.signs, signSplit, signHanging)
	return []fault{
		promoted("kill", "is killed with SIGKILL, with all its processes", 14*time.Second, failOver(killPrimary)),
		promoted("freeze", fmt.Sprintf("is stopped with SIGSTOP, and killed %s later", fencedAfter), 24*time.Second, failOver(freezePrimary)),
		promoted("cut", "is cut off from clients and standbys, and goes on running", 14*time.Second, failOver(cutPrimary)),
		{
			name: "failover-lag",
			about: fmt.Sprintf("the processes that send the log to standbys are stopped with SIGSTOP while %d actions are settled, "+
				"the primary is killed, and a standby is promoted; the database is held, recovered and resumed, and all is proposed again", lostAtLeast),
			n: 1000, over: 12 * time.Second, ownServer: true, standbys: asynchronous, loses: true,
			inject: failOverLagging, signs: []string{signHeld, signSetBack, signForgotten, signReported},
			codes: []string{workerLost, codeRecovered}, most: perOutage,
		},
		split,
	}
}

func killPrimary(ctx context.Context, t *faultRun) (end func() error, err error) {
	return nil, t.cluster.Kill(ctx)
}

func cutPrimary(ctx context.Context, t *faultRun) (end func() error, err error) {
	return nil, t.cluster.CutOff(ctx)
}

func freezePrimary(ctx context.Context, t *faultRun) (end func() error, err error) {
	return func() error {
		if err := process.Wait(ctx, fencedAfter); err != nil {
			return err
		}
		return t.cluster.Kill(ctx)
	}, t.cluster.Freeze(ctx)
}

// failOver ends the primary's service in one way and promotes a standby.
func failOver(fail func(context.Context, *faultRun) (end func() error, err error)) injector {
	return func(ctx context.Context, t *faultRun) error {
		if err := t.awaitSubmitted(ctx, 0.6); err != nil {
			return err
		}
		before, err := t.fence(ctx)
		if err != nil {
			return err
		}
		var end func() error
		err = t.during(byFailover, func() (err error) {
			if end, err = fail(ctx, t); err != nil {
				return err
			}
			return t.promote(ctx)
		})
		if err != nil {
			return err
		}
		if end != nil {
			if err := end(); err != nil {
				return err
			}
		}
		return t.awaitReopened(ctx, before)
	}
}

// promote promotes a standby, some time after the primary was last there.
func (t *faultRun) promote(ctx context.Context) error {
	if err := process.Wait(ctx, noticedAfter); err != nil {
		return err
	}
	return t.cluster.FailOver(ctx)
}

func (t *faultRun) fence(ctx context.Context) (fence.Status, error) {
	return postgres.InTxReturning(ctx, t.db.Pool, postgres.Worker(), func(tx pgx.Tx) (fence.Status, error) { return fence.Read(ctx, tx) })
}

// awaitReopened waits until workers have checked the promoted server, and counts the
// sessions there.
func (t *faultRun) awaitReopened(ctx context.Context, before fence.Status) error {
	ctx, cancel := context.WithTimeout(ctx, heldTimeout)
	defer cancel()
	err := process.Poll(ctx, pollInterval, func() (bool, error) {
		now, err := t.fence(ctx)
		return err == nil && now.Epoch > before.Epoch && now.State == fence.StateOpen && now.SameServer, nil
	})
	if err != nil {
		now, _ := t.fence(ctx)
		return fmt.Errorf("the fence of the promoted server is %s (%s): %w", now.State, now.Why(), err)
	}
	t.addSign(signReopened, 1)
	sessions, err := t.db.Sessions(ctx)
	t.addSign(signMoved, len(sessions))
	return err
}

// failOverLagging loses commits in a failover, recovers the database as a person does, and
// proposes everything again.
func failOverLagging(ctx context.Context, t *faultRun) error {
	if err := t.awaitSubmitted(ctx, 0.6); err != nil {
		return err
	}
	if err := t.cluster.StopSenders(ctx); err != nil {
		return err
	}
	until := time.Now().Add(lagsFor)
	before, err := t.awaitLosses(ctx, true)
	if err != nil {
		return err
	}
	if err := process.Wait(ctx, time.Until(until)); err != nil {
		return err
	}
	err = t.during(byFailover, func() error {
		if err := t.cluster.Kill(ctx); err != nil {
			return err
		}
		return t.promote(ctx)
	})
	if err != nil {
		return err
	}
	after, err := t.settled(ctx)
	if err != nil {
		return err
	}
	t.addSign(signSetBack, before-after)
	return t.recoverAndRepeat(ctx)
}

// splitBrain fails over, starts the old primary again, and ends half of the sessions on the
// promoted server, and later all: clients connect to the first host that takes writes.
func splitBrain(ctx context.Context, t *faultRun) error {
	if err := failOver(killPrimary)(ctx, t); err != nil {
		return err
	}
	if err := process.Wait(ctx, noticedAfter); err != nil {
		return err
	}
	return t.during(byFailover, func() error {
		if err := t.cluster.Return(ctx); err != nil {
			return err
		}
		if err := t.cluster.EndHalf(ctx); err != nil {
			return err
		}
		if err := process.Wait(ctx, noticedAfter); err != nil {
			return err
		}
		if err := t.cluster.Cut(); err != nil {
			return err
		}
		if err := t.watchSplit(ctx); err != nil {
			return err
		}
		return t.cluster.Kill(ctx)
	})
}

// watchSplit counts the sessions on the old primary for a time.
func (t *faultRun) watchSplit(ctx context.Context) error {
	var most, mostWaiting int
	end := time.Now().Add(splitFor)
	err := process.Poll(ctx, pollInterval, func() (bool, error) {
		sessions, waiting, err := t.cluster.OldSessions(ctx)
		most, mostWaiting = max(most, sessions), max(mostWaiting, waiting)
		return time.Now().After(end), err
	})
	t.addSign(signSplit, most)
	t.addSign(signHanging, mostWaiting)
	return err
}
