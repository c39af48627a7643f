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

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

const (
	// pollInterval is how often the database is asked how things stand.
	pollInterval = 100 * time.Millisecond
	// progressInterval is how often that is printed.
	progressInterval = 2 * time.Second
	// settleTimeout is how long after the last injection everything must have ended,
	// beside some leases. A call may take half a minute, and so long does a
	// breaker stay open.
	settleTimeout = 2 * time.Minute
)

// plan is what one run is to do.
type plan struct {
	classes     []envelope.Effect
	n           int // envelopes per class
	workers     int
	concurrency int
	killEvery   time.Duration
	lease       time.Duration
	restarts    int
	over        time.Duration
	server      serverConfig
	seed        uint64
}

// total is how many envelopes there are.
func (p plan) total() int { return p.n * len(p.classes) }

// class is that of an envelope's number: they take turns.
func (p plan) class(n int) envelope.Effect { return p.classes[n%len(p.classes)] }

// faultRun is one run of a plan under one fault.
type faultRun struct {
	plan
	fault  fault
	db     *database
	dir    string // for the tool's journal
	log    *workersLog
	stdout io.Writer
	// program is cmd/worker; empty for a worker of our own.
	program string

	tool       *toolProcess
	agent      *agent
	store      store
	fleet      *workerSet
	proxy      *networkProxy // nil without a proxy
	injections *injections
	began      time.Time

	mu    sync.Mutex
	signs map[string]int
	// stuck counts the envelopes that ended only after a worker was killed for them.
	stuck int

	submittedAll chan struct{} // closed when every envelope is submitted
	claimed      chan struct{} // closed when each of them has been claimed once
	injected     chan struct{} // closed when nothing is broken any more
}

// addSign counts a sign that the fault was felt.
func (t *faultRun) addSign(sign string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.signs[sign] += n
}

// during notes an injection that lasts as long as fn runs.
func (t *faultRun) during(kind string, fn func() error) error {
	one := t.injections.add(kind, time.Now())
	err := fn()
	t.injections.setDuration(one, time.Since(one.at))
	return err
}

// run does what the plan says. The error is of what kept it from being done;
// that a property does not hold is none.
func (t *faultRun) run(ctx context.Context) (_ outcome, err error) {
	t.signs = make(map[string]int)
	t.injections = &injections{lease: t.lease}
	t.submittedAll, t.claimed, t.injected = make(chan struct{}), make(chan struct{}), make(chan struct{})
	t.server.Journal = filepath.Join(t.dir, t.fault.name+".journal")
	if t.fault.tool != nil {
		t.fault.tool(&t.server)
	}
	kind, share := t.server.Fault, t.server.Share
	t.server.Fault, t.server.Share = healthy, 0 // until it is known
	if t.tool, err = startToolProcess(ctx, t.server); err != nil {
		return outcome{}, err
	}
	defer func() { err = errors.Join(err, t.tool.stop()) }()
	toolURL, err := t.startProxy()
	if err != nil {
		return outcome{}, err
	}
	if t.proxy != nil {
		defer t.proxy.close()
	}
	cache := settings.NewCache()
	tenant, err := newTenant(ctx, t.db.pool, cache, t.fault.name, toolURL, t.classes)
	if err != nil {
		return outcome{}, err
	}
	if kind != healthy {
		if err := t.tool.setFault(ctx, kind, share); err != nil {
			return outcome{}, err
		}
	}
	t.agent = &agent{intake: intake.New(t.db.pool, cache, intake.Config{}), tenant: tenant, plan: t.plan}
	t.store = store{t.db.pool, tenant}
	if err := t.log.begin(); err != nil {
		return outcome{}, err
	}
	t.began = time.Now()
	t.fleet = startWorkerSet(t.workers, t.spawn)

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
	exits, late, stopErr := t.fleet.stop()
	if err := errors.Join(runErr, stopErr); err != nil {
		return outcome{}, err
	}
	return t.collect(ctx, ended, exits, late)
}

// startProxy lays the line, if the fault needs one, and returns where the tool is to
// be found.
func (t *faultRun) startProxy() (toolURL string, err error) {
	toolURL = t.tool.url
	switch t.fault.line {
	case placeNone:
	case placeDatabase:
		u, err := url.Parse(t.db.url)
		if err != nil || u.Host == "" {
			return "", errors.New("the database's URL has no host that a proxy could stand before")
		}
		t.proxy, err = newNetworkProxy(t.fault.name, u.Host)
		return toolURL, err
	case placeTool:
		u, err := url.Parse(toolURL)
		if err != nil {
			return "", fmt.Errorf("lay the network to the tool: %w", err)
		}
		if t.proxy, err = newNetworkProxy(t.fault.name, u.Host); err != nil {
			return "", err
		}
		u.Host = t.proxy.address()
		return u.String(), nil
	}
	return toolURL, nil
}

func (t *faultRun) spawn(slot, generation int) (*child, error) {
	o := workerOrder{
		URL: t.workersURL(), ID: fmt.Sprintf("%s-%d.%d", t.fault.name, slot+1, generation),
		Concurrency: t.concurrency, Lease: t.lease,
	}
	if t.fault.skewed {
		o.Skew = skewOf(slot)
	}
	return o.spawn(t.program, t.log.file)
}

func (t *faultRun) collect(ctx context.Context, ended time.Time, exits []time.Time, late int) (outcome, error) {
	envelopes, err := t.store.envelopes(ctx)
	if err != nil {
		return outcome{}, fmt.Errorf("read envelopes: %w", err)
	}
	counts, err := readJournal(t.server.Journal)
	if err != nil {
		return outcome{}, err
	}
	if err := t.addFinalSigns(ctx, counts); err != nil {
		return outcome{}, err
	}
	all := t.injections.list()
	e := evidence{
		fault: t.fault, plan: t.plan, injections: all, signs: t.signs, stuck: t.stuck, envelopes: envelopes, server: counts, held: heldActions(all),
		late: late, crashes: unexplained(exits, all),
	}
	o := outcome{
		evidence: e, exits: len(exits), repeated: int(t.agent.again.Load()), took: ended.Sub(t.began), worst: worst(all),
	}
	o.totals, o.properties = e.check()
	return o, nil
}

// addFinalSigns counts the signs that are known only at the end.
func (t *faultRun) addFinalSigns(ctx context.Context, counts *journalCounts) error {
	all := t.injections.list()
	t.addSign(feltKills, countAbandoned(all, byKill))
	t.addSign(feltFreezes, countAbandoned(all, byFreeze))
	t.addSign(feltPatient, counts.Told)
	for _, times := range counts.Spoiled {
		t.addSign(feltSpoiled, times)
	}
	a, err := t.store.attempts(ctx, lineDelay-lineJitter)
	t.addSign(feltLost, a.lost)
	t.addSign(feltTimeouts, a.timedOut)
	t.addSign(feltLong, a.long)
	return err
}

// submittedShare waits until a share of the envelopes is submitted.
func (t *faultRun) submittedShare(ctx context.Context, share float64) error {
	for float64(t.agent.submitted.Load()) < share*float64(t.total()) {
		if err := t.waitFor(ctx, pollInterval); err != nil {
			return err
		}
	}
	return nil
}

// watch looks how things stand until everything has ended, or should have. It
// returns when that was.
func (t *faultRun) watch(ctx context.Context) (time.Time, error) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	var told, calm time.Time
	var now state
	for {
		select {
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		case <-ticker.C:
		}
		begun := time.Now()
		fresh, err := t.store.readState(ctx)
		if err == nil {
			now = fresh
			t.injections.update(begun, now)
		}
		if begun.Sub(told) >= progressInterval {
			told = begun
			t.printProgress(begun, now, err != nil)
		}
		if err != nil {
			continue
		}
		if now.fresh == 0 && over(t.submittedAll) && !over(t.claimed) {
			close(t.claimed)
		}
		if calm.IsZero() && over(t.injected) && over(t.submittedAll) {
			calm = begun
		}
		if !calm.IsZero() && (now.left == 0 || begun.Sub(calm) > settleTimeout+4*t.lease) {
			t.printProgress(begun, now, false)
			return begun, nil
		}
	}
}

// stopped reports whether a channel is closed.
func over(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
