package overview

import (
	"math"
	"time"
)

// The bounds. The first two groups hold for one look at the fleet, which must
// stay within a few milliseconds; a tenant's operator looks closer.
const (
	// pageSize is PostgreSQL's.
	pageSize = 8192
	// fleetPages and tenantPages are how much of a table is read.
	fleetPages, tenantPages = 350, 2500
	// mostCounted is how many rows are counted one by one over an index.
	mostCounted = 3000

	// oneOf is how many of the rows of those pages count, if not all pages
	// are read: one in so many, a power of two.
	oneOf = 8

	// mostHops is how many buckets are asked for their oldest envelope.
	mostHops = 50
	// mostLimited and mostFull are how many buckets have gauges of their own,
	// with limits and without.
	mostLimited, mostFull = 100, 20
	// mostTenants is how many chains of checkpoints are looked at.
	mostTenants = 100

	mostBuckets   = 200
	mostBreakers  = 200
	mostPauses    = 1000
	mostApprovals = 5000
	mostReasons   = 30

	// window is how far back throughput reaches, in at most so many batches
	// and envelopes.
	window     = 5 * time.Minute
	mostEvents = 1000
	mostEnded  = 5000
)

// look is how a table is counted: over an index up to a bound, if that is
// thought to do, and else by a part of its pages.
type look struct {
	// most is the bound; 0 goes to the pages at once.
	most int64
	// percent is how many pages are read, 100 for all.
	percent float32
}

// lookAt chooses. A table of few pages is read whole. A larger one may be
// long, or empty pages that a burst left: an index tells, and costs what is
// there. The statistics say which it is for the fleet; for one tenant of many
// they do not, so the index is tried first.
func lookAt(t table, pages int64, mine bool) look {
	heap := (t.heapBytes + pageSize - 1) / pageSize
	if heap <= pages {
		return look{percent: 100}
	}
	l := look{percent: float32(100 * float64(pages) / float64(heap))}
	if mine || t.live < mostCounted {
		l.most = mostCounted
	}
	return l
}

// counted is the look that turned out to have counted everything.
func (l look) counted() look { return look{most: l.most, percent: 100} }

// estimated says whether numbers are scaled up.
func (l look) estimated() bool { return l.percent < 100 }

// scale makes a number in the pages that were read one in all of them.
func (l look) scale(n int64) int64 { return int64(math.Round(float64(n) * 100 / float64(l.percent))) }

// rows says how many of the rows in those pages are looked at: one in so many.
func (l look) rows() int64 {
	if l.estimated() {
		return oneOf
	}
	return 1
}
