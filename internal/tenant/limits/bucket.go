package limits

import (
	"cmp"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
)

// DefaultBucket holds what names no other bucket. Every tenant has it, and it
// cannot be retired.
const DefaultBucket = "default"

// The bounds of a bucket's limits.
const (
	maxRate        = 1_000_000
	minPer         = Duration(time.Millisecond)
	maxPer         = Duration(366 * day)
	maxPerSecond   = 10_000
	maxCalendar    = 1_000_000_000
	maxConcurrency = 100_000
)

// Bucket is a named pace that envelopes keep to together, whichever worker
// runs them. A bucket without limits is one only for fairness: each bucket
// gets its turn.
type Bucket struct {
	Name string `json:"name"`
	// Rate is nil for no limit of pace, Calendar for none by the calendar.
	Rate     *Rate     `json:"rate,omitempty"`
	Calendar *Calendar `json:"calendar,omitempty"`
	// Concurrency is how many may be on their way at once; zero means any
	// number.
	Concurrency int `json:"concurrency,omitzero"`
}

// Rate is so many per interval, evenly apart: 60 per minute is one a second.
type Rate struct {
	Limit int      `json:"limit"`
	Per   Duration `json:"per"`
	// Burst is how many may go at once after a time without any; zero means 1.
	Burst int `json:"burst,omitzero"`
}

// Calendar is so many per hour, day, week or month on the wall clock, which
// begins anew at the hour, at midnight, on Monday, or on the first.
type Calendar struct {
	Limit int    `json:"limit"`
	Every Period `json:"every"`
	// Timezone is an IANA name; empty means the tenant's.
	Timezone string `json:"timezone,omitzero"`
}

// Period is a stretch of the calendar.
type Period string

// The periods.
const (
	PeriodHour  Period = "hour"
	PeriodDay   Period = "day"
	PeriodWeek  Period = "week"
	PeriodMonth Period = "month"
)

// Valid reports whether p is one of the constants.
func (p Period) Valid() bool {
	return slices.Contains([]Period{PeriodHour, PeriodDay, PeriodWeek, PeriodMonth}, p)
}

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
		p.Add("/rate/per", envelope.RuleRequired, "must say the interval, such as 1s, 1m, 1h or 1d")
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
	if !c.Every.Valid() {
		p.Add("/calendar/every", envelope.RuleEnum, "must be hour, day, week or month")
	}
	if c.Timezone != "" {
		p.Zone("/calendar/timezone", c.Timezone)
	}
}

// settled is the bucket with what was left out filled in, so that two that
// mean the same are equal.
func (b Bucket) settled() Bucket {
	if b.Rate != nil {
		r := *b.Rate
		r.Burst = cmp.Or(r.Burst, 1)
		b.Rate = &r
	}
	return b
}

// BucketState is a bucket with how much of it is used at a moment.
type BucketState struct {
	Bucket
	// RetiredAt is when new envelopes were no longer let in.
	RetiredAt *time.Time `json:"retired_at"`
	// Permits is how many may go now by rate and calendar; nil for any number.
	Permits *int64 `json:"permits"`
	// CalendarUsed is how many went in this period of the calendar.
	CalendarUsed *int64 `json:"calendar_used"`
	// InUse is how many are on their way, counted only under a ceiling.
	InUse int64 `json:"in_use"`
	// OpensAt is when the next may go; nil when one may now.
	OpensAt *time.Time `json:"opens_at"`
	// ClosedUntil is when a hold ends that a provider's answer, or somebody,
	// put on the bucket, and ClosedBy the reason in one word.
	ClosedUntil *time.Time `json:"closed_until"`
	ClosedBy    string     `json:"closed_by,omitzero"`
	// Paused says that a pause of the bucket, the tenant or everything stands.
	Paused bool `json:"paused"`
	// Due is how many wait for their turn now, and Waiting how many for their
	// time. Neither counts further than MaxCount.
	Due     int64 `json:"due"`
	Waiting int64 `json:"waiting"`
}

// MaxCount is where the counts of a BucketState stop.
const MaxCount = 100_000

// storedBucket is a bucket as it is stored.
type storedBucket struct {
	Bucket
	retired bool
}
