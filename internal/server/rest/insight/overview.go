package insight

import (
	"context"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/insight/overview"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
)

// overviewView is the state of a tenant in numbers. Durations are in seconds.
type overviewView struct {
	At            time.Time         `json:"at"`
	Estimated     bool              `json:"estimated"`
	Due           int64             `json:"due"`
	Scheduled     int64             `json:"scheduled"`
	InFlight      int64             `json:"in_flight"`
	LeasesOverdue int64             `json:"leases_overdue"`
	OldestDue     float64           `json:"oldest_due_seconds"`
	Waiting       []waitingView     `json:"waiting"`
	Buckets       []bucketView      `json:"buckets"`
	Breakers      []breakerView     `json:"breakers"`
	Pauses        []pauseView       `json:"pauses"`
	Approvals     approvalsView     `json:"approvals"`
	DeadLetters   []deadLettersView `json:"dead_letters"`
	Throughput    throughputView    `json:"throughput"`
}

type waitingView struct {
	Reason    string   `json:"reason"`
	Envelopes int64    `json:"envelopes"`
	OldestDue float64  `json:"oldest_due_seconds"`
	NextIn    *float64 `json:"next_in_seconds"`
}

type bucketView struct {
	Name        string  `json:"name"`
	Waiting     int64   `json:"waiting"`
	OldestDue   float64 `json:"oldest_due_seconds"`
	Paused      bool    `json:"paused"`
	Limited     bool    `json:"limited"`
	Tokens      *int64  `json:"tokens"`
	InUse       *int64  `json:"in_use"`
	Concurrency *int64  `json:"concurrency"`
	OpensIn     float64 `json:"opens_in_seconds"`
	ClosedBy    *string `json:"closed_by"`
}

type breakerView struct {
	Source    string    `json:"source"`
	State     string    `json:"state"`
	Cause     string    `json:"cause"`
	Since     time.Time `json:"since"`
	OpenUntil time.Time `json:"open_until"`
	Trips     int       `json:"trips"`
}

type pauseView struct {
	Scope   string    `json:"scope"`
	Subject string    `json:"subject"`
	Kill    bool      `json:"kill"`
	Reason  string    `json:"reason"`
	By      string    `json:"by"`
	At      time.Time `json:"at"`
}

type approvalsView struct {
	Waiting  int64      `json:"waiting"`
	OldestAt *time.Time `json:"oldest_at"`
}

type deadLettersView struct {
	Reason string  `json:"reason"`
	Count  int64   `json:"count"`
	Oldest float64 `json:"oldest_seconds"`
}

type throughputView struct {
	Covers float64     `json:"covers_seconds"`
	Ended  []endedView `json:"ended"`
}

type endedView struct {
	Source          string `json:"source"`
	Tool            string `json:"tool"`
	Status          string `json:"status"`
	LastMinute      int64  `json:"last_minute"`
	LastFiveMinutes int64  `json:"last_five_minutes"`
}

// GET /api/v1/overview shows the state of the tenant's actions in numbers.
func Overview(c *request.Call) error {
	var o overview.Overview
	err := c.InTx(func(ctx context.Context, tx pgx.Tx) (err error) {
		o, err = overview.Get(ctx, tx, c.By.Tenant)
		return err
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, overviewFrom(o))
}

func overviewFrom(o overview.Overview) overviewView {
	s := overviewView{
		At: o.At.UTC(), Estimated: o.Estimated, Due: o.Due, Scheduled: o.Scheduled, InFlight: o.InFlight, LeasesOverdue: o.Overdue,
		OldestDue: o.OldestDue.Seconds(), Approvals: approvalsView{Waiting: o.Approvals.Waiting},
		Throughput: throughputView{Covers: o.Throughput.Covers.Seconds()},
	}
	if !o.Approvals.Oldest.IsZero() {
		s.Approvals.OldestAt = new(o.Approvals.Oldest.UTC())
	}
	s.Waiting = request.Map(o.Waiting, func(w overview.Waiting) waitingView {
		shown := waitingView{Reason: w.Reason, Envelopes: w.Envelopes, OldestDue: w.OldestDue.Seconds()}
		if w.NextIn > 0 {
			shown.NextIn = new(w.NextIn.Seconds())
		}
		return shown
	})
	s.Buckets = request.Map(o.Buckets, bucketFrom)
	s.Breakers = request.Map(o.Breakers, func(b overview.Breaker) breakerView {
		return breakerView{b.Source, b.State, b.Cause, b.Since.UTC(), b.OpenUntil.UTC(), b.Trips}
	})
	s.Pauses = request.Map(o.Pauses, func(p overview.Pause) pauseView {
		return pauseView{p.Scope, p.Subject, p.Kill, p.Reason, p.By, p.At.UTC()}
	})
	s.DeadLetters = request.Map(o.DeadLetters, func(l overview.DeadLetters) deadLettersView {
		return deadLettersView{l.Reason, l.Count, l.Oldest.Seconds()}
	})
	s.Throughput.Ended = request.Map(o.Throughput.Ended, func(e overview.Ended) endedView { return endedView(e) })
	return s
}

func bucketFrom(b overview.Bucket) bucketView {
	shown := bucketView{
		Name: b.Name, Waiting: b.Waiting, OldestDue: b.OldestDue.Seconds(), Paused: b.Paused, Limited: b.Limited, OpensIn: b.OpensIn.Seconds(),
	}
	if b.Tokens >= 0 {
		shown.Tokens = new(b.Tokens)
	}
	if b.Concurrency >= 0 {
		shown.InUse, shown.Concurrency = new(b.InUse), new(b.Concurrency)
	}
	if b.ClosedBy != "" {
		shown.ClosedBy = new(b.ClosedBy)
	}
	return shown
}
