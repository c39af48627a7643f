package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/catalog"
	"github.com/countersign-dev/countersign/internal/intake"
)

const (
	// lookEvery is how often the database is asked how things stand.
	lookEvery = 100 * time.Millisecond
	// tellEvery is how often that is printed.
	tellEvery = time.Second
	// patience is how long after the last fault everything must have ended,
	// beside some leases.
	patience = 60 * time.Second
	// restartPause is the time between two restarts of the database.
	restartPause = 2 * time.Second
)

// plan is what one trial is to do.
type plan struct {
	class       envelope.Effect
	n           int
	workers     int
	concurrency int
	killEvery   time.Duration
	lease       time.Duration
	restarts    int
	over        time.Duration
	tally       tallyOrder
	seed        uint64
}

// trial is one run of a plan.
type trial struct {
	plan
	db     database
	pool   *pgxpool.Pool
	log    *os.File
	stdout io.Writer
	// program is cmd/worker; empty for a worker of our own.
	program string

	world  *world
	agent  *agent
	store  store
	crew   *crew
	faults *blows
	began  time.Time

	submittedAll chan struct{} // closed when every envelope is submitted
	restarted    chan struct{} // closed when no restart will come any more
	calm         chan struct{} // closed when no more workers are to be killed
	killedAll    chan struct{} // closed when none will be
}

// outcome is what a trial came to.
type outcome struct {
	total
	plan       plan
	properties []property
	faults     []*blow
	envelopes  []found
	world      tallied
	// exits counts the workers that ended by themselves, repeated the
	// submissions that had to be made again.
	exits, repeated int
	// took is from the start to the end of the last envelope, recovered from
	// the last fault.
	took, recovered time.Duration
}

// broken says that a property does not hold.
func (o outcome) broken() bool {
	for _, p := range o.properties {
		if len(p.broken) > 0 {
			return true
		}
	}
	return false
}

// run does what the plan says. The error is of what kept it from being done;
// that a property does not hold is none.
func (t *trial) run(ctx context.Context) (outcome, error) {
	var err error
	if t.world, err = startWorld(ctx, t.tally); err != nil {
		return outcome{}, err
	}
	defer t.world.child.kill()
	cache := catalog.NewCache()
	tenant, err := newTenant(ctx, t.pool, cache, t.world.url, t.class)
	if err != nil {
		return outcome{}, err
	}
	t.agent = &agent{intake: intake.New(t.pool, cache, intake.Config{}), tenant: tenant, tool: toolOf(t.class)}
	t.store = store{t.pool, tenant}
	t.faults = &blows{lease: t.lease}
	t.began = time.Now()
	t.submittedAll, t.restarted = make(chan struct{}), make(chan struct{})
	t.calm, t.killedAll = make(chan struct{}), make(chan struct{})
	t.crew = startCrew(t.workers, func(slot, generation int) (*child, error) {
		return workerOrder{
			URL: t.db.url, ID: fmt.Sprintf("chaos-%s-%d.%d", t.class, slot+1, generation),
			Concurrency: t.concurrency, Lease: t.lease,
		}.spawn(t.program, t.log)
	})

	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { defer close(t.submittedAll); return t.agent.submit(gctx, t.n, t.over) })
	g.Go(func() error { defer close(t.killedAll); return t.killWorkers(gctx) })
	g.Go(func() error { defer close(t.restarted); return t.restartDatabase(gctx) })
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

func (t *trial) conclude(ctx context.Context, ended time.Time, exits []time.Time, late int) (outcome, error) {
	envelopes, err := t.store.envelopes(ctx)
	if err != nil {
		return outcome{}, fmt.Errorf("read envelopes: %w", err)
	}
	world, err := t.world.counts(ctx)
	if err != nil {
		return outcome{}, err
	}
	all := t.faults.end()
	o := outcome{
		plan: t.plan, faults: all, envelopes: envelopes, world: world,
		exits: len(exits), repeated: int(t.agent.again.Load()), took: ended.Sub(t.began),
	}
	for _, f := range all {
		o.recovered = max(0, ended.Sub(f.at.Add(f.took)))
	}
	e := evidence{
		plan: t.plan, kills: t.faults.count(blowKill), envelopes: envelopes, world: world, inHand: inHand(all),
		late: late, crashes: unexplained(exits, all),
	}
	o.total, o.properties = e.judge()
	return o, nil
}

// killWorkers kills a worker at random at each interval until it is calm.
func (t *trial) killWorkers(ctx context.Context) error {
	random := rand.New(rand.NewPCG(t.seed, 0)) //nolint:gosec // meant to be repeatable
	ticker := time.NewTicker(t.killEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err() //nolint:wrapcheck // our own
		case <-t.calm:
			return nil
		case <-ticker.C:
		}
		if at, ok := t.crew.kill(random.IntN(t.workers)); ok {
			t.faults.add(blowKill, at)
		}
	}
}

// restartDatabase crashes and restarts the server, while envelopes are being
// submitted, if the server is ours.
func (t *trial) restartDatabase(ctx context.Context) error {
	if t.db.restart == nil || t.restarts == 0 {
		return nil
	}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for t.agent.submitted.Load() < int64(t.n*3/4) {
		select {
		case <-ctx.Done():
			return ctx.Err() //nolint:wrapcheck // our own
		case <-ticker.C:
		}
	}
	for n := range t.restarts {
		if n > 0 && !pause(ctx, restartPause) {
			return ctx.Err() //nolint:wrapcheck // our own
		}
		began := time.Now()
		one := t.faults.add(blowRestart, began)
		if err := t.db.restart(ctx); err != nil {
			return err
		}
		t.faults.lasted(one, time.Since(began))
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
			return time.Time{}, ctx.Err() //nolint:wrapcheck // our own
		case <-ticker.C:
		}
		begun := time.Now()
		fresh, err := t.store.look(ctx)
		if err == nil {
			now = fresh
			t.faults.update(begun, now.held)
		}
		if begun.Sub(told) >= tellEvery {
			told = begun
			t.tell(begun, now, err != nil)
		}
		if err != nil {
			continue
		}
		if calm.IsZero() && now.fresh == 0 && over(t.submittedAll) && over(t.restarted) {
			calm = begun
			close(t.calm)
		}
		empty := len(now.held) == 0 && now.waiting == 0
		if over(t.killedAll) && (empty || begun.Sub(calm) > patience+4*t.lease) {
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
