package fence

import (
	"sync"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
)

const (
	// remembered is for how long calls are remembered, and mostCalls how many are.
	remembered = 5 * time.Minute
	mostCalls  = 20_000
)

// call is a call that the process made, and that may be repeated by mistake if the
// database loses it.
type call struct {
	outbox.Lease
	externalID, source, tool string
	effect                   envelope.Effect
	at                       time.Time
	// outcome is that of the call, if it ended; without the tool's answer.
	outcome outbox.Settlement
	ended   bool
	// told reports whether the call was reported to a database that lost commits.
	told bool
}

// settles reports whether the outcome is one that settles the action.
func (c *call) settles() bool { return c.ended && c.outcome.Status != envelope.StatusPending }

// harmless reports whether a call that returned its action to the outbox may be made once
// more under the key of another action.
func (c *call) harmless() bool { return c.effect == envelope.EffectIdempotent || !c.outcome.Unsure }

// calls are those of the last minutes, in the order of their starts.
type calls struct {
	mu    sync.Mutex
	last  map[outbox.Lease]*call
	order []*call
}

// Started remembers calls that are about to be made. Reads are not remembered.
func (g *Guard) Started(items []*outbox.Item, now time.Time) {
	g.calls.mu.Lock()
	defer g.calls.mu.Unlock()
	c := &g.calls
	if c.last == nil {
		c.last = make(map[outbox.Lease]*call)
	}
	for _, it := range items {
		if it.Effect == envelope.EffectRead {
			continue
		}
		made := &call{Lease: it.Lease, externalID: it.ExternalID, source: it.Source, tool: it.Tool, effect: it.Effect, at: now}
		c.last[it.Lease] = made
		c.order = append(c.order, made)
	}
	old := 0
	for old < len(c.order) && (len(c.order)-old > mostCalls || now.Sub(c.order[old].at) > remembered) {
		delete(c.last, c.order[old].Lease)
		old++
	}
	c.order = c.order[old:]
}

// Ended remembers the outcomes of calls, whether or not they are recorded: a database that
// lost commits may have no lease that an outcome could settle. A call that returned its
// action to the outbox and had no effect is forgotten.
func (g *Guard) Ended(batch []outbox.Settlement) {
	g.calls.mu.Lock()
	defer g.calls.mu.Unlock()
	for i := range batch {
		made := g.calls.last[batch[i].Lease]
		if made == nil {
			continue
		}
		made.outcome, made.ended = batch[i], true
		made.outcome.Result, made.outcome.UnusedPermit, made.outcome.CloseBucketFor = nil, outbox.Permit{}, 0
		if !made.settles() && made.harmless() && !made.told {
			delete(g.calls.last, made.Lease)
		}
	}
}

// made returns the calls that are remembered, the newest of each action, and the number of
// those that run. They are about to be reported.
func (g *Guard) made() (all []call, running int) {
	g.calls.mu.Lock()
	defer g.calls.mu.Unlock()
	newest := make(map[envelope.ActionID]int)
	for _, c := range g.calls.order {
		if g.calls.last[c.Lease] != c {
			continue
		}
		c.told = true
		if !c.ended {
			running++
		}
		at, ok := newest[c.Action]
		switch {
		case !ok:
			newest[c.Action] = len(all)
			all = append(all, *c)
		case c.settles() || !c.ended || !c.harmless(): // else an earlier one may have had an effect
			all[at] = *c
		}
	}
	return all, running
}
