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

	"github.com/countersign-dev/countersign/bench/chaos/counting"
	"github.com/countersign-dev/countersign/bench/chaos/database"
	"github.com/countersign-dev/countersign/bench/chaos/network"
	"github.com/countersign-dev/countersign/bench/chaos/process"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

const (
	// pollInterval is how often the database is polled.
	pollInterval = 100 * time.Millisecond
	// progressInterval is how often progress is printed.
	progressInterval = 2 * time.Second
	// settleTimeout is how long after the last injection everything must have
	// ended, besides some leases. A call may take half a minute, and as long
	// does a breaker stay open.
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

// total returns how many actions there are.
func (p plan) total() int { return p.n * len(p.classes) }

// class returns the class of an action's number: classes alternate.
func (p plan) class(n int) envelope.Effect { return p.classes[n%len(p.classes)] }

// faultRun is one run of a plan under one fault.
type faultRun struct {
	plan
	fault  fault
	db     *database.Server
	dir    string // for the tool's journal
	log    *workersLog
	stdout io.Writer
	// program is cmd/worker; empty for the worker in this program.
	program string

	tool      *tool
	agent     *agent
	reader    database.Reader
	workerSet *process.Set
	proxy     *network.Proxy // nil without a proxy
	// databaseURL and toolURL are where workers find the servers.
	databaseURL, toolURL string
	injections           *injections
	began                time.Time

	mu    sync.Mutex
	signs map[string]int
	// stuck counts the actions that ended only after a worker was killed for them.
	stuck int

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
	if t.tool, err = startTool(ctx, t.server); err != nil {
		return outcome{}, err
	}
	defer func() { err = errors.Join(err, t.tool.stop()) }()
	if err := t.startProxy(); err != nil {
		return outcome{}, err
	}
	if t.proxy != nil {
		defer t.proxy.Close()
	}
	cache := settings.NewCache()
	tenant, err := newTenant(ctx, t.db.Pool, cache, t.fault.name, t.toolURL, t.classes)
	if err != nil {
		return outcome{}, err
	}
	if t.fault.tool.Fault != counting.Healthy { // not earlier: the tenant has listed the tools
		if err := t.tool.setFault(ctx, t.fault.tool); err != nil {
			return outcome{}, err
		}
	}
	t.agent = &agent{intake: intake.New(t.db.Pool, cache, intake.Config{}), tenant: tenant, plan: t.plan}
	t.reader = database.Reader{Server: t.db, Tenant: tenant}
	if err := t.log.begin(); err != nil {
		return outcome{}, err
	}
	t.began = time.Now()
	t.workerSet = process.NewSet(t.workers, t.startWorker)

	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { defer close(t.submittedAll); return t.agent.submit(gctx) })
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

// startProxy puts a proxy before a server, if the fault needs one.
func (t *faultRun) startProxy() error {
	t.databaseURL, t.toolURL = t.db.URL, t.tool.url
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

func (t *faultRun) startWorker(slot, generation int) (*process.Child, error) {
	c := workerConfig{
		URL: t.databaseURL, ID: fmt.Sprintf("%s-%d.%d", t.fault.name, slot+1, generation),
		Concurrency: t.concurrency, Lease: t.lease,
	}
	if t.fault.skewed {
		c.Skew = skewOf(slot)
	}
	return c.start(t.program, t.log.file)
}

// collect reads what Countersign and the tool have recorded, and checks it.
func (t *faultRun) collect(ctx context.Context, ended time.Time, exits []time.Time, late int) (outcome, error) {
	actions, err := t.reader.Actions(ctx)
	if err != nil {
		return outcome{}, fmt.Errorf("read actions: %w", err)
	}
	counts, err := counting.ReadJournal(t.server.Journal)
	if err != nil {
		return outcome{}, err
	}
	if err := t.addFinalSigns(ctx, counts); err != nil {
		return outcome{}, err
	}
	all := t.injections.list()
	o := outcome{
		evidence: evidence{
			fault: t.fault, plan: t.plan, injections: all, signs: t.signs, stuck: t.stuck, actions: actions, server: counts, held: heldActions(all),
			late: late, crashes: unexplained(exits, all),
		},
		exits: len(exits), repeated: int(t.agent.again.Load()), took: ended.Sub(t.began), worst: worst(all),
	}
	o.totals, o.properties = o.check()
	return o, nil
}

// addFinalSigns counts the signs that are known only at the end.
func (t *faultRun) addFinalSigns(ctx context.Context, counts *counting.Counts) error {
	all := t.injections.list()
	t.addSign(signKills, countOrphans(all, byKill))
	t.addSign(signFreezes, countOrphans(all, byFreeze))
	t.addSign(signBusy, counts.Busy)
	t.addSign(signFaulty, sum(counts.Faulty))
	a, err := t.reader.Attempts(ctx, delay-jitter)
	t.addSign(signLost, a.Lost)
	t.addSign(signTimeouts, a.TimedOut)
	t.addSign(signLong, a.Long)
	return err
}

// awaitSubmitted waits until a share of the actions is submitted.
func (t *faultRun) awaitSubmitted(ctx context.Context, share float64) error {
	for float64(t.agent.submitted.Load()) < share*float64(t.total()) {
		if err := process.Wait(ctx, pollInterval); err != nil {
			return err
		}
	}
	return nil
}

// watch polls the state until everything has ended, or should have. It returns
// when that was.
func (t *faultRun) watch(ctx context.Context) (time.Time, error) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	var printed, calm time.Time
	var now database.State
	for {
		select {
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		case <-ticker.C:
		}
		began := time.Now()
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
			continue
		}
		if now.Fresh == 0 && closed(t.submittedAll) && !closed(t.claimed) {
			close(t.claimed)
		}
		if calm.IsZero() && closed(t.injected) && closed(t.submittedAll) {
			calm = began
		}
		if !calm.IsZero() && (now.Open == 0 || began.Sub(calm) > settleTimeout+4*t.lease) {
			t.printProgress(began, now, false)
			return began, nil
		}
	}
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
