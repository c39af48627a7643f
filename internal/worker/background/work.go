// Package background is the work of a worker process outside its pipeline: the work
// of its loops and River's periodic jobs. It does not decide when a loop runs, and
// calls no tool that changes something.
package background

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/proposal"
	"github.com/countersign-dev/countersign/internal/action/reconcile"
	"github.com/countersign-dev/countersign/internal/action/search"
	"github.com/countersign-dev/countersign/internal/action/subscription"
	"github.com/countersign-dev/countersign/internal/action/workflow"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/web"
)

// Work does the due work of a loop. It returns the pause until the next run; zero if
// the loop runs only when woken.
type Work = func(context.Context) (time.Duration, error)

const (
	// workflowMinPoll and workflowMaxPoll bound the pause between two polls
	// while workflows are running.
	workflowMinPoll = 50 * time.Millisecond
	workflowMaxPoll = 200 * time.Millisecond
	// workflowPollShare is the ratio of a pause to the poll before it, so that
	// polls which take long, because many workflows wait, are made less often.
	workflowPollShare = 20
)

// TakeProposals returns the work that takes proposals made in SQL until none
// is waiting that may be taken now.
func TakeProposals(db postgres.Begins, in *intake.Intake, log *slog.Logger) Work {
	taker := proposal.NewTaker(db, in, log)
	var ends time.Time // of a pause
	return func(ctx context.Context) (time.Duration, error) {
		for ctx.Err() == nil {
			more, pause, err := taker.Step(ctx)
			if err != nil || !more {
				return max(0, time.Until(ends)), err
			}
			if pause > 0 && (time.Now().After(ends) || time.Now().Add(pause).Before(ends)) {
				ends = time.Now().Add(pause)
			}
		}
		return 0, nil
	}
}

// CountProposals returns the work that counts waiting proposals where that is due.
func CountProposals(db postgres.Begins) Work {
	return func(ctx context.Context) (time.Duration, error) { return 0, proposal.Count(ctx, db) }
}

// Deliver returns the work that proposes the messages of subscriptions until none is
// due.
func Deliver(db postgres.Begins, cache *settings.Cache, in *intake.Intake, links web.Base, log *slog.Logger) Work {
	relay := subscription.NewRelay(db, cache, in, links, log)
	return func(ctx context.Context) (time.Duration, error) {
		for ctx.Err() == nil {
			if more, err := relay.Step(ctx); err != nil || !more {
				return 0, err
			}
		}
		return 0, nil
	}
}

// Reconcile returns the work that makes the reconciling reads that are due. It calls
// poll for actions that run again.
func Reconcile(db postgres.Begins, cache *settings.Cache, live *connection.Pool, poll func(), log *slog.Logger) Work {
	r := reconcile.New(db, cache, live, reconcile.Config{Log: log})
	return func(ctx context.Context) (time.Duration, error) {
		for ctx.Err() == nil {
			if n, err := r.Sweep(ctx); err != nil || n == 0 {
				return 0, err
			}
			poll()
		}
		return 0, nil
	}
}

// indexPause is the pause of the index while there is more to do.
const indexPause = 100 * time.Millisecond

// Index returns the work that indexes actions for the search.
func Index(db postgres.Begins) Work {
	return func(ctx context.Context) (time.Duration, error) {
		var pause time.Duration
		for ctx.Err() == nil {
			if more, err := search.Step(ctx, db); err != nil || !more {
				return pause, err
			}
			pause = indexPause
		}
		return 0, nil
	}
}

// Workflows advances workflows.
type Workflows struct {
	driver *workflow.Driver
	live   atomic.Bool
}

// NewWorkflows returns Workflows of a database.
func NewWorkflows(db postgres.Begins, in *intake.Intake, log *slog.Logger) *Workflows {
	return &Workflows{driver: workflow.NewDriver(db, in, log)}
}

// Live reports whether any were running at the last poll.
func (w *Workflows) Live() bool { return w.live.Load() }

// Advance advances workflows that can be advanced, and returns the pause until the
// next poll.
func (w *Workflows) Advance(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	moved, live, err := w.driver.Sweep(ctx)
	if err != nil {
		return 0, err
	}
	w.live.Store(live)
	switch {
	case moved > 0:
		return workflowMinPoll, nil
	case !live:
		return 0, nil
	}
	return min(max(workflowPollShare*time.Since(began), workflowMinPoll), workflowMaxPoll), nil
}

// Expire returns the work that ends waits for people and policy that have expired,
// records reminders, and withdraws proposals that an owner of mail made pointless.
func Expire(db postgres.Begins) Work {
	const most = 1000
	return func(ctx context.Context) (time.Duration, error) {
		for _, step := range []func(context.Context, postgres.Begins, int) (int, error){approval.Expire, approval.Remind, approval.Withdraw} {
			for n := most; n == most; {
				var err error
				if n, err = step(ctx, db, most); err != nil {
					return 0, err
				}
			}
		}
		return 0, ExpirePolicy(ctx, db)
	}
}

// ExpirePolicy records the grants and session modes that have expired, a page
// a transaction. An expired one does not apply even before that; but actions
// that it approved are rechecked only when the version of the tenant's settings
// goes up.
func ExpirePolicy(ctx context.Context, db postgres.Begins) error {
	const most = 500
	for taken := most; taken == most; {
		err := postgres.InTx(ctx, db, postgres.Worker(), func(tx pgx.Tx) (err error) {
			taken, err = settings.Expire(ctx, tx, most)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Sweep cancels the actions of kills, and wakes those that no pause or quiet
// hours hold any longer, one page per transaction. It calls wake after each
// change that it has carried out.
func Sweep(ctx context.Context, db postgres.Begins, wake func()) error {
	const most, page = 100, 1000
	sweeps, err := postgres.InTxReturning(ctx, db, postgres.Worker(), func(tx pgx.Tx) ([]outbox.Sweep, error) {
		return outbox.Sweeps(ctx, tx, most)
	})
	if err != nil {
		return fmt.Errorf("sweep pauses: %w", err)
	}
	for i := range sweeps {
		var at outbox.SweepCursor
		for ended := false; !ended; {
			err := postgres.InTx(ctx, db, postgres.Worker().Planned(), func(tx pgx.Tx) (err error) {
				at, ended, err = sweeps[i].Step(ctx, tx, at, page)
				return err
			})
			if err != nil {
				return fmt.Errorf("sweep pauses: %w", err)
			}
		}
		wake()
	}
	return nil
}

// KeyOf returns the idempotency key of an action's calls, as subscription.KeyOf does.
func KeyOf(it *outbox.Item) (key string, repeat int) { return subscription.KeyOf(it) }

// WithMail completes the call of a delivery, as subscription.WithMail does.
func WithMail(ctx context.Context, inTx func(context.Context, func(pgx.Tx) error) error, it *outbox.Item) (json.RawMessage, bool, error) {
	return subscription.WithMail(ctx, inTx, it)
}
