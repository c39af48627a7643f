package worker

import (
	"sync"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/source/breaker"
)

// A worker whose slots are all held by slow calls opens spare slots, as many as
// it has slots, for actions that would otherwise wait for these: actions of a
// tenant or a source that has less than its share, and awaited actions, which
// have a share of their own. A tenant or source that is alone may use all
// slots.
const (
	// stalledAfter is the time without a free slot after which spare slots are
	// opened.
	stalledAfter = 100 * time.Millisecond
	// spareLookMin and spareLookMax bound the pause between two looks for such
	// actions when the previous one found none; a wake-up ends the pause.
	spareLookMin, spareLookMax = 100 * time.Millisecond, time.Second
	// spareRetry is the pause before the next request for spare slots when all are
	// taken.
	spareRetry = 5 * time.Millisecond
	// turnWait is the delay until an action of a flow that has its share is due
	// again, and turnEvery the interval between such actions, so that the flow's
	// backlog is not before the others, and a long one is not claimed over and
	// over.
	turnWait, turnEvery = time.Second, 2 * time.Millisecond
)

// flow is a holder of a share of a tenant's slots: the awaited actions of a source,
// or its other ones.
type flow struct {
	breaker.Source
	awaited bool
}

func flowOf(it *outbox.Item) flow { return flow{sourceOf(it), it.Awaited} }

// holding is a lease that a worker holds.
type holding struct {
	renewed time.Time
	flow    flow
}

// inFlight are the leases that this worker holds, each from claim to commit.
type inFlight struct {
	mu      sync.Mutex
	held    map[outbox.Lease]holding
	tenants map[envelope.TenantID]*load
}

// load is the number of actions of a tenant, and of each of its flows, in
// flight.
type load struct {
	all   int
	flows map[flow]int
}

func newInFlight() *inFlight {
	return &inFlight{held: make(map[outbox.Lease]holding), tenants: make(map[envelope.TenantID]*load)}
}

// len returns the number of actions in flight.
func (f *inFlight) len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.held)
}

func (f *inFlight) add(items []outbox.Item, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range items {
		f.held[items[i].Lease] = holding{now, flowOf(&items[i])}
		f.count(flowOf(&items[i]), 1)
	}
}

// count adds to the actions in flight of a flow. Entries without actions go.
func (f *inFlight) count(of flow, n int) {
	l := f.tenants[of.Tenant]
	if l == nil {
		l = &load{flows: make(map[flow]int)}
		f.tenants[of.Tenant] = l
	}
	l.all += n
	if l.flows[of] += n; l.flows[of] == 0 {
		delete(l.flows, of)
	}
	if l.all == 0 {
		delete(f.tenants, of.Tenant)
	}
}

func (f *inFlight) drop(leases []outbox.Lease) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range leases {
		if h, ok := f.held[l]; ok {
			delete(f.held, l)
			f.count(h.flow, -1)
		}
	}
}

// since returns the leases that were acquired or renewed before a time, and
// counts them as renewed now.
func (f *inFlight) since(then, now time.Time) []outbox.Lease {
	f.mu.Lock()
	defer f.mu.Unlock()
	var old []outbox.Lease
	for l, h := range f.held {
		if h.renewed.Before(then) {
			old = append(old, l)
			h.renewed = now
			f.held[l] = h
		}
	}
	return old
}

// withinShare reports for each item of a batch, which is in flight already,
// whether it may run in a spare slot: its tenant has less than its share of the
// slots, or its flow less than its share of the tenant's.
func (f *inFlight) withinShare(items []outbox.Item, slots int) []bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	share := max(1, slots/max(1, len(f.tenants)))
	alone := len(f.tenants) == 1
	ofTenant := make(map[envelope.TenantID]int)
	for i := range items {
		tenant := items[i].Tenant
		ofTenant[tenant] = max(1, share/len(f.tenants[tenant].flows))
	}
	for i := range items {
		f.count(flowOf(&items[i]), -1)
	}
	within := make([]bool, len(items))
	var beyond []flow
	for i := range items {
		of := flowOf(&items[i])
		f.count(of, 1)
		l := f.tenants[of.Tenant]
		within[i] = !alone && l.all <= share || l.flows[of] <= ofTenant[of.Tenant]
		if !within[i] {
			f.count(of, -1)
			beyond = append(beyond, of)
		}
	}
	for _, of := range beyond {
		f.count(of, 1) // until its lease is dropped
	}
	return within
}

// turns holds the next due times of flows that have their share of the slots.
type turns map[flow]time.Time

// next returns the delay of the next action of a flow.
func (t turns) next(of flow, now time.Time) time.Duration {
	for other, at := range t {
		if at.Before(now) {
			delete(t, other)
		}
	}
	at := t[of].Add(turnEvery)
	if earliest := now.Add(turnWait); at.Before(earliest) {
		at = earliest
	}
	t[of] = at
	return at.Sub(now)
}

// withinShares reports for each item of a batch whether it may run in a spare slot.
func (p *Pipeline) withinShares(items []outbox.Item) []bool {
	p.inFlight.add(items, time.Now())
	within := p.inFlight.withinShare(items, p.cfg.Concurrency)
	leases := make([]outbox.Lease, len(items))
	for i := range items {
		leases[i] = items[i].Lease
	}
	p.inFlight.drop(leases)
	return within
}
