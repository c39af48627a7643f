package overview

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/client/wire"
)

// group is the actions of a bucket that wait for the same reason.
type group struct {
	bucket Bucket
	reason string
	// gated means that they wait for it even if the bucket is paused.
	gated          bool
	envelopes, due int64
	// first is how long the first of them has been due; negative if it is not yet.
	// startable is for how long its bucket has let it through, too.
	first, startable time.Duration
}

// Reasons that are not those of the view envelopes.
const (
	reasonInFlight = "in_flight"
	reasonOverdue  = "overdue"
	reasonTurn     = "turn"
	reasonPaused   = "paused"
	reasonApproval = "approval"
	reasonOther    = "other"
)

// counts are the sums of groups.
type counts struct {
	Backlog
	reasons map[string]wire.OverviewWaiting
	buckets map[int64]Bucket
	// turns are the actions of each bucket that wait for their turn.
	turns map[int64]turn
}

// turn is how many actions of a bucket wait for their turn, and for how long the
// first of them has.
type turn struct {
	limited bool
	actions int64
	oldest  time.Duration
}

func count(groups []group, pauses []Pause) counts {
	t := counts{reasons: make(map[string]wire.OverviewWaiting), buckets: make(map[int64]Bucket), turns: make(map[int64]turn)}
	for _, g := range groups {
		switch g.reason {
		case reasonInFlight:
			t.InFlight += g.envelopes
			continue
		case reasonOverdue:
			t.Overdue += g.envelopes
			t.Due += g.envelopes
			continue
		}
		if g.reason == reasonPaused && !isPaused(pauses, g.bucket.Tenant) {
			// The pause is lifted, and the sweep is about to wake its actions.
			g.reason, g.due, g.first, g.startable = reasonTurn, g.envelopes, 0, 0
		}
		paused := coversBucket(pauses, g.bucket)
		if paused && !g.gated {
			g.reason = reasonPaused
		}
		t.Due += g.due
		t.Scheduled += g.envelopes - g.due
		if g.reason == reasonTurn {
			of := t.turns[g.bucket.id]
			t.turns[g.bucket.id] = turn{g.bucket.Limited, of.actions + g.envelopes, max(of.oldest, g.startable)}
		}
		t.reasons[g.reason] = withGroup(t.reasons[g.reason], g)
		b, ok := t.buckets[g.bucket.id]
		if !ok {
			b = g.bucket
		}
		b.Waiting += g.envelopes
		b.OldestDue = max(b.OldestDue, g.first)
		b.Paused = paused
		t.buckets[b.id] = b
	}
	return t
}

func withGroup(w wire.OverviewWaiting, g group) wire.OverviewWaiting {
	w.Reason = g.reason
	w.Actions += g.envelopes
	if first := g.first.Seconds(); first >= 0 {
		w.OldestDue = max(w.OldestDue, first)
	} else if w.NextIn == nil || -first < *w.NextIn {
		w.NextIn = new(-first)
	}
	return w
}

// isPaused reports whether any pause of a tenant, or of everything, stands.
func isPaused(pauses []Pause, tenant string) bool {
	return slices.ContainsFunc(pauses, func(p Pause) bool { return p.Scope == "everything" || p.Tenant == tenant })
}

// coversBucket reports whether no action of a bucket may be claimed.
func coversBucket(pauses []Pause, b Bucket) bool {
	return slices.ContainsFunc(pauses, func(p Pause) bool {
		return p.Scope == "everything" || p.Tenant == b.Tenant && (p.Scope == "tenant" || p.Scope == "bucket" && p.Subject == b.Name)
	})
}

// waiting lists the reasons, most first. There are few; should there ever be
// many, the smallest are summed.
func (c counts) waiting(approvals wire.OverviewApprovals) []wire.OverviewWaiting {
	all := slices.AppendSeq([]wire.OverviewWaiting{}, maps.Values(c.reasons))
	if approvals.Waiting > 0 {
		all = append(all, wire.OverviewWaiting{Reason: reasonApproval, Actions: approvals.Waiting})
	}
	slices.SortFunc(all, func(a, b wire.OverviewWaiting) int {
		return cmp.Or(cmp.Compare(b.Actions, a.Actions), cmp.Compare(a.Reason, b.Reason))
	})
	if len(all) <= mostReasons {
		return all
	}
	other := wire.OverviewWaiting{Reason: reasonOther}
	for _, w := range all[mostReasons-1:] {
		other.Actions += w.Actions
		other.OldestDue = max(other.OldestDue, w.OldestDue)
	}
	return append(all[:mostReasons-1], other)
}

// fullest returns the ids of the buckets with the most envelopes: of those
// with limits, and of the others.
func (c counts) fullest(limited, unlimited int) []int64 {
	var with, without []Bucket
	for _, b := range c.buckets {
		if b.Limited {
			with = append(with, b)
		} else {
			without = append(without, b)
		}
	}
	var ids []int64
	for _, half := range []struct {
		of   []Bucket
		most int
	}{{with, limited}, {without, unlimited}} {
		sortBuckets(half.of)
		for _, b := range half.of[:min(half.most, len(half.of))] {
			ids = append(ids, b.id)
		}
	}
	return ids
}

// startable returns how many actions one more worker could start now, and for how
// long the oldest of them has waited for nothing but a worker, given the state of
// the buckets that have limits. Of a bucket with limits as many count as it
// lets through now. A bucket of which at least half of the calls are open that it
// allows at once is at its own limit, and not old: the other calls are between
// the end of one and the next claim. complete is false if a bucket with limits is
// not among those given.
func (c counts) startable(buckets []Bucket) (n int64, oldest time.Duration, complete bool) {
	read := make(map[int64]Bucket, len(buckets))
	for _, b := range buckets {
		read[b.id] = b
	}
	complete = true
	for id, t := range c.turns {
		b, ok := read[id]
		if !t.limited {
			n += t.actions
			oldest = max(oldest, t.oldest)
			continue
		}
		complete = complete && ok
		free := t.actions
		if b.Permits >= 0 {
			free = min(free, b.Permits)
		}
		if b.Concurrency >= 0 {
			free = min(free, max(0, b.Concurrency-b.InUse))
		}
		n += free
		if free > 0 && (b.Concurrency < 0 || 2*b.InUse < b.Concurrency) {
			oldest = max(oldest, t.oldest)
		}
	}
	return n, oldest, complete
}

// filled adds what waits to the state of buckets, and sorts the fullest first.
func (c counts) filled(buckets []Bucket, pauses []Pause) []Bucket {
	for i := range buckets {
		b := &buckets[i]
		b.Waiting, b.OldestDue, b.Paused = c.buckets[b.id].Waiting, c.buckets[b.id].OldestDue, coversBucket(pauses, *b)
	}
	sortBuckets(buckets)
	return buckets
}

// rest sums up what waits in the other buckets.
func (c counts) rest(buckets []Bucket) Bucket {
	rest := Bucket{Tenant: others, Name: others}
	for id, b := range c.buckets {
		if !slices.ContainsFunc(buckets, func(o Bucket) bool { return o.id == id }) {
			rest.Waiting += b.Waiting
			rest.OldestDue = max(rest.OldestDue, b.OldestDue)
		}
	}
	return rest
}

func sortBuckets(buckets []Bucket) {
	slices.SortFunc(buckets, func(a, b Bucket) int {
		return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Name, b.Name))
	})
}

// The bounds. The first two groups hold for one reading of the fleet, which
// must stay within a few milliseconds.
const (
	// pageSize is PostgreSQL's.
	pageSize = 8192
	// fleetPages and tenantPages are how many pages of a table are read.
	fleetPages, tenantPages = 350, 2500
	// mostCounted is how many rows are counted one by one over an index.
	mostCounted = 3000

	// sampledRows is the share of the rows that count, if not all pages are
	// read: one in so many, a power of two.
	sampledRows = 8

	// mostProbed is how many buckets are searched for their oldest action.
	mostProbed = 50
	// mostLimited and mostFull are how many buckets have gauges of their own,
	// with limits and without.
	mostLimited, mostFull = 100, 20
	// mostTenants is how many tenants' checkpoints are read.
	mostTenants = 100
	// mostProposals is up to how many proposals in SQL are counted, and mostLogins
	// of how many database logins the oldest one is read.
	mostProposals = 10_000
	mostLogins    = 100

	mostBuckets   = 200
	mostBreakers  = 200
	mostPauses    = 1000
	mostApprovals = 5000
	mostReasons   = 30

	// window is how far back throughput reaches, in at most so many events
	// and actions.
	window     = 5 * time.Minute
	mostEvents = 1000
	mostEnded  = 5000
)

// sampling is how a table is counted: over an index up to a bound, if that is
// expected to suffice, and else by a part of its pages.
type sampling struct {
	// most is the bound; 0 reads pages at once.
	most int64
	// percent is the share of the pages that is read, 100 for all.
	percent float32
}

// samplingOf chooses. A table of few pages is read whole. A larger one may be
// long, or consist of empty pages that a burst left: an index tells, and costs
// as much as there are rows. For the fleet the statistics say which of both; for
// one tenant of many they do not, so the index is tried first.
func samplingOf(t Table, pages int64, tenant bool) sampling {
	heap := (t.heapBytes + pageSize - 1) / pageSize
	if heap <= pages {
		return sampling{percent: 100}
	}
	s := sampling{percent: float32(100 * float64(pages) / float64(heap))}
	if tenant || t.Live < mostCounted {
		s.most = mostCounted
	}
	return s
}

// estimated reports whether numbers are scaled up.
func (s sampling) estimated() bool { return s.percent < 100 }

// scale returns the number in all pages for a number in the pages read.
func (s sampling) scale(n int64) int64 {
	return int64(math.Round(float64(n) * 100 / float64(s.percent)))
}

// rows returns in how many rows of those pages one counts.
func (s sampling) rows() int64 {
	if s.estimated() {
		return sampledRows
	}
	return 1
}
