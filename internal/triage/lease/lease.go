// Package lease leases mail accounts: one process at a time holds the lease of
// an account. It claims due accounts, renews leases, and makes every writing
// transaction fail unless the lease is still held. It reads no mail.
package lease

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/quota"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/triage/account"
)

var (
	// ErrLost is the error when another process holds the account, or the
	// account was deleted.
	ErrLost = errors.New("another process holds the account")
	// ErrChanged is the error when the account was changed and has to be opened
	// again.
	ErrChanged = errors.New("the account was changed")
	// ErrPaused is the error when a person paused triage or the account.
	ErrPaused = errors.New("triage of the account is paused")
)

// Config configures Accounts.
type Config struct {
	// Length is the duration of a lease unless it is renewed.
	Length time.Duration
	// Quota returns the bucket of an account's provider, whose state is stored
	// with the account's schedule; if nil, nothing is stored.
	Quota func(a account.Account) *quota.Bucket
	Log   *slog.Logger
}

// Accounts are the mail accounts of the tenant that the database login is bound
// to.
type Accounts struct {
	Tenant envelope.TenantID
	db     *pgxpool.Pool
	cfg    Config
}

// Of returns the accounts of the tenant of the pool's login. For an unbound
// login the error is fault.Denied.
func Of(ctx context.Context, db *pgxpool.Pool, cfg Config) (*Accounts, error) {
	a := &Accounts{db: db, cfg: cfg}
	err := a.Tx(ctx, func(tx pgx.Tx) (err error) {
		a.Tenant, err = tenantOf(ctx, tx)
		return err
	})
	if err == nil && a.Tenant == (envelope.TenantID{}) {
		err = fault.New(fault.Denied, "the database login %s is bound to no tenant; an administrator binds it with countersign db-login bind", db.Config().ConnConfig.User)
	}
	return a, err
}

// Tx runs fn in a transaction with custom plans: a first backfill begins with
// empty tables, whose plans soon become slow.
func (a *Accounts) Tx(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return postgres.InTx(ctx, a.db, postgres.Triage(), func(tx pgx.Tx) error {
		if err := postgres.PlanAnew(ctx, tx); err != nil {
			return err
		}
		return fn(tx)
	})
}

// Claim leases accounts that are due or, with all, every unheld account, except
// those in except.
func (a *Accounts) Claim(ctx context.Context, most int, all bool, except []uuid.UUID) (leases []*Lease, err error) {
	if most <= 0 {
		return nil, nil
	}
	holder, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	var ids []uuid.UUID
	err = a.Tx(ctx, func(tx pgx.Tx) (err error) {
		ids, err = a.claim(ctx, tx, holder, most, all, except)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		leases = append(leases, &Lease{
			Tenant: a.Tenant, Holder: holder, Account: account.Account{ID: id}, Log: a.cfg.Log, accounts: a, asked: make(chan struct{}, 1),
		})
	}
	return leases, nil
}

// Due returns the number of due accounts without a holder.
func (a *Accounts) Due(ctx context.Context) (n int64, err error) {
	err = a.Tx(ctx, func(tx pgx.Tx) (err error) {
		n, err = a.due(ctx, tx)
		return err
	})
	return n, err
}

// Lease is an account that this process holds, from its claim until Release.
type Lease struct {
	Tenant envelope.TenantID
	Holder uuid.UUID
	// Account has only an id before Load.
	Account account.Account
	Log     *slog.Logger
	// Travelling reports whether the owner travels, as of the last Write.
	Travelling bool

	accounts *Accounts
	quota    *quota.Bucket
	// failures is the number of cycles before this one that failed in a row.
	failures int
	asked    chan struct{}
}

// Load loads the account. If it was deleted, the error is fault.NotFound.
func (l *Lease) Load(ctx context.Context) error {
	return l.Tx(ctx, func(tx pgx.Tx) error {
		all, err := account.List(ctx, tx, l.accounts.Tenant)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(all, func(a account.Account) bool { return a.ID == l.Account.ID })
		if at < 0 {
			return fault.New(fault.NotFound, "the account was deleted")
		}
		l.Account, l.Log = all[at], l.accounts.cfg.Log.With(slog.String("account", all[at].Name))
		if of := l.accounts.cfg.Quota; of != nil {
			l.quota = of(l.Account)
		}
		return nil
	})
}

// Tx is Accounts.Tx.
func (l *Lease) Tx(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return l.accounts.Tx(ctx, fn)
}

// Write runs fn in a transaction that requires the lease. If the lease is lost,
// the error is ErrLost; while the account is paused it is ErrPaused.
func (l *Lease) Write(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return l.Tx(ctx, func(tx pgx.Tx) error {
		if err := l.require(ctx, tx); err != nil {
			return err
		}
		return fn(tx)
	})
}

// Keep renews the lease until end is called. The returned context ends then, or
// with the cause ErrLost, ErrPaused or ErrChanged if the lease is lost or the
// account paused or changed.
func (l *Lease) Keep(ctx context.Context) (kept context.Context, end func()) {
	kept, cancel := context.WithCancelCause(ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() { l.renewUntil(kept, cancel) })
	return kept, func() {
		cancel(nil)
		renewing.Wait()
	}
}

// renewUntil renews the lease until ctx ends. It cancels ctx when the lease is lost
// or the account changed.
func (l *Lease) renewUntil(ctx context.Context, cancel context.CancelCauseFunc) {
	length := l.accounts.cfg.Length
	tick := time.NewTicker(min(length/4, 2*time.Second))
	defer tick.Stop()
	for until := time.Now().Add(length); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var now renewal
		began := time.Now()
		err := l.Tx(ctx, func(tx pgx.Tx) (err error) {
			now, err = l.renew(ctx, tx)
			return err
		})
		switch {
		case errors.Is(err, fault.NotFound), err != nil && time.Now().After(until):
			cancel(ErrLost)
		case err != nil:
		case now.Pause == paused:
			cancel(ErrPaused)
		case !now.Enabled || now.Version != l.Account.Version:
			cancel(ErrChanged)
		default:
			until = began.Add(length)
			if now.Asked {
				select {
				case l.asked <- struct{}{}:
				default:
				}
			}
		}
	}
}

// Asked returns the channel that receives when a person has asked to read the
// account.
func (l *Lease) Asked() <-chan struct{} { return l.asked }

// Retry returns the wait after an error: the time that the server requests,
// else from some seconds to a quarter of an hour, growing with each failure.
func (l *Lease) Retry(err error) time.Duration {
	if asked := mailbox.RetryAfter(err); asked > 0 {
		return asked
	}
	const first, longest = 10 * time.Second, 15 * time.Minute
	pause := min(first<<min(l.failures, 10), max(l.Account.Every, longest))
	return time.Duration((0.75 + rand.Float64()/2) * float64(pause))
}

// Release ends the lease, even after ctx ended. The account is due again after
// a pause.
func (l *Lease) Release(ctx context.Context, pause time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return l.Tx(ctx, func(tx pgx.Tx) error { return l.release(ctx, tx, pause) })
}
