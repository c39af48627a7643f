package overview

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// tableSizes is written by hand, since sqlc does not support PostgreSQL's own
// catalogs.
const tableSizes = `
SELECT
    coalesce(p.relname, c.relname)::text,
    sum(pg_relation_size(c.oid))::bigint,
    sum(pg_total_relation_size(c.oid))::bigint,
    sum(pg_stat_get_live_tuples(c.oid))::bigint,
    sum(pg_stat_get_dead_tuples(c.oid))::bigint
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
LEFT JOIN pg_class p ON p.oid = i.inhparent
WHERE c.relkind = 'r' AND n.nspname IN ('countersign_data', 'river') AND coalesce(p.relname, c.relname) = ANY ($1::name[])
GROUP BY 1
ORDER BY 1`

func readTables(ctx context.Context, tx pgx.Tx, names ...string) ([]Table, error) {
	rows, err := tx.Query(ctx, tableSizes, names)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Table, error) {
		var t Table
		return t, row.Scan(&t.Name, &t.heapBytes, &t.Bytes, &t.Live, &t.Dead)
	})
}

// readWaiting counts the outbox, and reports whether the counts are estimates.
func readWaiting(ctx context.Context, tx pgx.Tx, s sampling) (groups []group, estimated bool, err error) {
	if s.most > 0 {
		rows, err := dbsqlc.New().OverviewWaiting(ctx, tx, s.most)
		groups, err := postgres.Map(rows, err, groupFromRow)
		all := int64(0)
		for _, g := range groups {
			all += g.envelopes
		}
		if err != nil || all < s.most {
			return groups, false, err
		}
	}
	rows, err := dbsqlc.New().OverviewWaitingSample(ctx, tx, &dbsqlc.OverviewWaitingSampleParams{Percent: s.percent, Mask: int32(s.rows() - 1)})
	groups, err = postgres.Map(rows, err, func(r dbsqlc.OverviewWaitingSampleRow) group {
		g := groupFromRow(dbsqlc.OverviewWaitingRow(r))
		g.envelopes, g.due = s.scale(r.Envelopes*s.rows()), s.scale(r.Due*s.rows())
		return g
	})
	return groups, s.estimated(), err
}

func groupFromRow(r dbsqlc.OverviewWaitingRow) group {
	return group{
		bucket: Bucket{Tenant: r.Tenant, Name: r.Bucket, Limited: r.Limited, id: r.BucketID},
		reason: r.Reason, gated: r.Gated, envelopes: r.Envelopes, due: r.Due, first: seconds(r.FirstSeconds), startable: seconds(r.StartableSeconds),
	}
}

// readOldest returns how long the oldest claimable action has been due, in some
// of the buckets with work, beginning with first.
func readOldest(ctx context.Context, tx pgx.Tx, first int64) (time.Duration, error) {
	s, err := dbsqlc.New().OverviewOldest(ctx, tx, &dbsqlc.OverviewOldestParams{First: first, Most: mostProbed})
	return seconds(s), err
}

// readBuckets reads the limits of the given buckets and of all buckets that have
// any.
func readBuckets(ctx context.Context, tx pgx.Tx, ids []int64, most int64) ([]Bucket, error) {
	rows, err := dbsqlc.New().OverviewBuckets(ctx, tx, &dbsqlc.OverviewBucketsParams{BucketIds: ids, Most: most})
	return postgres.Map(rows, err, func(r dbsqlc.OverviewBucketsRow) Bucket {
		return Bucket{
			Tenant: r.Tenant, Name: r.Name, Limited: r.Limited, Permits: r.Permits, InUse: r.InUse, Concurrency: int64(r.Concurrency),
			OpensIn: seconds(r.OpensSeconds), ClosedBy: r.ClosedBy, id: r.BucketID,
		}
	})
}

func readBreakers(ctx context.Context, tx pgx.Tx) ([]Breaker, error) {
	rows, err := dbsqlc.New().OverviewBreakers(ctx, tx, mostBreakers)
	return postgres.Map(rows, err, func(r dbsqlc.OverviewBreakersRow) Breaker {
		return Breaker{r.Tenant, wire.OverviewBreaker{
			Source: r.SourceID, State: r.State, Cause: r.Cause, Since: r.Since.UTC(), OpenUntil: r.OpenUntil.UTC(), Openings: int(r.Openings),
		}}
	})
}

func readPauses(ctx context.Context, tx pgx.Tx) ([]Pause, error) {
	rows, err := dbsqlc.New().OverviewPauses(ctx, tx, mostPauses)
	return postgres.Map(rows, err, func(r dbsqlc.OverviewPausesRow) Pause {
		return Pause{r.Tenant, wire.OverviewPause{
			Scope: r.Scope, Subject: r.Subject, Kill: r.Kill, Reason: r.Reason, By: envelope.Actor(r.PausedBy), At: r.PausedAt.UTC(),
		}}
	})
}

// readApprovals also returns the database's time.
func readApprovals(ctx context.Context, tx pgx.Tx) (a wire.OverviewApprovals, at time.Time, err error) {
	r, err := dbsqlc.New().OverviewApprovals(ctx, tx, mostApprovals)
	if r.Waiting > 0 {
		a = wire.OverviewApprovals{Waiting: r.Waiting, OldestAt: new(r.Oldest.UTC())}
	}
	return a, r.At, err
}

func readDeadLetters(ctx context.Context, tx pgx.Tx, s sampling) ([]wire.OverviewDeadLetters, error) {
	if s.most > 0 {
		rows, err := dbsqlc.New().OverviewDeadLetters(ctx, tx, s.most)
		all := int64(0)
		counts, err := postgres.Map(rows, err, func(r dbsqlc.OverviewDeadLettersRow) wire.OverviewDeadLetters {
			all += r.Count
			return wire.OverviewDeadLetters{Reason: r.Reason, Count: r.Count, Oldest: r.OldestSeconds}
		})
		if err != nil || all < s.most {
			return counts, err
		}
	}
	rows, err := dbsqlc.New().OverviewDeadLettersSample(ctx, tx, s.percent)
	return postgres.Map(rows, err, func(r dbsqlc.OverviewDeadLettersSampleRow) wire.OverviewDeadLetters {
		return wire.OverviewDeadLetters{Reason: r.Reason, Count: s.scale(r.Count), Oldest: r.OldestSeconds}
	})
}

func readCheckpointLag(ctx context.Context, tx pgx.Tx) (time.Duration, error) {
	s, err := dbsqlc.New().OverviewCheckpointLag(ctx, tx, mostTenants)
	return seconds(s), err
}

// readProposals returns the number of waiting proposals in SQL, at most
// mostProposals, and the age of the oldest.
func readProposals(ctx context.Context, tx pgx.Tx) (waiting int64, oldest time.Duration, err error) {
	r, err := dbsqlc.New().OverviewProposals(ctx, tx, &dbsqlc.OverviewProposalsParams{Most: mostProposals, Logins: mostLogins})
	return r.Waiting, seconds(r.Seconds), err
}

func readPastRetention(ctx context.Context, tx pgx.Tx) (past map[string]int64, held bool, err error) {
	r, err := dbsqlc.New().OverviewPastRetention(ctx, tx)
	return map[string]int64{"actions": r.Actions, "events": r.Events}, r.Held, err
}

func readThroughput(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (wire.OverviewThroughput, error) {
	rows, err := dbsqlc.New().OverviewThroughput(ctx, tx, &dbsqlc.OverviewThroughputParams{
		TenantID: tenant, Events: mostEvents, Envelopes: mostEnded,
	})
	t := wire.OverviewThroughput{Covers: window.Seconds()}
	cut, reach := false, 0.0
	t.Ended, err = postgres.Map(rows, err, func(r dbsqlc.OverviewThroughputRow) wire.OverviewEnded {
		cut, reach = cut || r.Cut, max(reach, r.OldestSeconds)
		return wire.OverviewEnded{Tool: r.SourceID + ":" + r.ToolName, Status: r.Status, LastMinute: r.LastMinute, LastFiveMinutes: r.LastFiveMinutes}
	})
	if cut {
		t.Covers = reach
	}
	return t, err
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// sample is a begun sample: its minute and the transactions whose events it counts.
type sample = dbsqlc.SampleBeginRow

// beginSample begins the sample of this minute, unless another process did.
func beginSample(ctx context.Context, tx pgx.Tx) (s sample, begun bool, err error) {
	s, err = dbsqlc.New().SampleBegin(ctx, tx)
	if errors.Is(err, pgx.ErrNoRows) {
		return s, false, nil
	}
	return s, err == nil, err
}

func storeSample(ctx context.Context, tx pgx.Tx, s sample, backlogs []backlogOf, estimated bool) error {
	p := &dbsqlc.SampleInsertParams{At: s.At, Since: s.Since, Horizon: s.Horizon, Most: mostApprovals, MostEvents: mostSampled}
	for _, b := range backlogs {
		p.Tenants, p.Due, p.Scheduled = append(p.Tenants, b.tenant), append(p.Due, b.Due), append(p.Scheduled, b.Scheduled)
		p.InFlight, p.OldestDue = append(p.InFlight, b.InFlight), append(p.OldestDue, b.OldestDue.Seconds())
	}
	err := dbsqlc.New().SampleInsert(ctx, tx, p)
	if err == nil && estimated {
		err = dbsqlc.New().SampleEstimated(ctx, tx, s.At)
	}
	return err
}

func pruneSamples(ctx context.Context, tx pgx.Tx, days int32) error {
	_, err := dbsqlc.New().SamplePrune(ctx, tx, days)
	return err
}

// readSamples reads the steps of an activity.
func readSamples(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, a wire.Activity) ([]wire.ActivityPoint, error) {
	rows, err := dbsqlc.New().SampleList(ctx, tx, &dbsqlc.SampleListParams{
		TenantID: tenant, StepSeconds: a.Step.Duration().Seconds(), FromAt: a.Since, UntilAt: a.Until,
	})
	return postgres.Map(rows, err, func(r dbsqlc.SampleListRow) wire.ActivityPoint {
		return wire.ActivityPoint{
			At: r.At.UTC(), Workers: r.Workers, Due: r.Due, Scheduled: r.Scheduled, InFlight: r.InFlight, Undecided: r.Approvals,
			OldestDue: r.OldestDue, Estimated: r.Estimated,
		}
	})
}

// readEnded reads the actions that ended in the steps of an activity.
func readEnded(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, a wire.Activity) (map[time.Time][]wire.ActivityEnded, error) {
	rows, err := dbsqlc.New().SampleListEnded(ctx, tx, &dbsqlc.SampleListEndedParams{
		TenantID: tenant, StepSeconds: a.Step.Duration().Seconds(), FromAt: a.Since, UntilAt: a.Until,
	})
	ended := make(map[time.Time][]wire.ActivityEnded)
	for _, r := range rows {
		ended[r.At.UTC()] = append(ended[r.At.UTC()], wire.ActivityEnded{Status: r.Status, Actions: r.Actions})
	}
	return ended, err
}
