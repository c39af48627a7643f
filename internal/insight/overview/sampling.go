package overview

import (
	"math"
	"time"
)

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
