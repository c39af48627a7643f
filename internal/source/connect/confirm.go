package connect

import (
	"context"
	"sync"
	"time"

	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// Confirmer asks sources whether tools are still as a snapshot has them, for
// calls that a person approved: between two listings a source could change
// what was looked at. It is safe for concurrent use.
type Confirmer struct {
	refresher *Refresher

	mu     sync.Mutex
	latest map[poolKey]*hearing
}

// hearing is a listing of one source, which those who ask share. The fields
// below done are set when done is closed.
type hearing struct {
	began   time.Time
	done    chan struct{}
	digests map[string][]byte
	err     error
}

// NewConfirmer returns a Confirmer that stores what it hears through r.
func NewConfirmer(r *Refresher) *Confirmer {
	return &Confirmer{refresher: r, latest: make(map[poolKey]*hearing)}
}

// Confirm says whether a source offers a tool exactly as the snapshot has it,
// by a listing that began at since or later; now is when it begins if one has
// to be made. What has changed is stored before Confirm returns, so that a
// snapshot read afterwards has it. The error says why the source could not be
// listed.
func (c *Confirmer) Confirm(ctx context.Context, snap *settings.Settings, key policy.Key, since, now time.Time) (bool, error) {
	tool, ok := snap.Tool(key)
	if !ok {
		return false, nil
	}
	at := poolKey{snap.Tenant, key.Source}
	c.mu.Lock()
	h := c.latest[at]
	mine := h == nil || h.began.Before(since)
	if mine {
		h = &hearing{began: now, done: make(chan struct{})}
		c.latest[at] = h
	}
	c.mu.Unlock()
	if mine {
		h.digests, h.err = c.hear(ctx, snap, key.Source)
		close(h.done)
	}
	select {
	case <-h.done:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	if h.err != nil {
		return false, h.err
	}
	return tool.Is(h.digests[key.Action]), nil
}

// hear lists a source, and stores the listing if it is not what the snapshot
// has.
func (c *Confirmer) hear(ctx context.Context, snap *settings.Settings, source string) (map[string][]byte, error) {
	tools, err := c.refresher.list(ctx, snap, source)
	if err != nil {
		return nil, err
	}
	digests := catalog.ListingDigests(tools)
	if sameTools(snap, source, digests) {
		return digests, nil
	}
	return digests, c.refresher.store(ctx, snap.Tenant, source, tools, nil)
}

// sameTools says that a listing has the tools of a snapshot, as they are
// there.
func sameTools(snap *settings.Settings, source string, digests map[string][]byte) bool {
	have := 0
	for _, t := range snap.Tools() {
		if t.Key.Source != source {
			continue
		}
		if !t.Is(digests[t.Key.Action]) {
			return false
		}
		have++
	}
	return have == len(digests)
}

// Discovered says that tools of a kind of source come from elsewhere, and may
// change without a release of Countersign.
func Discovered(kind string) bool {
	switch kind {
	case catalog.KindMCP, catalog.KindToolGateway, catalog.KindComposio:
		return true
	}
	return false
}
