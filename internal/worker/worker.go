// Package worker executes actions: it claims due actions, rechecks policy and the
// preflight checks, calls the tools and commits the outcomes. Notifications wake
// it; River runs the periodic jobs, in the process that inserted them; all
// state is in the outbox. The package has no rules of its own: policy, checks,
// outcomes and settlements are decided in the packages below.
package worker

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/worker/background"
	"github.com/countersign-dev/countersign/web"
)

// Config configures a Worker. Its zero value has the defaults below.
type Config struct {
	Pipeline PipelineConfig
	// PollOnly does without LISTEN, for databases behind a pooler in
	// transaction mode.
	PollOnly bool
	// CatalogAge is the age at which a source's listing is refreshed: 5 minutes.
	CatalogAge time.Duration
	// Links is where messages lead to.
	Links web.Base
	// RenewLogins, if not nil, renews the tokens of sources that are near their end.
	RenewLogins func(context.Context) error
}

// Worker is one worker process: a pipeline, the loops and River's jobs.
type Worker struct {
	db       *pgxpool.Pool
	pipeline *Pipeline
	waker    *Waker
	log      *slog.Logger

	watch, release, renew, work                                    *loop
	take, count, sweep, deliver, expire, reconcile, advance, index *loop
	workflows                                                      *background.Workflows
	jobs                                                           *background.Jobs
	// subscribed reports whether subscriptions had messages at some time, so that
	// events may have some again.
	subscribed atomic.Bool
	// listen wakes loops on notifications until a context ends; nil with PollOnly.
	listen func(context.Context)
}

// New returns a Worker, which Run starts.
func New(ctx context.Context, db *pgxpool.Pool, cache *settings.Cache, live *connection.Pool, cfg Config) (*Worker, error) {
	cfg.CatalogAge = cmp.Or(cfg.CatalogAge, 5*time.Minute)
	cfg.Pipeline.fill()
	log := cfg.Pipeline.Log
	waker := newWaker(ctx, db, cfg.Pipeline.ID, log)
	cfg.Pipeline.Backlog = waker.Wake
	if cfg.PollOnly {
		cfg.Pipeline.Poll = min(cfg.Pipeline.Poll, pollOnlyEvery)
	}
	f := &Worker{db: db, waker: waker, log: log}
	in := intake.New(db, cache, intake.Config{ApprovalWait: cfg.Pipeline.ApprovalWait, Wake: f.Wake})
	f.workflows = background.NewWorkflows(db, in, log)
	f.watch = newLoop("look for work", lookEvery, log, f.look(cfg.CatalogAge))
	f.take = newLoop("take proposals", 0, log, background.TakeProposals(db, in, log))
	f.count = newLoop("count proposals", countDebounce, log, background.CountProposals(db))
	if !cfg.PollOnly {
		f.listen = func(ctx context.Context) {
			postgres.Listen(ctx, db, []string{proposalsChannel, workChannel, postgres.EventsChannel}, f.notified, log)
		}
	}
	f.index = newLoop("index actions", 0, log, background.Index(db))
	f.sweep = newLoop("sweep pauses", sweepDebounce, log, func(ctx context.Context) (time.Duration, error) { return 0, background.Sweep(ctx, db, f.Wake) })
	f.deliver = newLoop("deliver messages", deliverDebounce, log, background.Deliver(db, cache, in, cfg.Links, log))
	f.expire = newLoop("expire decisions and policy", expireDebounce, log, background.Expire(db))
	f.advance = newLoop("advance workflows", workflowDebounce, log, f.workflows.Advance)
	f.advance.idle = workflowIdle
	f.release = newLoop("close replaced connections", 0, log, func(context.Context) (time.Duration, error) {
		live.Sweep()
		return releaseEvery, nil
	})
	f.renew = newLoop("renew logins of sources", 0, log, func(ctx context.Context) (time.Duration, error) {
		if cfg.RenewLogins == nil {
			return 0, nil
		}
		return postgres.PollPause(renewEvery), cfg.RenewLogins(ctx)
	})
	cfg.Pipeline.Settled = func() {
		if f.workflows.Live() {
			f.advance.poll()
		}
	}
	f.pipeline = NewPipeline(db, cache, live, cfg.Pipeline)
	f.reconcile = newLoop("reconcile unknown outcomes", reconcileDebounce, log, background.Reconcile(db, cache, live, f.pipeline.Poll, log))

	var err error
	f.jobs, err = background.NewJobs(db, cache, live, background.JobsConfig{ID: cfg.Pipeline.ID, CatalogAge: cfg.CatalogAge, Log: log, River: warnOnly(log)})
	if err != nil {
		waker.Close()
		return nil, err
	}
	f.work = newLoop("run jobs", 0, log, f.jobs.Work)
	return f, nil
}

// renewEvery is the pause between two looks for tokens of sources to renew. Calls renew
// a token that ends sooner.
const renewEvery = 5 * time.Second

// releaseEvery is longer than a call may take, which may still run on a
// connection that was replaced.
const releaseEvery = time.Minute

// proposalsChannel is the channel that countersign.propose notifies.
const proposalsChannel = "countersign_proposals"

// pollOnlyEvery is the poll interval of a worker that is not notified.
const pollOnlyEvery = 100 * time.Millisecond

// notified wakes the loops that a notification is for; all of them without a channel.
func (f *Worker) notified(channel, payload string) {
	switch channel {
	case proposalsChannel:
		f.take.poll()
		return
	case workChannel:
		if payload != "" && payload == f.waker.name {
			return // it has polled
		}
		f.pipeline.notified()
		f.advance.poll()
		f.sweep.poll()
		return
	case "":
		f.take.poll()
		f.Poll()
	}
	if f.workflows.Live() {
		f.advance.poll()
	}
	if f.subscribed.Load() {
		f.deliver.poll()
	}
}

// Poll polls for due work in this process now.
func (f *Worker) Poll() {
	f.pipeline.Poll()
	f.advance.poll()
	f.sweep.poll()
}

// Wake makes this process poll for due work now, and the others soon. It does
// not block.
func (f *Worker) Wake() {
	f.Poll()
	f.waker.Wake()
}

// Run works until ctx ends, and then drains as Pipeline.Run does.
func (f *Worker) Run(ctx context.Context) error {
	defer f.waker.Close()
	if err := background.EnsurePartitions(ctx, f.db); err != nil {
		return err
	}
	f.log.InfoContext(ctx, "worker started")
	var beside sync.WaitGroup
	if f.listen != nil {
		beside.Go(func() { f.listen(ctx) })
	}
	for _, l := range []*loop{f.watch, f.release, f.renew, f.take, f.count, f.sweep, f.deliver, f.expire, f.reconcile, f.advance, f.index, f.work} {
		beside.Go(func() { l.run(ctx) })
	}
	err := f.pipeline.Run(ctx)
	beside.Wait()

	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err = errors.Join(err, f.jobs.Stop(stop))
	f.log.InfoContext(stop, "worker stopped")
	return err
}
