// Package engine reads the mail accounts of a tenant as they become due. It
// leases accounts and, for each, repeats a cycle of reading, asking models and
// writing texts; and it has briefs made. Any number of processes may run it; each account is read by
// the process that holds its lease.
package engine

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/mail/authenticate"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/quota"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/asker"
	"github.com/countersign-dev/countersign/internal/triage/briefer"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/lease"
	"github.com/countersign-dev/countersign/internal/triage/measure"
)

// Config configures an Engine. Zero fields have the defaults below, except Open
// and Model, which are required.
type Config struct {
	// Open opens an account for reading.
	Open func(ctx context.Context, a account.Account) (mailbox.Reader, error)
	// Quota returns the bucket of an account's provider, whose state is stored
	// with the account's schedule; if nil, nothing is stored.
	Quota func(a account.Account) *quota.Bucket
	// Model is the embedded tier.
	Model *classify.Model
	// Writer writes summaries and drafts; if nil, it is the model of tier t3 of
	// Models. Without either, none are written.
	Writer asker.Writer
	// Models are asked about messages that the embedded tier leaves open; if
	// nil, none are asked.
	Models *asker.Models
	// Withhold is the longest time that proposals wait for answers of models:
	// 10 minutes.
	Withhold time.Duration
	// Resolver queries DNS for the keys and policies of senders; if nil, no
	// query is made.
	Resolver authenticate.Resolver
	// Retry is the interval at which unavailable models are probed: 15 seconds.
	Retry time.Duration
	// Accounts is the number of accounts read concurrently: 20.
	Accounts int
	// Lease is how long a process holds an account without a renewal: 1 minute.
	Lease time.Duration
	// Look is the interval at which due accounts are claimed: 2 seconds.
	Look time.Duration
	// Meter and Tracer may be nil.
	Meter  metric.Meter
	Tracer trace.Tracer
	Log    *slog.Logger
}

func (c *Config) fill() {
	c.Accounts = cmp.Or(c.Accounts, 20)
	c.Lease = cmp.Or(c.Lease, time.Minute)
	c.Look = cmp.Or(c.Look, 2*time.Second)
	c.Withhold, c.Retry = cmp.Or(c.Withhold, 10*time.Minute), cmp.Or(c.Retry, 15*time.Second)
	c.Meter = cmp.Or(c.Meter, metric.Meter(noop.NewMeterProvider().Meter("")))
	c.Tracer = cmp.Or(c.Tracer, trace.Tracer(tracenoop.NewTracerProvider().Tracer("")))
	if c.Writer == nil {
		c.Writer = c.Models.Writer()
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
}

// Engine reads the accounts of the tenant that the database login is bound to.
type Engine struct {
	accounts *lease.Accounts
	cfg      Config
	metrics  *measure.Metrics
	// yields receives while an account waits for mail; that account is then
	// released in favour of due ones.
	yields    chan struct{}
	unobserve func() error
}

// New returns an Engine for the tenant of the pool's login. For an unbound
// login the error is fault.Denied.
func New(ctx context.Context, db *pgxpool.Pool, cfg Config) (*Engine, error) {
	cfg.fill()
	e := &Engine{cfg: cfg, yields: make(chan struct{})}
	var err error
	if e.metrics, err = measure.NewMetrics(cfg.Meter); err != nil {
		return nil, err
	}
	if e.accounts, err = lease.Of(ctx, db, lease.Config{Length: cfg.Lease, Quota: cfg.Quota, Log: cfg.Log}); err != nil {
		return nil, err
	}
	e.unobserve, err = measure.Observe(cfg.Meter, e.states)
	return e, err
}

// Close stops the gauges. It does not close the pool.
func (e *Engine) Close() error { return e.unobserve() }

// Run reads accounts as they become due, until ctx ends. It returns when every
// account is released.
func (e *Engine) Run(ctx context.Context) error {
	defer e.cfg.Models.Watch(ctx, e.cfg.Retry)()
	var holding sync.WaitGroup
	defer holding.Wait()
	holding.Go(func() { briefer.New(e.accounts, e.cfg.Log).Run(ctx) })
	free := make(chan struct{}, e.cfg.Accounts)
	tick := time.NewTicker(e.cfg.Look)
	defer tick.Stop()
	for {
		claimed, err := e.accounts.Claim(ctx, cap(free)-len(free), false, nil)
		if err == nil && len(free) == cap(free) {
			err = e.makeRoom(ctx)
		}
		if err != nil && ctx.Err() == nil {
			e.cfg.Log.ErrorContext(ctx, "triage waits for the database", slog.Any("error", err))
		}
		for _, l := range claimed {
			free <- struct{}{}
			holding.Go(func() {
				defer func() { <-free }()
				err := e.hold(ctx, l, false)
				if _, reported := errors.AsType[*readError](err); err != nil && !reported {
					e.cfg.Log.WarnContext(ctx, "mail account not claimed or not given back", slog.String("error", measure.Problem(err)))
				}
			})
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// makeRoom releases accounts that only wait for mail, as many as others are
// due. The released ones become due again as usual.
func (e *Engine) makeRoom(ctx context.Context) error {
	due, err := e.accounts.Due(ctx)
	for range due {
		select {
		case e.yields <- struct{}{}:
		default: // no account waits
			return err
		}
	}
	return err
}

// states returns the states of the accounts.
func (e *Engine) states(ctx context.Context) (s measure.States, err error) {
	err = e.accounts.Tx(ctx, func(tx pgx.Tx) (err error) {
		if s, err = e.accounts.States(ctx, tx); err != nil {
			return err
		}
		s.Pending, err = asker.Pending(ctx, tx, e.accounts.Tenant)
		return err
	})
	return s, err
}

// Once reads every account to its end, once: new mail and the rest of backfill. Then
// it makes the briefs that are due. It skips accounts that another process holds. The
// error names the accounts that failed.
func (e *Engine) Once(ctx context.Context) error {
	defer e.cfg.Models.Watch(ctx, e.cfg.Retry)()
	var done []uuid.UUID
	var failed []error
	var mu sync.Mutex // guards failed
	var holding sync.WaitGroup
	free := make(chan struct{}, e.cfg.Accounts)
	for {
		// Claim each account when a slot is free: a claim that waits would
		// expire.
		free <- struct{}{}
		claimed, err := e.accounts.Claim(ctx, 1, true, done)
		if err != nil || len(claimed) == 0 {
			holding.Wait()
			return errors.Join(append(failed, err, briefer.New(e.accounts, e.cfg.Log).Round(ctx))...)
		}
		done = append(done, claimed[0].Account.ID)
		holding.Go(func() {
			defer func() { <-free }()
			err := e.hold(ctx, claimed[0], true)
			mu.Lock()
			defer mu.Unlock()
			failed = append(failed, err)
		})
	}
}

// hold reads a claimed account and releases it. If the account is changed
// during the reading, it becomes due immediately or, with once, is read again
// as changed.
func (e *Engine) hold(ctx context.Context, l *lease.Lease, once bool) error {
	if err := l.Load(ctx); errors.Is(err, fault.NotFound) {
		return nil // deleted, together with its schedule
	} else if err != nil {
		return err // the claim ends with the lease
	}
	for {
		pause, err := e.newHeld(l, once && l.Account.Enabled).read(ctx)
		if errors.Is(err, lease.ErrChanged) {
			if once && ctx.Err() == nil && l.Load(ctx) == nil && l.Account.Enabled {
				continue
			}
			err = nil
		}
		if err != nil {
			err = &readError{l.Account.Name, err}
		}
		return errors.Join(err, l.Release(ctx, pause))
	}
}

// readError is the error of an account that could not be read.
type readError struct {
	account string
	err     error
}

// Error implements error.
func (e *readError) Error() string { return "account " + e.account + ": " + measure.Problem(e.err) }

// Unwrap returns the cause.
func (e *readError) Unwrap() error { return e.err }
