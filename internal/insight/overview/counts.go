package overview

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// group is the actions of a bucket that wait for the same reason.
type group struct {
	bucket Bucket
	reason string
	// gated means that they wait for it even if the bucket is paused.
	gated          bool
	envelopes, due int64
	// first is how long the first of them has been due; negative if it is not yet.
	first time.Duration
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
	reasons map[string]Waiting
	buckets map[int64]Bucket
}

func count(groups []group, pauses []Pause) counts {
	t := counts{reasons: make(map[string]Waiting), buckets: make(map[int64]Bucket)}
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
			g.reason, g.due, g.first = reasonTurn, g.envelopes, 0
		}
		paused := coversBucket(pauses, g.bucket)
		if paused && !g.gated {
			g.reason = reasonPaused
		}
		t.Due += g.due
		t.Scheduled += g.envelopes - g.due
		if g.reason == reasonTurn {
			t.OldestDue = max(t.OldestDue, g.first)
		}
		t.reasons[g.reason] = t.reasons[g.reason].with(g)
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

func (w Waiting) with(g group) Waiting {
	w.Reason = g.reason
	w.Envelopes += g.envelopes
	if g.first >= 0 {
		w.OldestDue = max(w.OldestDue, g.first)
	} else if w.NextIn == 0 || -g.first < w.NextIn {
		w.NextIn = -g.first
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
func (c counts) waiting(approvals Approvals) []Waiting {
	all := slices.Collect(maps.Values(c.reasons))
	if approvals.Waiting > 0 {
		all = append(all, Waiting{Reason: reasonApproval, Envelopes: approvals.Waiting})
	}
	slices.SortFunc(all, func(a, b Waiting) int {
		return cmp.Or(cmp.Compare(b.Envelopes, a.Envelopes), cmp.Compare(a.Reason, b.Reason))
	})
	if len(all) <= mostReasons {
		return all
	}
	other := Waiting{Reason: reasonOther}
	for _, w := range all[mostReasons-1:] {
		other.Envelopes += w.Envelopes
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
