package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/countersign-dev/countersign/bench/application"
	"github.com/countersign-dev/countersign/bench/chaos/counting"
	"github.com/countersign-dev/countersign/bench/chaos/database"
	"github.com/countersign-dev/countersign/bench/chaos/load"
	"github.com/countersign-dev/countersign/bench/chaos/network"
	"github.com/countersign-dev/countersign/bench/chaos/program"
	"github.com/countersign-dev/countersign/bench/process"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

const (
	// pollInterval is the poll interval of the database.
	pollInterval = 100 * time.Millisecond
	// progressInterval is the interval at which progress is printed.
	progressInterval = 2 * time.Second
	// settleTimeout is the time after the last injection within which everything
	// must have ended, except for some leases. A call may take half a minute, and
	// a breaker may stay open as long.
	settleTimeout = 2 * time.Minute
)

// plan configures one run.
type plan struct {
	classes     []envelope.Effect
	n           int // actions per class
	workers     int
	concurrency int
	killEvery   time.Duration
	lease       time.Duration
	restarts    int
	over        time.Duration
	server      counting.Config
	seed        uint64
}

// total returns the number of actions.
func (p plan) total() int { return p.n * len(p.classes) }

// class returns the class of an action's number: classes alternate.
func (p plan) class(n int) envelope.Effect { return p.classes[n%len(p.classes)] }

// faultRun is one run of a plan under one fault.
type faultRun struct {
	plan
	fault fault
	db    *database.Server
	// cluster is db with its standbys; nil without standbys.
	cluster *database.Cluster
	dir     string // for the tool's journal
	log     *program.Log
	stdout  io.Writer
	// program is cmd/worker.
	program string

	tool      *counting.Process
	agent     *load.Agent
	reader    database.Reader
	workerSet *process.Set
	proxy     *network.Proxy // nil without a proxy
	// databaseURL and toolURL are where workers find the servers.
	databaseURL, toolURL string
	injections           *injections
	began                time.Time

	mu    sync.Mutex
	signs map[string]int

	submittedAll chan struct{} // closed when every action is submitted
	claimed      chan struct{} // closed when each of them has been claimed once
	injected     chan struct{} // closed when nothing is broken any more
}

// addSign counts a sign of the fault.
func (t *faultRun) addSign(sign string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.signs[sign] += n
}

// addLogged counts, as a sign, the lines of the workers' log with a message,
// from workers whose clocks are wrong by at least wrong.
func (t *faultRun) addLogged(sign, msg string, wrong time.Duration) error {
	n, err := t.log.Count(msg, wrong)
	t.addSign(sign, n)
	return err
}

// during records an injection that lasts as long as fn runs.
func (t *faultRun) during(kind string, fn func() error) error {
	one := t.injections.add(kind, time.Now())
	err := fn()
	t.injections.setDuration(one, time.Since(one.at))
	return err
}

// run executes the plan. Its error is that it could not be executed, not that a
// property is violated.
func (t *faultRun) run(ctx context.Context) (_ outcome, err error) {
	t.signs = make(map[string]int)
	t.injections = &injections{lease: t.lease}
	t.submittedAll, t.claimed, t.injected = make(chan struct{}), make(chan struct{}), make(chan struct{})
	t.server.Journal = filepath.Join(t.dir, t.fault.name+".journal")
	t.server.Call *= time.Duration(max(1, t.fault.slow))
	if t.tool, err = counting.Start(ctx, t.server); err != nil {
		return outcome{}, err
	}
	defer func() { err = errors.Join(err, t.tool.Stop()) }()
	if err := t.startProxy(); err != nil {
		return outcome{}, err
	}
	if t.proxy != nil {
		defer t.proxy.Close()
	}
	cache := settings.NewCache()
	tenant, err := load.NewTenant(ctx, t.db.Pool, cache, "chaos-"+t.fault.name, t.toolURL, t.classes)
	if err != nil {
		return outcome{}, err
	}
	if t.fault.tool.Fault != counting.Healthy { // not earlier: the tenant has listed the tools
		if err := t.tool.SetFault(ctx, t.fault.tool); err != nil {
			return outcome{}, err
		}
	}
	app, done, err := application.Connect(ctx, t.db.Clients, tenant)
	if err != nil {
		return outcome{}, err
	}
	defer done()
	t.agent = load.New(intake.New(t.db.Clients, cache, intake.Config{}), app, tenant, t.classes)
	t.reader = database.Reader{Server: t.db, Tenant: tenant}
	if err := t.log.Begin(); err != nil {
		return outcome{}, err
	}
	if t.fault.loses {
		if err := t.awaitOthersGone(ctx); err != nil {
			return outcome{}, err
		}
	}
	t.began = time.Now()
	t.workerSet = process.NewSet(t.workers, t.startWorker)

	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { defer close(t.submittedAll); return t.submit(gctx) })
	g.Go(func() error { defer close(t.injected); return t.fault.inject(gctx, t) })
	var ended time.Time
	g.Go(func() error {
		var err error
		ended, err = t.watch(gctx)
		return err
	})
	runErr := g.Wait()
	exits, late, stopErr := t.workerSet.Stop()
	if err := errors.Join(runErr, stopErr); err != nil {
		return outcome{}, err
	}
	return t.collect(ctx, ended, exits, late)
}

// submit submits all actions: the first half as fast as possible, so that there
// is a backlog, and the rest spread over a time.
func (t *faultRun) submit(ctx context.Context) error {
	n := t.total()
	batches := (n - n/2 + load.Batch - 1) / load.Batch
	for from := 0; from < n; from += load.Batch {
		if from > n/2 {
			if err := process.Wait(ctx, t.over/time.Duration(max(batches, 1))); err != nil {
				return err
			}
		}
		if err := t.agent.Submit(ctx, from, min(load.Batch, n-from)); err != nil {
			return err
		}
	}
	return nil
}

// startProxy puts a proxy before a server, if the fault needs one.
func (t *faultRun) startProxy() error {
	t.databaseURL, t.toolURL = t.db.URL, t.tool.URL
	address := &t.toolURL
	switch t.fault.proxy {
	case noProxy:
		return nil
	case beforeDatabase:
		address = &t.databaseURL
	case beforeTool:
	}
	u, err := url.Parse(*address)
	if err != nil || u.Host == "" {
		return fmt.Errorf("the URL of the %s has no host that a proxy could be put before", t.fault.proxy)
	}
	if t.proxy, err = network.New(t.fault.name, u.Host); err != nil {
		return err
	}
	u.Host = t.proxy.Address()
	*address = u.String()
	return nil
}

// collect reads the records of Countersign and the tool, and checks them.
func (t *faultRun) collect(ctx context.Context, ended time.Time, exits []time.Time, late int) (outcome, error) {
	actions, err := t.reader.Actions(ctx)
	if err != nil {
		return outcome{}, fmt.Errorf("read actions: %w", err)
	}
	uneven, err := t.reader.UnevenClaims(ctx)
	if err != nil {
		return outcome{}, fmt.Errorf("read claims: %w", err)
	}
	if refused, err := t.reader.Refused(ctx); err != nil || refused > 0 {
		return outcome{}, errors.Join(err, fmt.Errorf("%d proposals in SQL were refused", refused))
	}
	counts, err := counting.ReadJournal(t.server.Journal)
	if err != nil {
		return outcome{}, err
	}
	o := outcome{
		evidence: evidence{fault: t.fault, plan: t.plan, injections: t.injections.list(), signs: t.signs, actions: actions, uneven: uneven, server: counts, late: late},
		exits:    len(exits), repeated: int(t.agent.Again.Load()), took: ended.Sub(t.began),
	}
	o.crashes = o.unexplained(exits)
	if err := t.addFinalSigns(ctx, o.evidence); err != nil {
		return outcome{}, err
	}
	o.totals, o.properties = o.check()
	return o, nil
}

// addFinalSigns counts the signs that are known only at the end.
func (t *faultRun) addFinalSigns(ctx context.Context, e evidence) error {
	t.addSign(signKills, e.countOrphans(byKill))
	t.addSign(signFreezes, e.countOrphans(byFreeze))
	t.addSign(signBusy, e.server.Busy)
	t.addSign(signFaulty, sum(e.server.Faulty))
	a, err := t.reader.Attempts(ctx, delay-jitter)
	t.addSign(signLost, a.Lost)
	t.addSign(signTimeouts, a.TimedOut)
	t.addSign(signLong, a.Long)
	return err
}

// awaitSubmitted waits until a share of the actions is submitted.
func (t *faultRun) awaitSubmitted(ctx context.Context, share float64) error {
	return process.Poll(ctx, pollInterval, func() (bool, error) {
		return float64(t.agent.Submitted.Load()) >= share*float64(t.total()), nil
	})
}

// awaitOthersGone waits until a recovery does not wait for the reports of workers that
// earlier faults killed: it does for those that were recorded in the last four leases.
func (t *faultRun) awaitOthersGone(ctx context.Context) error {
	return process.Poll(ctx, pollInterval, func() (gone bool, err error) {
		const past = "SELECT NOT EXISTS (SELECT 1 FROM workers w WHERE NOT w.ended AND w.seen_at + 4 * w.lease > now())"
		err = t.db.Pool.QueryRow(ctx, past).Scan(&gone)
		return gone, err
	})
}

// watch polls the state until everything has ended, or should have. It returns
// when that was.
func (t *faultRun) watch(ctx context.Context) (time.Time, error) {
	var printed, calm, began time.Time
	var now database.State
	err := process.Poll(ctx, pollInterval, func() (bool, error) {
		began = time.Now()
		state, err := t.reader.State(ctx)
		if err == nil {
			now = state
			t.injections.update(began, now)
		}
		if began.Sub(printed) >= progressInterval {
			printed = began
			t.printProgress(began, now, err != nil)
		}
		if err != nil {
			return false, nil // the database may be down by the fault
		}
		if now.Fresh == 0 && closed(t.submittedAll) && !closed(t.claimed) {
			close(t.claimed)
		}
		if calm.IsZero() && closed(t.injected) && closed(t.submittedAll) {
			calm = began
		}
		return !calm.IsZero() && (now.Open == 0 || began.Sub(calm) > settleTimeout+4*t.lease), nil
	})
	if err == nil {
		t.printProgress(began, now, false)
	}
	return began, err
}

// closed reports whether a channel is closed.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
