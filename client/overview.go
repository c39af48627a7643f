package client

import (
	"context"
	"net/http"
	"time"
)

// Overview is how the tenant stands at one moment. Lengths of time are in
// seconds.
type Overview struct {
	At time.Time `json:"at"`
	// Estimated says that there is too much to be counted.
	Estimated bool `json:"estimated"`
	// Due is how many actions could be claimed now or are held back by a
	// bucket, Scheduled how many wait for a later time, and InFlight how many
	// a worker has.
	Due       int64 `json:"due"`
	Scheduled int64 `json:"scheduled"`
	InFlight  int64 `json:"in_flight"`
	// LeasesOverdue counts those that a worker had and nobody has taken up.
	LeasesOverdue int64 `json:"leases_overdue"`
	// OldestDue is how long the action has waited that could be claimed for
	// longest.
	OldestDue   float64               `json:"oldest_due_seconds"`
	Waiting     []OverviewWaiting     `json:"waiting"`
	Buckets     []OverviewBucket      `json:"buckets"`
	Breakers    []OverviewBreaker     `json:"breakers"`
	Pauses      []OverviewPause       `json:"pauses"`
	Approvals   OverviewApprovals     `json:"approvals"`
	DeadLetters []OverviewDeadLetters `json:"dead_letters"`
	Throughput  OverviewThroughput    `json:"throughput"`
}

// OverviewWaiting is what waits for one reason.
type OverviewWaiting struct {
	Reason    string  `json:"reason"`
	Envelopes int64   `json:"envelopes"`
	OldestDue float64 `json:"oldest_due_seconds"`
	// NextIn is when the first that is not due gets so; nil if unknown.
	NextIn *float64 `json:"next_in_seconds"`
}

// OverviewBucket is how a bucket stands.
type OverviewBucket struct {
	Name      string  `json:"name"`
	Waiting   int64   `json:"waiting"`
	OldestDue float64 `json:"oldest_due_seconds"`
	Paused    bool    `json:"paused"`
	Limited   bool    `json:"limited"`
	// Tokens is how many it would give now; nil without a rate or a calendar.
	Tokens *int64 `json:"tokens"`
	// InUse is how many calls are open of the Concurrency that it allows; both
	// are nil without a ceiling.
	InUse       *int64 `json:"in_use"`
	Concurrency *int64 `json:"concurrency"`
	// OpensIn is when it gives one again, and ClosedBy why it is closed, if
	// that is not for lack of tokens.
	OpensIn  float64 `json:"opens_in_seconds"`
	ClosedBy *string `json:"closed_by"`
}

// OverviewBreaker is how a source's circuit breaker stands.
type OverviewBreaker struct {
	Source    string    `json:"source"`
	State     string    `json:"state"`
	Cause     string    `json:"cause"`
	Since     time.Time `json:"since"`
	OpenUntil time.Time `json:"open_until"`
	Trips     int       `json:"trips"`
}

// OverviewPause is something that is paused.
type OverviewPause struct {
	Scope   string    `json:"scope"`
	Subject string    `json:"subject"`
	Kill    bool      `json:"kill"`
	Reason  string    `json:"reason"`
	By      string    `json:"by"`
	At      time.Time `json:"at"`
}

// OverviewApprovals is what waits for a person.
type OverviewApprovals struct {
	Waiting  int64      `json:"waiting"`
	OldestAt *time.Time `json:"oldest_at"`
}

// OverviewDeadLetters are the dead letters of one reason.
type OverviewDeadLetters struct {
	Reason  string  `json:"reason"`
	Letters int64   `json:"letters"`
	Oldest  float64 `json:"oldest_seconds"`
}

// OverviewThroughput is what ended lately.
type OverviewThroughput struct {
	// Covers is how far back it reaches.
	Covers float64         `json:"covers_seconds"`
	Ended  []OverviewEnded `json:"ended"`
}

// OverviewEnded counts the attempts of a tool that ended in one way.
type OverviewEnded struct {
	Source          string `json:"source"`
	Tool            string `json:"tool"`
	Status          string `json:"status"`
	LastMinute      int64  `json:"last_minute"`
	LastFiveMinutes int64  `json:"last_five_minutes"`
}

// Overview reads how the tenant stands.
func (c *Client) Overview(ctx context.Context) (Overview, error) {
	var o Overview
	_, err := c.do(ctx, request{method: http.MethodGet, path: "/api/v1/overview"}, &o)
	return o, err
}
