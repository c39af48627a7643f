package connection

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// Refresher lists sources again and stores the results.
type Refresher struct {
	db    postgres.Begins
	cache *settings.Cache
	pool  *Pool
	log   *slog.Logger

	mu      sync.Mutex
	listing map[poolKey]bool
}

// NewRefresher returns a Refresher that lists sources through the connections of
// a pool.
func NewRefresher(db postgres.Begins, cache *settings.Cache, pool *Pool, log *slog.Logger) *Refresher {
	return &Refresher{db: db, cache: cache, pool: pool, log: log, listing: make(map[poolKey]bool)}
}

// RefreshStale lists the sources of every tenant whose listing is older than age
// or was requested, a few at a time. If listing a source fails, the reason is
// stored and the others are not affected. Sources that a concurrent call is
// listing are skipped, so calls may overlap.
func (r *Refresher) RefreshStale(ctx context.Context, age time.Duration) error {
	const limit, atOnce = 200, 8
	stale, err := postgres.InTxReturning(ctx, r.db, postgres.Worker(), func(tx pgx.Tx) ([]catalog.StaleSource, error) {
		return catalog.Stale(ctx, tx, age.Seconds(), limit)
	})
	if err != nil {
		return err
	}
	var g errgroup.Group
	g.SetLimit(atOnce)
	for _, s := range stale {
		if !r.begin(poolKey{s.Tenant, s.ID}) {
			continue
		}
		g.Go(func() error {
			defer r.end(poolKey{s.Tenant, s.ID})
			if err := r.Refresh(ctx, s.Tenant, s.ID); err != nil {
				r.log.WarnContext(ctx, "source was not listed", slog.String("tenant_id", s.Tenant.String()),
					slog.String("source_id", s.ID), slog.Any("error", err))
			}
			return nil
		})
	}
	return g.Wait()
}

// begin marks a source as being listed. It returns false if it is already.
func (r *Refresher) begin(of poolKey) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listing[of] {
		return false
	}
	r.listing[of] = true
	return true
}

func (r *Refresher) end(of poolKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.listing, of)
}

// Refresh lists one source now. If listing fails, the reason is returned and
// stored with the source, and its tools stay unchanged.
func (r *Refresher) Refresh(ctx context.Context, tenant envelope.TenantID, id string) error {
	var current *settings.Settings
	err := postgres.InTx(ctx, r.db, postgres.Worker(), func(tx pgx.Tx) error {
		var err error
		current, err = r.cache.Current(ctx, tx, tenant)
		return err
	})
	if err != nil {
		return err
	}
	tools, skipped, listErr := r.list(ctx, current, id)
	return errors.Join(listErr, r.store(ctx, tenant, id, tools, listErr), r.storeSkipped(ctx, tenant, id, skipped))
}

func (r *Refresher) storeSkipped(ctx context.Context, tenant envelope.TenantID, id string, lines int) error {
	if lines == 0 {
		return nil
	}
	return postgres.InTx(ctx, r.db, postgres.Worker(), func(tx pgx.Tx) error {
		return catalog.PutSkippedLines(ctx, tx, tenant, id, lines)
	})
}

// store stores a listing with an event of its changes, or the reason why it
// failed.
func (r *Refresher) store(ctx context.Context, tenant envelope.TenantID, id string, tools []source.Tool, listErr error) error {
	return postgres.InTx(ctx, r.db, postgres.Worker(), func(tx pgx.Tx) error {
		if listErr != nil {
			return catalog.PutListError(ctx, tx, tenant, id, strings.TrimPrefix(reason(listErr), "list tools of "+id+": "))
		}
		return catalog.PutListing(ctx, tx, tenant, id, tools)
	})
}

func (r *Refresher) list(ctx context.Context, current *settings.Settings, id string) (tools []source.Tool, skipped int, err error) {
	src, err := r.pool.Get(current, id)
	if err != nil {
		return nil, 0, err
	}
	tools, err = src.List(ctx)
	return tools, source.SkippedLines(src), err
}

// reason returns the part of a listing error that operators may read.
func reason(err error) string {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Text
	}
	return "the source could not be listed; see the worker's log"
}

// Confirmer lists sources to find out whether tools still match the settings. It
// is for calls that a person approved: a source could change between two
// listings. It is safe for concurrent use.
type Confirmer struct {
	refresher *Refresher

	mu     sync.Mutex
	latest map[poolKey]*listing
}

// listing is a listing of one source, shared by concurrent callers. The fields
// below done are set when done is closed.
type listing struct {
	began   time.Time
	done    chan struct{}
	digests map[string][]byte
	err     error
}

// NewConfirmer returns a Confirmer that stores listings through r.
func NewConfirmer(r *Refresher) *Confirmer {
	return &Confirmer{refresher: r, latest: make(map[poolKey]*listing)}
}

// Confirm reports whether a source offers a tool exactly as in the settings, by
// a listing that began at since or later; now is the start of a new listing.
// Changes are stored before Confirm returns, so later reads of the settings
// include them. The error is the reason why the source could not be listed.
func (c *Confirmer) Confirm(ctx context.Context, current *settings.Settings, key policy.Key, since, now time.Time) (bool, error) {
	tool, ok := current.Tool(key)
	if !ok {
		return false, nil
	}
	at := poolKey{current.Tenant, key.Source}
	c.mu.Lock()
	l := c.latest[at]
	first := l == nil || l.began.Before(since)
	if first {
		l = &listing{began: now, done: make(chan struct{})}
		c.latest[at] = l
	}
	c.mu.Unlock()
	if first {
		l.digests, l.err = c.list(ctx, current, key.Source)
		close(l.done)
	}
	select {
	case <-l.done:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	if l.err != nil {
		return false, l.err
	}
	return tool.Lists(l.digests[key.Action]), nil
}

// list lists a source, and stores the listing if it differs from the settings.
func (c *Confirmer) list(ctx context.Context, current *settings.Settings, source string) (map[string][]byte, error) {
	tools, _, err := c.refresher.list(ctx, current, source)
	if err != nil {
		return nil, err
	}
	digests := catalog.ListingDigests(tools)
	if sameTools(current, source, digests) {
		return digests, nil
	}
	return digests, c.refresher.store(ctx, current.Tenant, source, tools, nil)
}

// sameTools reports whether a listing equals the tools in the settings.
func sameTools(current *settings.Settings, source string, digests map[string][]byte) bool {
	have := 0
	for _, t := range current.Tools() {
		if t.Key.Source != source {
			continue
		}
		if !t.Lists(digests[t.Key.Action]) {
			return false
		}
		have++
	}
	return have == len(digests)
}

// Discovered reports whether the tools of a kind of source are defined by the
// source, and so may change without a release of Countersign.
func Discovered(kind string) bool {
	switch kind {
	case catalog.KindMCP, catalog.KindToolGateway, catalog.KindComposio:
		return true
	}
	return false
}
