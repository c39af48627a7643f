package overview

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// table is what the statistics say of a table with its partitions.
type table struct {
	name             string
	heapBytes, bytes int64
	live, dead       int64
}

// tableSizes is by hand: sqlc does not know PostgreSQL's own catalogs.
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
WHERE c.relkind = 'r' AND n.nspname IN ('public', 'river') AND coalesce(p.relname, c.relname) = ANY ($1::name[])
GROUP BY 1
ORDER BY 1`

func readTables(ctx context.Context, tx pgx.Tx, names ...string) ([]table, error) {
	rows, err := tx.Query(ctx, tableSizes, names)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (table, error) {
		var t table
		return t, row.Scan(&t.name, &t.heapBytes, &t.bytes, &t.live, &t.dead)
	})
}

// readWaiting counts the outbox as a look says.
func readWaiting(ctx context.Context, tx pgx.Tx, l look) ([]group, look, error) {
	if l.most > 0 {
		rows, err := dbsqlc.New().OverviewWaiting(ctx, tx, l.most)
		if err != nil {
			return nil, l, err
		}
		groups, all := make([]group, len(rows)), int64(0)
		for i, r := range rows {
			groups[i], all = groupFromRow(r), all+r.Envelopes
		}
		if all < l.most {
			return groups, l.counted(), nil
		}
	}
	rows, err := dbsqlc.New().OverviewWaitingSample(ctx, tx, &dbsqlc.OverviewWaitingSampleParams{Percent: l.percent, Mask: int32(l.rows() - 1)})
	groups := make([]group, len(rows))
	for i, r := range rows {
		groups[i] = groupFromRow(dbsqlc.OverviewWaitingRow(r))
		groups[i].envelopes, groups[i].due = l.scale(r.Envelopes*l.rows()), l.scale(r.Due*l.rows())
	}
	return groups, l, err
}

func groupFromRow(r dbsqlc.OverviewWaitingRow) group {
	return group{
		bucket: Bucket{Tenant: r.Tenant, Name: r.Bucket, Limited: r.Limited, id: r.BucketID},
		reason: r.Reason, gated: r.Gated, envelopes: r.Envelopes, due: r.Due, first: seconds(r.FirstSeconds),
	}
}

// readOldest finds the envelope that could be claimed for longest, among some
// of the buckets with work, from one on.
func readOldest(ctx context.Context, tx pgx.Tx, first int64) (time.Duration, error) {
	s, err := dbsqlc.New().OverviewOldest(ctx, tx, &dbsqlc.OverviewOldestParams{First: first, Most: mostHops})
	return seconds(s), err
}

// readBuckets reads how the limits of buckets stand: of those named, and of
// those that have any.
func readBuckets(ctx context.Context, tx pgx.Tx, ids []int64, most int64) ([]Bucket, error) {
	rows, err := dbsqlc.New().OverviewBuckets(ctx, tx, &dbsqlc.OverviewBucketsParams{BucketIds: ids, Most: most})
	buckets := make([]Bucket, len(rows))
	for i, r := range rows {
		buckets[i] = Bucket{
			Tenant: r.Tenant, Name: r.Name, Limited: r.Limited, Tokens: r.Tokens, InUse: r.InUse, Concurrency: int64(r.Concurrency),
			OpensIn: seconds(r.OpensSeconds), ClosedBy: r.ClosedBy, id: r.BucketID,
		}
	}
	return buckets, err
}

func readBreakers(ctx context.Context, tx pgx.Tx) ([]Breaker, error) {
	rows, err := dbsqlc.New().OverviewBreakers(ctx, tx, mostBreakers)
	breakers := make([]Breaker, len(rows))
	for i, r := range rows {
		breakers[i] = Breaker{r.Tenant, r.SourceID, r.State, r.Cause, r.Since, r.OpenUntil, int(r.Openings)}
	}
	return breakers, err
}

func readPauses(ctx context.Context, tx pgx.Tx) ([]Pause, error) {
	rows, err := dbsqlc.New().OverviewPauses(ctx, tx, mostPauses)
	pauses := make([]Pause, len(rows))
	for i, r := range rows {
		pauses[i] = Pause{r.Tenant, r.Scope, r.Subject, r.Kill, r.Reason, r.PausedBy, r.PausedAt}
	}
	return pauses, err
}

// readApprovals also tells the database's time.
func readApprovals(ctx context.Context, tx pgx.Tx) (a Approvals, at time.Time, err error) {
	r, err := dbsqlc.New().OverviewApprovals(ctx, tx, mostApprovals)
	if r.Waiting > 0 {
		a = Approvals{r.Waiting, r.Oldest}
	}
	return a, r.At, err
}

func readLetters(ctx context.Context, tx pgx.Tx, l look) ([]DeadLetters, error) {
	if l.most > 0 {
		rows, err := dbsqlc.New().OverviewLetters(ctx, tx, l.most)
		if err != nil {
			return nil, err
		}
		letters, all := make([]DeadLetters, len(rows)), int64(0)
		for i, r := range rows {
			letters[i], all = DeadLetters{r.Reason, r.Letters, seconds(r.OldestSeconds)}, all+r.Letters
		}
		if all < l.most {
			return letters, nil
		}
	}
	rows, err := dbsqlc.New().OverviewLettersSample(ctx, tx, l.percent)
	letters := make([]DeadLetters, len(rows))
	for i, r := range rows {
		letters[i] = DeadLetters{r.Reason, l.scale(r.Letters), seconds(r.OldestSeconds)}
	}
	return letters, err
}

func readUncovered(ctx context.Context, tx pgx.Tx) (time.Duration, error) {
	s, err := dbsqlc.New().OverviewUncovered(ctx, tx, mostTenants)
	return seconds(s), err
}

func readNotices(ctx context.Context, tx pgx.Tx) (map[string]int64, error) {
	r, err := dbsqlc.New().OverviewNotices(ctx, tx)
	return map[string]int64{"ledger": r.Ledger, "events": r.Events}, err
}

func readThroughput(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (Throughput, error) {
	rows, err := dbsqlc.New().OverviewThroughput(ctx, tx, &dbsqlc.OverviewThroughputParams{
		TenantID: uuid.UUID(tenant), Events: mostEvents, Envelopes: mostEnded,
	})
	if err != nil {
		return Throughput{}, err
	}
	t := Throughput{Covers: window, Ended: make([]Ended, len(rows))}
	cut, reach := false, time.Duration(0)
	for i, r := range rows {
		t.Ended[i] = Ended{r.SourceID, r.ToolName, r.Status, r.LastMinute, r.LastFiveMinutes}
		cut, reach = cut || r.Cut, max(reach, seconds(r.OldestSeconds))
	}
	if cut {
		t.Covers = reach
	}
	return t, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
