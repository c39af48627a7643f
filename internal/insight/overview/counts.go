package overview

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/client/wire"
)

// group is a group of actions of one bucket that wait for the same reason.
type group struct {
	bucket Bucket
	reason string
	// gated is set if the reason applies even while the bucket is paused.
	gated          bool
	envelopes, due int64
	// first is the time for which the oldest has been due; negative if it is not
	// due yet. startable is the time for which its bucket has also let it
	// through.
	first, startable time.Duration
}

// Reasons in addition to those of the view envelopes.
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

// turn is the number of actions of a bucket that wait for their turn, and the
// longest wait.
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
			// The pause was lifted, and the sweep is about to wake its actions.
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

// isPaused reports whether there is a pause of everything or any pause of a
// tenant.
func isPaused(pauses []Pause, tenant string) bool {
	return slices.ContainsFunc(pauses, func(p Pause) bool { return p.Scope == "everything" || p.Tenant == tenant })
}

// coversBucket reports whether a pause covers all actions of a bucket.
func coversBucket(pauses []Pause, b Bucket) bool {
	return slices.ContainsFunc(pauses, func(p Pause) bool {
		return p.Scope == "everything" || p.Tenant == b.Tenant && (p.Scope == "tenant" || p.Scope == "bucket" && p.Subject == b.Name)
	})
}

// waiting lists the reasons, most frequent first. There are few; if there were
// many, the rarest would be summed.
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

// fullest returns the ids of the buckets with the most envelopes: of those with
// limits, and of the others.
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

// startable returns the number of actions that an additional worker could start
// now, and how long the oldest of them has waited for a worker alone. buckets
// has the state of the buckets with limits. A bucket with limits contributes as
// many actions as it lets through now. If at least half of its concurrency is in
// use, the bucket is at its own limit and its actions do not count as old: the
// other calls are between the end of one and the next claim. complete is false
// if a bucket with limits is missing in buckets.
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

// filled adds the counts to the state of buckets, and sorts the fullest first.
func (c counts) filled(buckets []Bucket, pauses []Pause) []Bucket {
	for i := range buckets {
		b := &buckets[i]
		b.Waiting, b.OldestDue, b.Paused = c.buckets[b.id].Waiting, c.buckets[b.id].OldestDue, coversBucket(pauses, *b)
	}
	sortBuckets(buckets)
	return buckets
}

// rest sums the counts of the other buckets.
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

// Bounds. The first two groups apply to one reading of the fleet, which must
// take no more than a few milliseconds.
const (
	// pageSize is the page size of PostgreSQL.
	pageSize = 8192
	// fleetPages and tenantPages are the maximum numbers of pages read of a
	// table.
	fleetPages, tenantPages = 350, 2500
	// mostCounted is the maximum number of rows counted individually over an
	// index.
	mostCounted = 3000

	// sampledRows is the inverse of the share of rows that count if not all
	// pages are read; a power of two.
	sampledRows = 8

	// mostProbed is the maximum number of buckets searched for their oldest
	// action.
	mostProbed = 50
	// mostLimited and mostFull are the maximum numbers of buckets with gauges of
	// their own, with limits and without.
	mostLimited, mostFull = 100, 20
	// mostTenants is the maximum number of tenants whose checkpoints are read.
	mostTenants = 100
	// mostProposals bounds the count of proposals in SQL, and mostLogins the
	// database logins whose oldest proposal is read.
	mostProposals = 10_000
	mostLogins    = 100

	mostBuckets   = 200
	mostBreakers  = 200
	mostPauses    = 1000
	mostApprovals = 5000
	mostReasons   = 30

	// window is the period of throughput. mostEvents and mostEnded bound the
	// events and actions read for it.
	window     = 5 * time.Minute
	mostEvents = 1000
	mostEnded  = 5000
)

// sampling is the method of counting a table: over an index up to a bound, if
// that is expected to suffice, else by a sample of its pages.
type sampling struct {
	// most is the bound; 0 reads pages immediately.
	most int64
	// percent is the share of pages to read; 100 means all.
	percent float32
}

// samplingOf chooses a sampling. A table with few pages is read whole. A larger
// one may be long, or consist of empty pages left by a burst. A count over the
// index distinguishes the two and costs as much as there are rows. For the fleet
// the statistics distinguish them; for one tenant of many they do not, so the
// index is tried first.
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

// estimated reports whether counts are scaled up.
func (s sampling) estimated() bool { return s.percent < 100 }

// scale extrapolates a count in the read pages to all pages.
func (s sampling) scale(n int64) int64 {
	return int64(math.Round(float64(n) * 100 / float64(s.percent)))
}

// rows returns the inverse of the share of rows in the read pages that count.
func (s sampling) rows() int64 {
	if s.estimated() {
		return sampledRows
	}
	return 1
}
