package worker

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/countersign-dev/countersign/internal/action/fence"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/telemetry"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/worker/background"
)

// PipelineConfig configures a Pipeline. Its zero fields have the defaults below.
type PipelineConfig struct {
	// ID names the worker in the execution log and in logs.
	ID string
	// Concurrency bounds the open calls: 100. While slow calls hold all slots, as
	// many again may be opened for tenants and sources that have less than their
	// share, and for awaited actions.
	Concurrency int
	// Batch bounds the envelopes of one claim, and of one settling: 500.
	Batch int
	// Settlers is the number of concurrent settlers: 2.
	Settlers int
	// Window is the time that a settler waits for more outcomes, or longer where a
	// commit takes longer: 2 ms.
	Window time.Duration
	// Lease is the term of a claim without renewal: 30 s.
	Lease time.Duration
	// Poll is the longest pause between two polls: 1 s.
	Poll time.Duration
	// BacklogPoll is the poll interval for other buckets, skipped rows and lost
	// leases while there is a backlog: 100 ms.
	BacklogPoll time.Duration
	// Grace is the time that running calls have after a stop: 20 s.
	Grace time.Duration
	// ApprovalWait is the time to decide about an envelope that returns to
	// approval: 5 minutes.
	ApprovalWait time.Duration
	// Retry is the default retry policy.
	Retry outbox.Retry
	// Guard compares the database with the commits of the process; nil for one without
	// a memory outside the process.
	Guard *fence.Guard
	// Backlog is called, at most every BacklogPoll, while more is due than this
	// worker can take: it should wake another one.
	Backlog func()
	// Settled is called after outcomes were committed. It must not block.
	Settled func()
	Log     *slog.Logger
	// Metrics must be set; Tracer may be nil.
	Metrics *telemetry.Metrics
	Tracer  trace.Tracer
}

func (c *PipelineConfig) fill() {
	c.Concurrency = cmp.Or(c.Concurrency, 100)
	c.Batch = min(cmp.Or(c.Batch, 500), c.Concurrency)
	c.Settlers = cmp.Or(c.Settlers, 2)
	c.Window = cmp.Or(c.Window, 2*time.Millisecond)
	c.Lease = cmp.Or(c.Lease, 30*time.Second)
	c.Poll = cmp.Or(c.Poll, time.Second)
	c.BacklogPoll = cmp.Or(c.BacklogPoll, 100*time.Millisecond)
	c.Grace = cmp.Or(c.Grace, 20*time.Second)
	c.ApprovalWait = cmp.Or(c.ApprovalWait, 5*time.Minute)
	c.Retry = cmp.Or(c.Retry, outbox.DefaultRetry())
	if c.Backlog == nil {
		c.Backlog = func() {}
	}
	if c.Settled == nil {
		c.Settled = func() {}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Tracer == nil {
		c.Tracer = noop.NewTracerProvider().Tracer("")
	}
}

// Pipeline claims, executes and settles. One goroutine claims; each claimed
// envelope is executed in its own; a few settle outcomes in batches while the
// next batch is being claimed. A slot is taken with the claim and freed when
// the outcome is committed.
type Pipeline struct {
	db      *pgxpool.Pool
	catalog *settings.Cache
	live    *connection.Pool
	confirm *connection.Confirmer
	returns *background.Returns
	cfg     PipelineConfig

	wake      chan struct{}
	patience  patience
	semaphore *semaphore
	inFlight  *inFlight
	// guard decides whether anything may be claimed; claims counts the claimer's commits.
	guard  *fence.Guard
	claims *fence.Loop
	// turns belong to the claimer.
	turns  turns
	settle chan settlement
	// collecting has a value while a settler collects a batch.
	collecting chan struct{}
	// breakerEvents are changes of breakers, on their way to the fleet.
	breakerEvents chan breakerEvent
	// running are the calls, from dispatch until their outcomes were sent to settle.
	// callers are the goroutines that make them, and receive the next from attempts.
	running, callers sync.WaitGroup
	attempts         chan attempt
	// executing counts the calls whose outcomes were not yet sent to settle.
	executing atomic.Int64
	// commitTook is the duration of the last commit of outcomes.
	commitTook atomic.Int64
	// databaseAway is the time since which the database has not answered (Unix
	// nanoseconds); the claimer resets it.
	databaseAway atomic.Int64
	// calls is the context of every call. It outlives the stop by the grace.
	calls context.Context
	// untraced reports whether the tracer records nothing.
	untraced bool
	// stopping bounds the time that a settler waits for the database.
	stopping atomic.Bool
	// drainFinished and drainReturned count, since stopping was set, the actions
	// whose calls ended and those that were returned to the outbox unsent.
	drainFinished, drainReturned atomic.Int64
}

// NewPipeline returns a pipeline that Run starts.
func NewPipeline(db *pgxpool.Pool, cache *settings.Cache, live *connection.Pool, cfg PipelineConfig) *Pipeline {
	cfg.fill()
	guard := cfg.Guard
	if guard == nil {
		guard = fence.New(db, fence.Config{Name: cfg.ID, Lease: cfg.Lease, Concurrency: cfg.Concurrency, Log: cfg.Log})
	}
	return &Pipeline{
		guard: guard, claims: guard.Loop(),
		db: db, catalog: cache, live: live, cfg: cfg,
		confirm: connection.NewConfirmer(connection.NewRefresher(db, cache, live, cfg.Log)),
		returns: background.NewReturns(db, intake.New(db, cache, intake.Config{ApprovalWait: cfg.ApprovalWait}), cfg.Log),
		wake:    make(chan struct{}, 1), semaphore: newSemaphore(cfg.Concurrency), inFlight: newInFlight(), turns: make(turns),
		attempts: make(chan attempt), untraced: cfg.Tracer == noop.Tracer{},
		settle: make(chan settlement, cfg.Concurrency), collecting: make(chan struct{}, 1), breakerEvents: make(chan breakerEvent, 4*cfg.Concurrency),
		calls: context.Background(),
	}
}

// Poll polls for due work now. It does not block.
func (p *Pipeline) Poll() {
	signal(p.wake)
}

// notified polls for due work of which every worker was notified.
func (p *Pipeline) notified() { p.patience.notify(p.Poll) }

// Run works until ctx is over. Then it claims nothing more, lets running
// calls end within the grace, cancels the rest, commits every outcome and
// releases actions that were not started.
func (p *Pipeline) Run(ctx context.Context) error {
	calls, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	p.calls = calls

	unwatch := p.live.Watch(p.breakerChanged)
	var settlers, renewer, publisher, guard sync.WaitGroup
	for range p.cfg.Settlers {
		commits := p.guard.Loop()
		settlers.Go(func() { p.settleLoop(commits) })
	}
	guarded, unguard := context.WithCancel(context.WithoutCancel(ctx))
	defer unguard()
	if _, err := p.guard.Check(ctx); err != nil && ctx.Err() == nil {
		p.cfg.Log.WarnContext(ctx, "commits were not compared with the database", slog.Any("error", err))
	}
	p.guard.Watch(p.inFlight.len)
	guard.Go(func() { p.guard.Run(guarded, p.Poll) })
	publisher.Go(p.breakerLoop)
	renewer.Go(func() { p.renewLoop(calls) })

	claimer := claimer{Pipeline: p, spareLook: spareLookMin}
	claimer.run(ctx)
	p.stopping.Store(true)
	p.guard.Drain()

	ended := make(chan struct{})
	go func() { // owned by Run, which waits for it right below
		p.running.Wait()
		close(ended)
	}()
	grace := time.NewTimer(p.cfg.Grace)
	defer grace.Stop()
	select {
	case <-ended:
	case <-grace.C:
		p.cfg.Log.WarnContext(ctx, "calls cancelled at the end of the grace")
		cancel()
		<-ended
	}
	unwatch()
	close(p.settle)
	settlers.Wait()
	unguard()
	guard.Wait()
	close(p.breakerEvents)
	publisher.Wait()
	cancel()
	renewer.Wait()
	close(p.attempts)
	p.callers.Wait()
	p.cfg.Log.InfoContext(context.WithoutCancel(ctx), "worker drained",
		slog.Int64("finished", p.drainFinished.Load()), slog.Int64("returned", p.drainReturned.Load()))
	return nil
}

// markDatabaseAway records when the database first did not answer.
func (p *Pipeline) markDatabaseAway() {
	p.databaseAway.CompareAndSwap(0, time.Now().UnixNano())
	p.guard.Recheck()
}

// renewThenSettle renews this worker's leases after a database outage long
// enough for leases to expire, and pauses, so that every worker can commit its
// results before expired leases are reclaimed.
func (p *Pipeline) renewThenSettle(ctx context.Context) {
	now := time.Now()
	p.renew(ctx, p.inFlight.since(now, now))
	p.sleepFor(ctx, longestSettlePause+longestSettlePause/4)
}

// tx runs one of the pipeline's transactions. A database that does not answer
// within txTimeout counts as away: a cut network can keep a connection
// silent for many minutes.
func (p *Pipeline) tx(ctx context.Context, fn func(tx pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, txTimeout)
	defer cancel()
	return postgres.InTx(ctx, p.db, postgres.Worker().Planned(), fn)
}

const txTimeout = 10 * time.Second

// sleep waits for the next due time, a wake-up or the end. Sleeps until a poll are
// spread, so that the workers of a fleet do not poll at the same time.
func (p *Pipeline) sleep(ctx context.Context, longest time.Duration) {
	d := longest
	switch poll := p.cfg.Poll; {
	case d < poll:
	case poll < time.Second:
		d = poll - time.Duration(rand.Int64N(int64(poll)/5))
	default:
		d = postgres.PollPause(poll)
	}
	timer := time.NewTimer(max(d, time.Millisecond))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-p.wake:
	case <-timer.C:
	}
}

// pause waits after a failure of the database, longer each time.
func (p *Pipeline) pause(ctx context.Context, what string, err error, failures *int) {
	if ctx.Err() != nil {
		return
	}
	*failures++
	p.markDatabaseAway()
	p.cfg.Log.ErrorContext(ctx, "worker waits for the database", slog.String("operation", what), slog.Int("failures", *failures), slog.Any("error", err))
	p.sleepFor(ctx, min(50*time.Millisecond<<min(*failures, 6), 2*time.Second))
}

func (p *Pipeline) sleepFor(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
