package insight

import (
	"context"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/insight/overview"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
)

// GET /api/v1/overview shows the state of the tenant's actions in numbers.
func Overview(c *request.Call) error {
	o, err := request.Read(c, func(ctx context.Context, tx pgx.Tx) (overview.Overview, error) {
		return overview.Get(ctx, tx, c.By.Tenant)
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, overviewFrom(o))
}

func overviewFrom(o overview.Overview) wire.Overview {
	s := wire.Overview{
		At: o.At.UTC(), Estimated: o.Estimated, Due: o.Due, Scheduled: o.Scheduled, InFlight: o.InFlight, LeasesOverdue: o.Overdue,
		OldestDue: o.OldestDue.Seconds(), Approvals: wire.OverviewApprovals{Waiting: o.Approvals.Waiting},
		Throughput: wire.OverviewThroughput{Covers: o.Throughput.Covers.Seconds()},
	}
	if !o.Approvals.Oldest.IsZero() {
		s.Approvals.OldestAt = new(o.Approvals.Oldest.UTC())
	}
	s.Waiting = request.Map(o.Waiting, func(w overview.Waiting) wire.OverviewWaiting {
		shown := wire.OverviewWaiting{Reason: w.Reason, Actions: w.Envelopes, OldestDue: w.OldestDue.Seconds()}
		if w.NextIn > 0 {
			shown.NextIn = new(w.NextIn.Seconds())
		}
		return shown
	})
	s.Buckets = request.Map(o.Buckets, bucketFrom)
	s.Breakers = request.Map(o.Breakers, func(b overview.Breaker) wire.OverviewBreaker {
		return wire.OverviewBreaker{Source: b.Source, State: b.State, Cause: b.Cause, Since: b.Since.UTC(), OpenUntil: b.OpenUntil.UTC(), Openings: b.Openings}
	})
	s.Pauses = request.Map(o.Pauses, func(p overview.Pause) wire.OverviewPause {
		return wire.OverviewPause{Scope: p.Scope, Subject: p.Subject, Kill: p.Kill, Reason: p.Reason, By: p.By, At: p.At.UTC()}
	})
	s.DeadLetters = request.Map(o.DeadLetters, func(l overview.DeadLetters) wire.OverviewDeadLetters {
		return wire.OverviewDeadLetters{Reason: l.Reason, Count: l.Count, Oldest: l.Oldest.Seconds()}
	})
	s.Throughput.Ended = request.Map(o.Throughput.Ended, func(e overview.Ended) wire.OverviewEnded {
		return wire.OverviewEnded{Tool: e.Source + ":" + e.Tool, Status: e.Status, LastMinute: e.LastMinute, LastFiveMinutes: e.LastFiveMinutes}
	})
	return s
}

func bucketFrom(b overview.Bucket) wire.OverviewBucket {
	shown := wire.OverviewBucket{
		Name: b.Name, Waiting: b.Waiting, OldestDue: b.OldestDue.Seconds(), Paused: b.Paused, Limited: b.Limited, OpensIn: b.OpensIn.Seconds(),
	}
	if b.Permits >= 0 {
		shown.Permits = new(b.Permits)
	}
	if b.Concurrency >= 0 {
		shown.InUse, shown.Concurrency = new(b.InUse), new(b.Concurrency)
	}
	if b.ClosedBy != "" {
		shown.ClosedBy = new(b.ClosedBy)
	}
	return shown
}
