package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/mcp"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// MaxAttempts bounds the reads about one call. The last is about two hours after
// the first.
const MaxAttempts = 10

// Results of a read, in addition to those of Interpret, and reasons for a
// missing answer.
const (
	resultTooEarly = "not_found_yet"
	resultRuleGone = "rule_gone"
)

// Config configures a Reconciler. Its zero fields have the defaults below.
type Config struct {
	// Deadline bounds one read: 30 s.
	Deadline time.Duration
	// Grace is the age of a dead letter from which "it did not happen" is
	// believed: half a minute longer than a call may take.
	Grace time.Duration
	// Batch bounds the reads of one sweep: 32. Parallel of them run side by
	// side: 8.
	Batch, Parallel int
	Log             *slog.Logger
}

// Connections gives the connection to a source. *connect.Pool is one.
type Connections interface {
	Get(snap *settings.Settings, source string) (source.Source, error)
}

// Reconciler finds out the outcome of unresolved calls. It is safe for
// concurrent use, and several may work on one database.
type Reconciler struct {
	db    postgres.Begins
	cache *settings.Cache
	live  Connections
	cfg   Config
}

// New returns a Reconciler.
func New(db postgres.Begins, cache *settings.Cache, live Connections, cfg Config) *Reconciler {
	cfg.Deadline = cmp.Or(cfg.Deadline, 30*time.Second)
	cfg.Grace = cmp.Or(cfg.Grace, mcp.DefaultCallTimeout+30*time.Second)
	cfg.Batch = cmp.Or(cfg.Batch, 32)
	cfg.Parallel = cmp.Or(cfg.Parallel, 8)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	return &Reconciler{db: db, cache: cache, live: live, cfg: cfg}
}

// Sweep makes the reads that are due and returns their number. A read whose
// process dies is due again soon after Deadline.
func (v *Reconciler) Sweep(ctx context.Context) (int, error) {
	rounds := (v.cfg.Batch + v.cfg.Parallel - 1) / v.cfg.Parallel
	hold := time.Duration(rounds)*v.cfg.Deadline + time.Minute
	var calls []unresolvedCall
	snaps := make(map[envelope.TenantID]*settings.Settings)
	err := postgres.InTx(ctx, v.db, postgres.Worker(), func(tx pgx.Tx) error {
		var err error
		if calls, err = claim(ctx, tx, v.cfg.Batch, hold); err != nil {
			return err
		}
		for i := range calls {
			tenant := calls[i].lease.Tenant
			if snaps[tenant], err = v.cache.Current(ctx, tx, tenant); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("take verifying reads on: %w", err)
	}
	var group errgroup.Group
	group.SetLimit(v.cfg.Parallel)
	for i := range calls {
		r := &calls[i]
		group.Go(func() error { return v.reconcile(ctx, snaps[r.lease.Tenant], r) })
	}
	return len(calls), group.Wait()
}

// reconcile makes the read about one call and stores its result.
func (v *Reconciler) reconcile(ctx context.Context, snap *settings.Settings, r *unresolvedCall) error {
	said := v.read(ctx, snap, r)
	found := v.decide(r, said)
	// The result is stored even if the process is about to end.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err := postgres.InTx(ctx, v.db, postgres.Worker(), func(tx pgx.Tx) error { return settle(ctx, tx, r, found) })
	if err != nil {
		return fmt.Errorf("settle verifying read of %s: %w", r.lease.Action, err)
	}
	v.cfg.Log.InfoContext(ctx, "unknown outcome looked into", slog.String("action_id", r.lease.Action.String()),
		slog.Int("try", r.attempt), slog.String("said", said), slog.Bool("resolved", found.resolve))
	return nil
}

// read makes the read and returns its result, in one word.
func (v *Reconciler) read(ctx context.Context, snap *settings.Settings, r *unresolvedCall) string {
	if r.rule == nil {
		return resultRuleGone
	}
	read := Read{
		About: r.lease, Args: r.args, Source: r.source, Rule: *r.rule, Name: "verify/" + strconv.Itoa(r.attempt), Deadline: v.cfg.Deadline,
		Open: func() (source.Source, error) { return v.live.Get(snap, r.source) },
	}
	answer, said := read.Run(ctx, v.cfg.Log, snap)
	if said != "" {
		return said
	}
	return string(r.rule.Interpret(answer))
}

// decision is the consequence of a read.
type decision struct {
	resolve, happened bool
	note              string
	// said, again and last are for a call that stays unresolved: the result of the
	// read, the time until the next read, and whether this was the last one.
	said  string
	again time.Duration
	last  bool
}

// decide returns the consequence of a read's result.
func (v *Reconciler) decide(r *unresolvedCall, said string) decision {
	stays := decision{said: said, again: wait(r.attempt), last: r.attempt >= MaxAttempts}
	switch {
	case said == resultRuleGone:
		stays.last = true
	case said == resultPaused:
		stays.last = false // no request was made
	case said == string(Happened):
		return decision{resolve: true, happened: true, note: "the source has it"}
	case said == string(NotFound) && r.age < v.cfg.Grace:
		// A "not there" is not believed before the grace period is over; another read
		// follows it in any case.
		stays.said, stays.again, stays.last = resultTooEarly, max(stays.again, v.cfg.Grace-r.age), false
	case said == string(NotFound) && r.mayRunAgain():
		return decision{resolve: true, note: "the source does not have it"}
	}
	return stays
}

// mayRunAgain reports whether a repeat is harmless even if the first request arrives
// later, or whether the rule excludes that by Resend.
func (r *unresolvedCall) mayRunAgain() bool {
	switch r.effect {
	case envelope.EffectRead, envelope.EffectIdempotent, envelope.EffectKeyed:
		return true
	case envelope.EffectOnce:
	}
	return r.rule.Resend
}

// wait returns the delay after an attempt, counted from 1.
func wait(attempt int) time.Duration {
	return outbox.Retry{Base: 10 * time.Second, Cap: time.Hour, Jitter: 0.2}.Wait(min(attempt, MaxAttempts), 0)
}
