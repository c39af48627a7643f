// Package lease holds mail accounts: one process at a time has the lease of an
// account. It claims accounts that are due, renews leases, and has every
// transaction that writes require that the lease still holds. It reads no mail.
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
	// ErrLost reports that another process holds the account, or that the account
	// was deleted.
	ErrLost = errors.New("another run holds the account")
	// ErrChanged reports that the account was changed and has to be opened again.
	ErrChanged = errors.New("the account was changed")
)

// Config configures Accounts.
type Config struct {
	// Length is how long a lease lasts unless it is renewed.
	Length time.Duration
	// Quota returns what the readers of an account may take of its provider's
	// limits, which is stored with its schedule; nil stores nothing.
	Quota func(a account.Account) *quota.Bucket
	Log   *slog.Logger
}

// Accounts are the mail accounts of one tenant, the one that the database login is
// bound to.
type Accounts struct {
	Tenant envelope.TenantID
	db     *pgxpool.Pool
	cfg    Config
}

// Of returns the accounts of the tenant of the pool's login. An unbound login is
// fault.Denied.
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

// Tx runs fn in a transaction whose statements are planned for the tables as they
// are now: a first backfill begins with empty ones.
func (a *Accounts) Tx(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return postgres.InTx(ctx, a.db, postgres.Triage(), func(tx pgx.Tx) error {
		if err := postgres.PlanAnew(ctx, tx); err != nil {
			return err
		}
		return fn(tx)
	})
}

// Claim returns leases of accounts that are due or, with all, of all accounts that
// nobody holds, except some.
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

// Due returns how many accounts are due that nobody holds.
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

	accounts *Accounts
	quota    *quota.Bucket
	// failures is the number of cycles before this one that failed in a row.
	failures int
	asked    chan struct{}
}

// Load reads the account. One that was deleted is fault.NotFound.
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

// Write runs fn in a transaction that requires that the lease still holds. If it
// does not, the error is ErrLost.
func (l *Lease) Write(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return l.Tx(ctx, func(tx pgx.Tx) error {
		if err := l.require(ctx, tx); err != nil {
			return err
		}
		return fn(tx)
	})
}

// Keep renews the lease until end is called. The returned context ends then, and
// with the cause ErrLost or ErrChanged if the lease is lost or the account changed.
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

// Asked is received from after a person asked for a reading of the account.
func (l *Lease) Asked() <-chan struct{} { return l.asked }

// Retry returns how long to wait after an error: what the server asks for, else
// from some seconds to a quarter of an hour, longer with each failure.
func (l *Lease) Retry(err error) time.Duration {
	if asked := mailbox.RetryAfter(err); asked > 0 {
		return asked
	}
	const first, longest = 10 * time.Second, 15 * time.Minute
	pause := min(first<<min(l.failures, 10), max(l.Account.Every, longest))
	return time.Duration((0.75 + rand.Float64()/2) * float64(pause))
}

// Release ends the lease, also after ctx ended. The account is due again after a
// pause.
func (l *Lease) Release(ctx context.Context, pause time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return l.Tx(ctx, func(tx pgx.Tx) error { return l.release(ctx, tx, pause) })
}
