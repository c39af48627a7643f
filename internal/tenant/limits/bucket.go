package limits

import (
	"cmp"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
)

// DefaultBucket is the bucket of envelopes that name no other. Every tenant has
// it, and it cannot be retired.
const DefaultBucket = "default"

// Bounds of a bucket's limits.
const (
	maxRate        = 1_000_000
	minPer         = Duration(time.Millisecond)
	maxPer         = Duration(366 * day)
	maxPerSecond   = 10_000
	maxCalendar    = 1_000_000_000
	maxConcurrency = 100_000
)

// Bucket is a named set of limits that envelopes share, across all workers. A
// bucket without limits serves only fairness: each bucket gets its turn.
type Bucket struct {
	Name string `json:"name"`
	// Rate is nil without a rate limit, Calendar without a calendar limit.
	Rate     *Rate     `json:"rate,omitempty"`
	Calendar *Calendar `json:"calendar,omitempty"`
	// Concurrency is the maximum number of concurrent calls; zero means
	// unlimited.
	Concurrency int `json:"concurrency,omitzero"`
}

// Rate is a number of permits per interval, evenly spaced: 60 per minute is one
// per second.
type Rate wire.Rate

// Calendar is a number of permits per calendar period.
type Calendar wire.Calendar

// The periods of a calendar.
const (
	PeriodHour  = "hour"
	PeriodDay   = "day"
	PeriodWeek  = "week"
	PeriodMonth = "month"
)

func (b Bucket) key() string { return b.Name }

// Validate checks a bucket. The error is an *envelope.InvalidError.
func (b Bucket) Validate() error {
	var p check.Problems
	if !check.Slug(b.Name) {
		p.Add("/name", envelope.RulePattern, "must be 1 to 100 of a-z, 0-9, dot, - and _, and start with a letter or a digit, such as email.daily")
	}
	if b.Rate != nil {
		b.Rate.check(&p)
	}
	if b.Calendar != nil {
		b.Calendar.check(&p)
	}
	if b.Concurrency != 0 {
		p.Within("/concurrency", b.Concurrency, 1, maxConcurrency)
	}
	return p.Err()
}

func (r Rate) check(p *check.Problems) {
	if r.Limit == 0 {
		p.Add("/rate/limit", check.RuleMinimum, "must be at least 1; to stop a bucket altogether pause it, and for no limit leave the rate out")
	} else {
		p.Within("/rate/limit", r.Limit, 1, maxRate)
	}
	switch {
	case r.Per == 0:
		p.Add("/rate/per", envelope.RuleRequired, "is required; give an interval, such as 1s, 1m, 1h or 1d")
	case r.Per < minPer || r.Per > maxPer:
		p.Add("/rate/per", envelope.RuleFormat, "must be from 1ms to 366d")
	case r.Limit > 0 && float64(r.Limit)/r.Per.Seconds() > maxPerSecond:
		p.Add("/rate", check.RuleMaximum, "must be at most %d a second; for more than that leave the rate out", maxPerSecond)
	}
	switch {
	case r.Burst < 0:
		p.Add("/rate/burst", check.RuleMinimum, "must be at least 1; leave it out for 1")
	case r.Limit > 0 && r.Burst > r.Limit:
		p.Add("/rate/burst", check.RuleMaximum, "must be at most the limit, %d: more at once would be more than the interval allows", r.Limit)
	}
}

func (c Calendar) check(p *check.Problems) {
	if c.Limit == 0 {
		p.Add("/calendar/limit", check.RuleMinimum, "must be at least 1; to stop a bucket altogether pause it, and for no limit leave the calendar out")
	} else {
		p.Within("/calendar/limit", c.Limit, 1, maxCalendar)
	}
	if !slices.Contains([]string{PeriodHour, PeriodDay, PeriodWeek, PeriodMonth}, c.Every) {
		p.Add("/calendar/every", envelope.RuleEnum, "must be hour, day, week or month")
	}
	if c.Timezone != "" {
		p.Zone("/calendar/timezone", c.Timezone)
	}
}

// settled returns the bucket with defaults filled in, so that equivalent ones
// are equal.
func (b Bucket) settled() Bucket {
	if b.Rate != nil {
		r := *b.Rate
		r.Burst = cmp.Or(r.Burst, 1)
		b.Rate = &r
	}
	return b
}

// BucketState is a bucket with its current usage.
type BucketState struct {
	Bucket
	wire.BucketUse
}

// maxCount is the upper bound of the counts of a BucketState.
const maxCount = 100_000

// storedBucket is a bucket with its stored state.
type storedBucket struct {
	Bucket
	retired bool
}
