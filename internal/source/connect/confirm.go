package connect

import (
	"context"
	"sync"
	"time"

	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// Confirmer lists sources to find out whether tools are still as the settings
// have them, for calls that a person approved: a source could change between
// two listings. It is safe for concurrent use.
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

// Confirm reports whether a source offers a tool exactly as the settings have
// it, by a listing that began at since or later; now is when a new listing
// begins. Changes are stored before Confirm returns, so that settings read
// afterwards have them. The error says why the source could not be listed.
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
	return tool.Is(l.digests[key.Action]), nil
}

// list lists a source, and stores the listing if it differs from the settings.
func (c *Confirmer) list(ctx context.Context, current *settings.Settings, source string) (map[string][]byte, error) {
	tools, err := c.refresher.list(ctx, current, source)
	if err != nil {
		return nil, err
	}
	digests := catalog.ListingDigests(tools)
	if sameTools(current, source, digests) {
		return digests, nil
	}
	return digests, c.refresher.store(ctx, current.Tenant, source, tools, nil)
}

// sameTools reports whether a listing has the tools of the settings, unchanged.
func sameTools(current *settings.Settings, source string, digests map[string][]byte) bool {
	have := 0
	for _, t := range current.Tools() {
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

// Discovered reports whether the tools of a kind of source are defined by the
// source, and so may change without a release of Countersign.
func Discovered(kind string) bool {
	switch kind {
	case catalog.KindMCP, catalog.KindToolGateway, catalog.KindComposio:
		return true
	}
	return false
}
