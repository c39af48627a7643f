package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/bench/chaos/counting"
	"github.com/countersign-dev/countersign/bench/chaos/network"
	"github.com/countersign-dev/countersign/bench/process"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/mcp"
)

const (
	delay, jitter = 200 * time.Millisecond, 50 * time.Millisecond
	// databaseRate is the rate of a slow connection to the database, in kilobytes
	// a second, and slowRead the amount read over it to observe that.
	databaseRate = 32
	slowRead     = 32 << 10
	// toolRate is the rate of a slow connection to the tool.
	toolRate = 2
	// databaseCuts is the number of times that connections to the database are
	// cut. After the first cut of those to the tool, breakers keep most calls from
	// it for half a minute.
	databaseCuts, toolCuts = 5, 3
	// networkPause is the time before each disturbance.
	networkPause = 1500 * time.Millisecond
	// databaseSilence is longer than a worker waits for the database, and
	// toolSilence longer than a call may take.
	databaseSilence = 14 * time.Second
	toolSilence     = mcp.DefaultCallTimeout + 5*time.Second
	// impaired is the time for which a network stays slow or late, and probePause
	// the time between two queries over it.
	impaired   = 10 * time.Second
	probePause = 500 * time.Millisecond
	// probeTimeout is the time after which the network counts as silent.
	probeTimeout = 2 * time.Second
)

// The signs of a disturbed network: to the database, and to the tool, as the
// attempts have them.
const (
	signCut     = "connections cut"
	signSilence = "operations timed out"
	signDelay   = "late answers"
	signSlow    = "slow reads"

	signLost     = "attempts without an answer"
	signTimeouts = "attempts timed out"
	signLong     = "slow attempts"
)

func networkFaults() []fault {
	late := fmt.Sprintf("every answer comes %s (± %s) late", delay, jitter)
	slow := "answers come at %d kB/s on each connection"
	cutTimes := "every connection is reset, %d times"
	silent := "nothing comes through for %s, and nobody is told"
	toDatabase := func(name, about string, n int, over time.Duration, f fault) fault {
		f.name, f.about, f.n, f.over, f.proxy = "db-"+name, "between workers and PostgreSQL, "+about, n, over, beforeDatabase
		return f
	}
	toTool := func(name, about string, over time.Duration, f fault) fault {
		f.name, f.about, f.n, f.over, f.proxy = "tool-"+name, "between workers and the tool, "+about, 500, over, beforeTool
		return f
	}
	return []fault{
		toDatabase("cut", fmt.Sprintf(cutTimes, databaseCuts), 1500, 9*time.Second, fault{
			inject: cut(databaseCuts), signs: []string{signCut}, codes: []string{workerLost}, most: perOutage,
		}),
		toDatabase("drop", fmt.Sprintf(silent, databaseSilence), 1500, 18*time.Second, fault{
			inject: disturb(network.Silence(), probeSilence), signs: []string{signSilence}, codes: []string{workerLost}, most: perOutage,
		}),
		toDatabase("delay", late, 500, 9*time.Second, fault{
			inject: disturb(network.Delayed(delay, jitter), probeEvery(signDelay, "SELECT 1", delay-jitter)),
			signs:  []string{signDelay}, most: noneUnknown,
		}),
		toDatabase("slow", fmt.Sprintf(slow, databaseRate), 500, 9*time.Second, fault{
			inject: disturb(network.Slow(databaseRate),
				probeEvery(signSlow, fmt.Sprintf("SELECT repeat('x', %d)", slowRead), slowRead*time.Second/(databaseRate*1000)/2)),
			signs: []string{signSlow}, most: noneUnknown,
		}),
		toTool("cut", fmt.Sprintf(cutTimes, toolCuts), 6*time.Second, fault{
			inject: cut(toolCuts), signs: []string{signLost}, codes: lostCodes(), most: perOutage,
		}),
		toTool("drop", fmt.Sprintf(silent, toolSilence), 6*time.Second, fault{
			inject: disturb(network.Silence(), waitFor(toolSilence)), signs: []string{signTimeouts}, codes: lostCodes(),
			// A second round of calls begins when the first has timed out.
			most: func(e evidence) int { return 2 * perOutage(e) },
		}),
		toTool("delay", late, 9*time.Second, fault{
			inject: disturb(network.Delayed(delay, jitter), waitFor(impaired)), signs: []string{signLong}, most: noneUnknown,
		}),
		toTool("slow", fmt.Sprintf(slow, toolRate), 9*time.Second, fault{
			inject: disturb(network.Slow(toolRate), waitFor(impaired)), signs: []string{signLong}, most: noneUnknown,
		}),
	}
}

// cut resets all connections through the proxy, again and again, and counts the
// database's sessions that this ended.
func cut(times int) injector {
	return func(ctx context.Context, t *faultRun) error {
		for range times {
			if err := process.Wait(ctx, networkPause); err != nil {
				return err
			}
			before, err := t.db.Sessions(ctx)
			if err == nil {
				err = t.during(byNetwork, t.proxy.Cut)
			}
			if err = errors.Join(err, process.Wait(ctx, pollInterval)); err != nil {
				return err
			}
			now, err := t.db.Sessions(ctx)
			if err != nil {
				return err
			}
			t.addSign(signCut, len(slices.DeleteFunc(before, func(pid int32) bool { return slices.Contains(now, pid) })))
		}
		return nil
	}
}

// disturb applies toxics to all connections through the proxy while watch runs.
func disturb(toxics []network.Toxic, watch injector) injector {
	return func(ctx context.Context, t *faultRun) error {
		if err := process.Wait(ctx, networkPause); err != nil {
			return err
		}
		return t.during(byNetwork, func() error {
			return t.proxy.With(ctx, toxics, func() error { return watch(ctx, t) })
		})
	}
}

func waitFor(d time.Duration) injector {
	return func(ctx context.Context, _ *faultRun) error { return process.Wait(ctx, d) }
}

// probeSilence verifies that the database is silent, and counts the operations
// that workers gave up.
func probeSilence(ctx context.Context, t *faultRun) error {
	if took, err := t.probe(ctx, "SELECT 1", probeTimeout); err == nil {
		return fmt.Errorf("the network is not silent: an answer came after %s", took)
	}
	if err := process.Wait(ctx, databaseSilence-probeTimeout); err != nil {
		return err
	}
	return errors.Join(t.addLogged(signSilence, "worker waits for the database", 0), t.addLogged(signSilence, "leases were not renewed", 0))
}

// probeEvery repeats a query to the database, and counts those that took at
// least least.
func probeEvery(sign, query string, least time.Duration) injector {
	return func(ctx context.Context, t *faultRun) error {
		end := time.Now().Add(impaired)
		return process.Poll(ctx, probePause, func() (bool, error) {
			took, err := t.probe(ctx, query, 10*probeTimeout)
			if err == nil && took >= least {
				t.addSign(sign, 1)
			}
			return time.Now().After(end), err
		})
	}
}

// probe returns the duration of a query through the workers' proxy.
func (t *faultRun) probe(ctx context.Context, query string, limit time.Duration) (took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := pgx.Connect(ctx, t.databaseURL)
	if err != nil {
		return 0, errors.New("the database cannot be reached through the proxy") // the cause may quote the URL
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	began := time.Now()
	rows, err := conn.Query(ctx, query, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return 0, fmt.Errorf("query through the proxy: %w", err)
	}
	rows.Close()
	return time.Since(began), rows.Err()
}

const (
	// toolFaultFor is the duration of a tool's fault, toolFaultShare the share of
	// its calls that is affected.
	toolFaultFor   = 6 * time.Second
	toolFaultShare = 0.12
)

// The signs that the tool had a fault.
const (
	signFaulty = "answers replaced"
	signDeaths = "tools killed"
	signBusy   = "calls answered with 429"
)

func toolFaults() []fault {
	of := func(kind counting.Fault, about string, codes ...string) fault {
		return fault{
			name: "tool-" + string(kind), about: about, n: 400, over: 6 * time.Second,
			tool:   counting.Setting{Fault: kind, Share: toolFaultShare},
			inject: clearToolFault, signs: []string{signFaulty}, codes: codes, most: perFaulty,
		}
	}
	busy := of(counting.Busy, fmt.Sprintf("the tool answers 429 with Retry-After: %.0f", counting.BusyFor.Seconds()))
	busy.signs, busy.most = []string{signBusy}, noneUnknown
	dies := of(counting.Dies, "the tool's process dies after an effect and before its answer, with all other calls, and is started again", lostCodes()...)
	dies.tool.Share = 1
	dies.inject, dies.signs, dies.most = awaitDeath, []string{signDeaths}, perOutage
	return []fault{
		of(counting.Hangs, "the tool does not answer some calls at all", source.CodeTimeout),
		busy,
		of(counting.Down, "the tool answers some calls with 503, before or after the effect", source.CodeServerError),
		// Noise may happen to be a stream of events that has none.
		of(counting.Garbage, "the tool answers some calls with invalid bytes", source.CodeMalformed, source.CodeLost),
		of(counting.Huge, "the tool answers some calls with 50 MB", source.CodeOversized),
		dies,
	}
}

// clearToolFault ends the tool's fault after a while.
func clearToolFault(ctx context.Context, t *faultRun) error {
	return t.during(byTool, func() error {
		if err := process.Wait(ctx, toolFaultFor); err != nil {
			return err
		}
		return t.tool.SetFault(ctx, counting.Setting{})
	})
}

// awaitDeath waits until the tool has died.
func awaitDeath(ctx context.Context, t *faultRun) error {
	return t.during(byTool, func() error {
		err := process.Poll(ctx, pollInterval/10, func() (bool, error) { return t.tool.Restarts() > 0, nil })
		t.addSign(signDeaths, t.tool.Restarts())
		return err
	})
}
