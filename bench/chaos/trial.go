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
	// lookEvery is how often the database is asked how things stand.
	lookEvery = 100 * time.Millisecond
	// tellEvery is how often that is printed.
	tellEvery = 2 * time.Second
	// patience is how long after the last blow everything must have ended,
	// beside some leases. A call may take half a minute, and so long does a
	// breaker stay open.
	patience = 2 * time.Minute
)

// plan is what one trial is to do.
type plan struct {
	classes     []envelope.Effect
	n           int // envelopes per class
	workers     int
	concurrency int
	killEvery   time.Duration
	lease       time.Duration
	restarts    int
	over        time.Duration
	tally       tallyOrder
	seed        uint64
}

// all is how many envelopes there are.
func (p plan) all() int { return p.n * len(p.classes) }

// class is that of an envelope's number: they take turns.
func (p plan) class(n int) envelope.Effect { return p.classes[n%len(p.classes)] }

// trial is one run of a plan under one fault.
type trial struct {
	plan
	fault  fault
	db     *database
	dir    string // for the tool's journal
	log    *workersLog
	stdout io.Writer
	// program is cmd/worker; empty for a worker of our own.
	program string

	world *world
	agent *agent
	store store
	crew  *crew
	line  *line // nil without a proxy
	blows *blows
	began time.Time

	mu   sync.Mutex
	felt map[string]int
	// stuck counts the envelopes that ended only because we stepped in.
	stuck int

	submittedAll chan struct{} // closed when every envelope is submitted
	taken        chan struct{} // closed when each of them has been claimed once
	struck       chan struct{} // closed when nothing is broken any more
}

// feel counts a sign that the fault was felt.
func (t *trial) feel(sign string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.felt[sign] += n
}

// during notes a blow that lasts as long as fn runs.
func (t *trial) during(kind string, fn func() error) error {
	one := t.blows.add(kind, time.Now())
	err := fn()
	t.blows.lasted(one, time.Since(one.at))
	return err
}

// run does what the plan says. The error is of what kept it from being done;
// that a property does not hold is none.
func (t *trial) run(ctx context.Context) (_ outcome, err error) {
	t.felt = make(map[string]int)
	t.blows = &blows{lease: t.lease}
	t.submittedAll, t.taken, t.struck = make(chan struct{}), make(chan struct{}), make(chan struct{})
	t.tally.Journal = filepath.Join(t.dir, t.fault.name+".journal")
	if t.fault.tool != nil {
		t.fault.tool(&t.tally)
	}
	ill, share := t.tally.Ill, t.tally.Share
	t.tally.Ill, t.tally.Share = healthy, 0 // until it is known
	if t.world, err = startWorld(ctx, t.tally); err != nil {
		return outcome{}, err
	}
	defer func() { err = errors.Join(err, t.world.stop()) }()
	toolURL, err := t.lay()
	if err != nil {
		return outcome{}, err
	}
	if t.line != nil {
		defer t.line.close()
	}
	cache := settings.NewCache()
	tenant, err := newTenant(ctx, t.db.pool, cache, t.fault.name, toolURL, t.classes)
	if err != nil {
		return outcome{}, err
	}
	if ill != healthy {
		if err := t.world.sicken(ctx, ill, share); err != nil {
			return outcome{}, err
		}
	}
	t.agent = &agent{intake: intake.New(t.db.pool, cache, intake.Config{}), tenant: tenant, plan: t.plan}
	t.store = store{t.db.pool, tenant}
	if err := t.log.begin(); err != nil {
		return outcome{}, err
	}
	t.began = time.Now()
	t.crew = startCrew(t.workers, t.spawn)

	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { defer close(t.submittedAll); return t.agent.submit(gctx) })
	g.Go(func() error { defer close(t.struck); return t.fault.strike(gctx, t) })
	var ended time.Time
	g.Go(func() error {
		var err error
		ended, err = t.watch(gctx)
		return err
	})
	runErr := g.Wait()
	exits, late, crewErr := t.crew.stop()
	if err := errors.Join(runErr, crewErr); err != nil {
		return outcome{}, err
	}
	return t.conclude(ctx, ended, exits, late)
}

// lay lays the line, if the fault needs one, and returns where the tool is to
// be found.
func (t *trial) lay() (toolURL string, err error) {
	toolURL = t.world.url
	switch t.fault.line {
	case placeNone:
	case placeDatabase:
		u, err := url.Parse(t.db.url)
		if err != nil || u.Host == "" {
			return "", errors.New("the database's URL has no host that a proxy could stand before")
		}
		t.line, err = newLine(t.fault.name, u.Host)
		return toolURL, err
	case placeTool:
		u, err := url.Parse(toolURL)
		if err != nil {
			return "", fmt.Errorf("lay a line to the tool: %w", err)
		}
		if t.line, err = newLine(t.fault.name, u.Host); err != nil {
			return "", err
		}
		u.Host = t.line.address()
		return u.String(), nil
	}
	return toolURL, nil
}

func (t *trial) spawn(slot, generation int) (*child, error) {
	o := workerOrder{
		URL: t.workersURL(), ID: fmt.Sprintf("%s-%d.%d", t.fault.name, slot+1, generation),
		Concurrency: t.concurrency, Lease: t.lease,
	}
	if t.fault.skewed {
		o.Skew = skewOf(slot)
	}
	return o.spawn(t.program, t.log.file)
}

func (t *trial) conclude(ctx context.Context, ended time.Time, exits []time.Time, late int) (outcome, error) {
	envelopes, err := t.store.envelopes(ctx)
	if err != nil {
		return outcome{}, fmt.Errorf("read envelopes: %w", err)
	}
	world, err := readJournal(t.tally.Journal)
	if err != nil {
		return outcome{}, err
	}
	if err := t.feelAfterwards(ctx, world); err != nil {
		return outcome{}, err
	}
	all := t.blows.list()
	e := evidence{
		fault: t.fault, plan: t.plan, blows: all, felt: t.felt, stuck: t.stuck, envelopes: envelopes, world: world, inHand: inHand(all),
		late: late, crashes: unexplained(exits, all),
	}
	o := outcome{
		evidence: e, exits: len(exits), repeated: int(t.agent.again.Load()), took: ended.Sub(t.began), worst: worst(all),
	}
	o.totals, o.properties = e.judge()
	return o, nil
}

// feelAfterwards counts the signs that are known only at the end.
func (t *trial) feelAfterwards(ctx context.Context, world *tallied) error {
	all := t.blows.list()
	t.feel(feltKills, orphans(all, blowKill))
	t.feel(feltFreezes, orphans(all, blowFreeze))
	t.feel(feltPatient, world.Told)
	for _, times := range world.Spoiled {
		t.feel(feltSpoiled, times)
	}
	a, err := t.store.attempts(ctx, lineDelay-lineJitter)
	t.feel(feltLost, a.lost)
	t.feel(feltTimeouts, a.timedOut)
	t.feel(feltLong, a.long)
	return err
}

// submittedShare waits until a share of the envelopes is submitted.
func (t *trial) submittedShare(ctx context.Context, share float64) error {
	for float64(t.agent.submitted.Load()) < share*float64(t.all()) {
		if err := t.waitFor(ctx, lookEvery); err != nil {
			return err
		}
	}
	return nil
}

// watch looks how things stand until everything has ended, or should have. It
// returns when that was.
func (t *trial) watch(ctx context.Context) (time.Time, error) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var told, calm time.Time
	var now standing
	for {
		select {
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		case <-ticker.C:
		}
		begun := time.Now()
		fresh, err := t.store.look(ctx)
		if err == nil {
			now = fresh
			t.blows.update(begun, now)
		}
		if begun.Sub(told) >= tellEvery {
			told = begun
			t.tell(begun, now, err != nil)
		}
		if err != nil {
			continue
		}
		if now.fresh == 0 && over(t.submittedAll) && !over(t.taken) {
			close(t.taken)
		}
		if calm.IsZero() && over(t.struck) && over(t.submittedAll) {
			calm = begun
		}
		if !calm.IsZero() && (now.left == 0 || begun.Sub(calm) > patience+4*t.lease) {
			t.tell(begun, now, false)
			return begun, nil
		}
	}
}

// over reports whether a channel is closed.
func over(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
