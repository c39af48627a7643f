package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/quota"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/cascade"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// errLost says that another run holds the account, or that it was deleted.
var errLost = errors.New("another run holds the account")

// errChanged says that the account was changed, and is to be opened again.
var errChanged = errors.New("the account was changed")

// firstLook is how long a run waits at most until it is known which models can be
// asked.
const firstLook = 10 * time.Second

// run is the reading of one account, from its claim until it is given back.
type run struct {
	engine  *Engine
	account account.Account
	holder  uuid.UUID
	log     *slog.Logger

	reader mailbox.Reader
	// aside are the locations of messages that were set aside, and readAgain those
	// that a person asked for, by folder.
	aside     map[mailbox.Location]bool
	readAgain map[string][]mailbox.Item
	bucket    *quota.Bucket
	folders   []mailbox.Folder
	contacts  *signal.Contacts
	model     *classify.Corrected
	// corrections is the version of those in model.
	corrections correctionsVersion
	// corrected counts the corrections of each sender and list.
	corrected map[string]int
	// lookedAt is when it was recorded that all folders were looked at.
	lookedAt time.Time
	// failures are those before this cycle, one after the other.
	failures int
	// asked is signalled when somebody asks for a run.
	asked chan struct{}
	// once says that the account is read to its end, once.
	once   bool
	recent recent
	// down are tiers that could not be asked in this cycle, and why.
	down map[cascade.Tier]sight
	// givenUp counts the steps, one after the other, in which no model answered.
	givenUp int
	// yielded says that the account is to be given back, to make room for others.
	yielded bool
}

// read reads the account until ctx ends, the account is lost or changed, or an
// error comes; with once, until there is nothing left to read. It returns after
// how long the account is due again.
func (r *run) read(ctx context.Context, once bool) (pause time.Duration, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.asked, r.once = make(chan struct{}, 1), once
	renewed := make(chan struct{})
	go func() { // ends with ctx, and read waits for it
		defer close(renewed)
		r.renew(ctx, cancel)
	}()
	defer func() {
		cancel(nil)
		<-renewed
		if r.reader != nil {
			_ = r.reader.Close()
		}
	}()
	for {
		err := r.cycle(ctx)
		if cause := context.Cause(ctx); cause != nil {
			return 0, r.stopped(ctx, cause)
		}
		pause = r.account.Every
		if r.yielded {
			pause = 0 // there is more to do
		}
		if err != nil {
			pause = r.pauseAfter(err)
			r.log.WarnContext(ctx, "mail account not read", slog.Duration("retry_in", pause), slog.String("error", problem(err)))
		}
		if ended := r.ended(ctx, err, pause); ended != nil && err == nil {
			err = ended
		}
		if once || err != nil || r.yielded {
			return pause, err
		}
		if r.wait(ctx, pause); r.yielded {
			return pause, nil
		}
	}
}

// stopped returns what the end of ctx means for who holds the account: nothing if
// the process stops.
func (r *run) stopped(ctx context.Context, cause error) error {
	switch {
	case errors.Is(cause, errLost):
		r.log.WarnContext(ctx, "triage lost an account", slog.Any("error", cause))
		return cause
	case errors.Is(cause, errChanged):
		return cause
	}
	return nil
}

// cycle reads what is new in every folder, takes into account what the owner did,
// asks models about some of what they are to be asked, and then reads a page of
// what is older, until nothing older is left and nothing can be asked.
func (r *run) cycle(ctx context.Context) (err error) {
	ctx, span := r.engine.cfg.Tracer.Start(ctx, "read account", trace.WithAttributes(attribute.String("account_id", r.account.ID.String())))
	defer func() { endSpan(span, err) }()
	if err := r.start(ctx); err != nil {
		return err
	}
	r.engine.cfg.Models.await(ctx, firstLook)
	changes, backfill, asked := newPass(r, kindChanges), newPass(r, kindBackfill), newPass(r, kindAsked)
	defer changes.end(ctx)
	defer backfill.end(ctx)
	defer asked.end(ctx)
	r.down = map[cascade.Tier]sight{}
	for {
		for _, f := range r.folders {
			if err := changes.newer(ctx, f); err != nil {
				changes.err = err
				return err
			}
		}
		if err := changes.readAside(ctx); err != nil {
			changes.err = err
			return err
		}
		if err := changes.owner(ctx); err != nil {
			changes.err = err
			return err
		}
		open, err := asked.askModels(ctx)
		if err != nil {
			asked.err = err
			return err
		}
		if err := r.looked(ctx); err != nil {
			return err
		}
		older, err := backfill.page(ctx, r.folders)
		if err != nil {
			backfill.err = err
			return err
		}
		texts, err := changes.texts(ctx)
		if err != nil {
			changes.err = err
		}
		if err != nil || !older && !texts && !open || r.yielded {
			return err
		}
	}
}

// start opens the account unless it is open, and loads what decisions depend on.
func (r *run) start(ctx context.Context) error {
	err := r.engine.tx(ctx, func(tx pgx.Tx) error {
		var err error
		if r.failures, err = startSchedule(ctx, tx, r); err != nil {
			return err
		}
		if r.reader == nil {
			if err := interruptRuns(ctx, tx, r); err != nil {
				return err
			}
		}
		return errors.Join(configured(ctx, tx, r), r.loadAside(ctx, tx), r.load(ctx, tx))
	})
	if err != nil || r.reader != nil {
		return err
	}
	reader, err := r.engine.cfg.Open(ctx, r.account)
	if err != nil {
		return err
	}
	reader = bounded{reader}
	all, err := reader.Folders(ctx)
	r.folders = r.folders[:0]
	for _, f := range all {
		if r.account.Connection.Reads(f) {
			r.folders = append(r.folders, f)
		}
	}
	if err == nil && len(r.folders) == 0 {
		err = fmt.Errorf("the account has none of the folders that are to be read")
	}
	if err != nil {
		return errors.Join(err, reader.Close())
	}
	r.reader = reader
	return nil
}

// load reads the owner's correspondents, and the corrections if they changed.
func (r *run) load(ctx context.Context, tx pgx.Tx) error {
	list, err := contacts(ctx, tx, r)
	if err != nil {
		return err
	}
	r.contacts = signal.NewContacts(list)
	version, err := correctionsOf(ctx, tx, r)
	if err != nil || r.model != nil && version == r.corrections {
		return err
	}
	if r.corrected, err = correctedSenders(ctx, tx, r); err != nil {
		return err
	}
	if err := decideCorrected(ctx, tx, r); err != nil {
		return err
	}
	made, err := corrections(ctx, tx, r)
	if err != nil {
		return err
	}
	if r.model, err = r.engine.cfg.Model.Corrected(made); err == nil {
		r.corrections = version
	}
	return err
}

// ended records how a cycle ended. After an error the account is opened again.
func (r *run) ended(ctx context.Context, err error, pause time.Duration) error {
	if err != nil && r.reader != nil {
		_ = r.reader.Close()
		r.reader = nil
	}
	r.engine.metrics.Cycle(ctx, err)
	return r.engine.tx(ctx, func(tx pgx.Tx) error {
		return errors.Join(endSchedule(ctx, tx, r, problem(err), pause), modelStates(ctx, tx, r))
	})
}

// wait returns when a folder may have changed, when somebody asks for a run, when
// a model can be asked again, when the account is to be given back, or after a
// while. What a reader that cannot wait says shows in the next cycle.
func (r *run) wait(ctx context.Context, longest time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	var signals sync.WaitGroup
	signals.Go(func() {
		defer cancel()
		back := time.NewTicker(r.engine.cfg.Look)
		defer back.Stop()
		for {
			select {
			case <-r.asked:
				return
			case <-r.engine.yields:
				r.yielded = true
				return
			case <-ctx.Done():
				return
			case <-back.C:
				if r.canAskAgain() {
					return
				}
			}
		}
	})
	if err := r.reader.Wait(ctx, r.folderNames()); err != nil {
		<-ctx.Done() // at the latest when the account is due by its interval
	}
	cancel()
	signals.Wait()
}

// renew extends the lease until ctx ends, and cancels it when the account is lost
// or changed.
func (r *run) renew(ctx context.Context, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(min(r.engine.cfg.Lease/4, 2*time.Second))
	defer tick.Stop()
	for until := time.Now().Add(r.engine.cfg.Lease); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var now renewal
		began := time.Now()
		err := r.engine.tx(ctx, func(tx pgx.Tx) (err error) {
			now, err = renew(ctx, tx, r)
			return err
		})
		switch {
		case errors.Is(err, fault.NotFound), err != nil && time.Now().After(until):
			cancel(errLost)
		case err != nil:
		case !now.enabled || now.version != r.account.Version:
			cancel(errChanged)
		default:
			until = began.Add(r.engine.cfg.Lease)
			if now.asked {
				select {
				case r.asked <- struct{}{}:
				default:
				}
			}
		}
	}
}

// pauseAfter returns how long to wait after an error: what the server asks for,
// else from some seconds to a quarter of an hour, longer with each failure.
func (r *run) pauseAfter(err error) time.Duration {
	if asked := mailbox.RetryAfter(err); asked > 0 {
		return asked
	}
	const first, longest = 10 * time.Second, 15 * time.Minute
	pause := min(first<<min(r.failures, 10), max(r.account.Every, longest))
	return time.Duration((0.75 + rand.Float64()/2) * float64(pause))
}
