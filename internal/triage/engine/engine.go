// Package engine reads mail accounts and decides about each message once: it
// claims the accounts that are due, reads what is new and what is older, has each
// message parsed, judged and decided by the packages below, and stores the
// decision together with what it proposes. It changes no mailbox: its only way
// to act is a row of triage_proposals, which the database proposes in the same
// transaction. It has no rules of its own about mail.
//
// Any number of processes may run it. One run at a time holds an account, and
// every transaction that writes requires that it still does.
package engine

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/mail/authenticate"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/quota"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/measure"
)

// Config configures an Engine. Its zero fields have the defaults below, save Open
// and Model, which are required.
type Config struct {
	// Open opens an account for reading.
	Open func(ctx context.Context, a account.Account) (mailbox.Reader, error)
	// Quota returns what the readers of an account may take of its provider's
	// limits, which is stored with its schedule; nil stores nothing.
	Quota func(a account.Account) *quota.Bucket
	// Model is the embedded tier.
	Model *classify.Model
	// Writer writes summaries and drafts; nil is the model of the tier t3 of Models.
	// Without that none are written.
	Writer Writer
	// Models are asked what the embedded tier leaves open; nil asks nothing.
	Models *Models
	// Withhold is how long proposals wait for answers of models at most: 10 minutes.
	Withhold time.Duration
	// Resolver asks DNS for the keys and policies of senders; nil asks nothing.
	Resolver authenticate.Resolver
	// Retry is how often it is looked whether models can be asked: 15 seconds.
	Retry time.Duration
	// Accounts is how many accounts are read at once: 20.
	Accounts int
	// Lease is how long a run holds an account without renewing that: 1 minute.
	Lease time.Duration
	// Look is how often due accounts are looked for: 2 seconds.
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
	if c.Meter == nil {
		c.Meter = noop.NewMeterProvider().Meter("")
	}
	if c.Tracer == nil {
		c.Tracer = tracenoop.NewTracerProvider().Tracer("")
	}
	if c.Quota == nil {
		c.Quota = func(account.Account) *quota.Bucket { return nil }
	}
	if c.Writer == nil && c.Models != nil {
		if t, ok := c.Models.Tier("t3"); ok {
			c.Writer = t
		}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
}

// Engine reads the accounts of one tenant, the one that the database login is
// bound to.
type Engine struct {
	db      *pgxpool.Pool
	cfg     Config
	tenant  envelope.TenantID
	metrics *measure.Metrics
	// yields is received from by runs that wait, and that are to make room for
	// accounts that are due.
	yields    chan struct{}
	unobserve func() error
}

// New returns an Engine for the tenant of the pool's login. An unbound login is
// fault.Denied.
func New(ctx context.Context, db *pgxpool.Pool, cfg Config) (*Engine, error) {
	cfg.fill()
	e := &Engine{db: db, cfg: cfg, yields: make(chan struct{})}
	var err error
	if e.metrics, err = measure.NewMetrics(cfg.Meter); err != nil {
		return nil, err
	}
	err = e.tx(ctx, func(tx pgx.Tx) (err error) {
		e.tenant, err = tenantOf(ctx, tx)
		return err
	})
	if err == nil && e.tenant == (envelope.TenantID{}) {
		err = fault.New(fault.Denied, "the database login %s is bound to no tenant; an administrator binds it with countersign db-login bind", db.Config().ConnConfig.User)
	}
	if err != nil {
		return nil, err
	}
	e.unobserve, err = measure.Observe(cfg.Meter, e.states)
	return e, err
}

// Close ends the reading of gauges. The pool is the caller's.
func (e *Engine) Close() error { return e.unobserve() }

// tx runs fn in a transaction whose statements are planned for the tables as they
// are now: a first backfill begins with empty ones.
func (e *Engine) tx(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return postgres.InTx(ctx, e.db, postgres.Triage(), func(tx pgx.Tx) error {
		if err := postgres.PlanAnew(ctx, tx); err != nil {
			return err
		}
		return fn(tx)
	})
}

// Run reads accounts as they become due, until ctx ends. It returns when every run
// has given back its account.
func (e *Engine) Run(ctx context.Context) error {
	defer e.watch(ctx)()
	var runs sync.WaitGroup
	defer runs.Wait()
	free := make(chan struct{}, e.cfg.Accounts)
	tick := time.NewTicker(e.cfg.Look)
	defer tick.Stop()
	for {
		claimed, holder, err := e.claim(ctx, cap(free)-len(free), false, nil)
		if err == nil && len(free) == cap(free) {
			err = e.makeRoom(ctx)
		}
		if err != nil && ctx.Err() == nil {
			e.cfg.Log.ErrorContext(ctx, "triage waits for the database", slog.Any("error", err))
		}
		for _, id := range claimed {
			free <- struct{}{}
			runs.Go(func() {
				defer func() { <-free }()
				err := e.hold(ctx, id, holder, false)
				if _, told := errors.AsType[*readError](err); err != nil && !told {
					e.cfg.Log.WarnContext(ctx, "mail account not claimed or not given back", slog.String("error", problem(err)))
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

// watch keeps known which models can be asked, until the returned function is
// called.
func (e *Engine) watch(ctx context.Context) (end func()) {
	if e.cfg.Models == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { e.cfg.Models.watch(ctx, e.cfg.Retry) })
	return func() {
		cancel()
		watching.Wait()
	}
}

// makeRoom ends the runs of as many accounts as are due, of those that only wait
// for mail. They are due again like all others.
func (e *Engine) makeRoom(ctx context.Context) error {
	var waiting int64
	err := e.tx(ctx, func(tx pgx.Tx) (err error) {
		if err := fillSchedules(ctx, tx, e.tenant); err != nil {
			return err
		}
		waiting, err = due(ctx, tx, e.tenant)
		return err
	})
	for range waiting {
		select {
		case e.yields <- struct{}{}:
		default: // no run waits
			return err
		}
	}
	return err
}

// states returns how the accounts stand.
func (e *Engine) states(ctx context.Context) (s measure.States, err error) {
	err = e.tx(ctx, func(tx pgx.Tx) (err error) {
		if s, err = states(ctx, tx, e.tenant); err != nil {
			return err
		}
		s.Pending, err = pendingStates(ctx, tx, e)
		return err
	})
	return s, err
}

// Once reads every account to its end, once: what is new, and what backfill has
// left. Accounts that another process holds are left to it. The error names the
// accounts that could not be read.
func (e *Engine) Once(ctx context.Context) error {
	defer e.watch(ctx)()
	var done []uuid.UUID
	errs := make(chan error, 1)
	var failed []error
	free := e.cfg.Accounts
	for more := true; more || free < e.cfg.Accounts; {
		// Each is claimed when it is its turn: a claim that waits would run out.
		for more && free > 0 {
			claimed, holder, err := e.claim(ctx, 1, true, done)
			if more = err == nil && len(claimed) == 1; !more {
				failed = append(failed, err)
				break
			}
			done = append(done, claimed[0])
			free--
			go func() { errs <- e.hold(ctx, claimed[0], holder, true) }() // received below
		}
		if free < e.cfg.Accounts {
			failed = append(failed, <-errs)
			free++
		}
	}
	return errors.Join(failed...)
}

// claim takes accounts for runs of one holder.
func (e *Engine) claim(ctx context.Context, most int, all bool, besides []uuid.UUID) (ids []uuid.UUID, holder uuid.UUID, err error) {
	if most <= 0 {
		return nil, holder, nil
	}
	if holder, err = uuid.NewV7(); err != nil {
		return nil, holder, err
	}
	err = e.tx(ctx, func(tx pgx.Tx) (err error) {
		if err := fillSchedules(ctx, tx, e.tenant); err != nil {
			return err
		}
		ids, err = claim(ctx, tx, e.tenant, holder, e.cfg.Lease, most, all, besides)
		return err
	})
	return ids, holder, err
}

// hold reads a claimed account and gives it back. One that is changed meanwhile
// is due at once, or with once read again as it is now.
func (e *Engine) hold(ctx context.Context, id, holder uuid.UUID, once bool) error {
	for {
		a, err := e.account(ctx, id)
		if errors.Is(err, fault.NotFound) {
			return nil // it was deleted, and its schedule with it
		}
		if err != nil {
			return err // its claim ends with the lease
		}
		r := &run{engine: e, account: a, holder: holder, log: e.cfg.Log.With(slog.String("account", a.Name)), bucket: e.cfg.Quota(a)}
		pause, err := r.read(ctx, once && a.Enabled)
		if errors.Is(err, errChanged) {
			if once && ctx.Err() == nil {
				if a, err = e.account(ctx, id); err == nil && a.Enabled {
					continue
				}
			}
			err = nil
		}
		return errors.Join(accountError(a, err), e.release(ctx, id, holder, pause))
	}
}

func (e *Engine) account(ctx context.Context, id uuid.UUID) (a account.Account, err error) {
	err = e.tx(ctx, func(tx pgx.Tx) error {
		all, err := account.List(ctx, tx, e.tenant)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(all, func(one account.Account) bool { return one.ID == id })
		if at < 0 {
			return fault.New(fault.NotFound, "the account was deleted")
		}
		a = all[at]
		return nil
	})
	return a, err
}

// release gives an account back, also after ctx ended.
func (e *Engine) release(ctx context.Context, id, holder uuid.UUID, pause time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return e.tx(ctx, func(tx pgx.Tx) error { return release(ctx, tx, e.tenant, id, holder, pause) })
}
