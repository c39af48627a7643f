package worker

import (
	"sync"
	"time"

	"github.com/countersign-dev/countersign/internal/action/outbox"
)

// inFlight are the leases that this worker holds, each from claim to commit.
type inFlight struct {
	mu   sync.Mutex
	held map[outbox.Lease]time.Time
}

func newInFlight() *inFlight { return &inFlight{held: make(map[outbox.Lease]time.Time)} }

func (f *inFlight) add(items []outbox.Item, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range items {
		f.held[items[i].Lease] = now
	}
}

func (f *inFlight) drop(leases []outbox.Lease) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range leases {
		delete(f.held, l)
	}
}

// since returns the leases that were acquired or renewed before a time, and
// counts them as renewed now.
func (f *inFlight) since(then, now time.Time) []outbox.Lease {
	f.mu.Lock()
	defer f.mu.Unlock()
	var old []outbox.Lease
	for l, at := range f.held {
		if at.Before(then) {
			old = append(old, l)
			f.held[l] = now
		}
	}
	return old
}
