package limits

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// ReopenBucket ends the hold on a bucket that a provider's answer caused. Its
// own limits still apply.
func ReopenBucket(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, name string, by envelope.Actor) error {
	n, err := dbsqlc.New().BucketReopen(ctx, tx, &dbsqlc.BucketReopenParams{TenantID: tenant, Name: name})
	if err := postgres.Affected(n, err, fault.New(fault.NotFound, "no bucket %s", shortened(name))); err != nil {
		return err
	}
	return recordChange(ctx, tx, tenant, by, audit.Item{Subject: "bucket " + name + " reopened"})
}

// BucketStates returns a tenant's buckets with their usage, ordered by name,
// including retired ones. With names only existing buckets with these names are
// returned.
func BucketStates(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, names ...string) ([]BucketState, error) {
	q := dbsqlc.New()
	settings, err := q.BucketSettingsList(ctx, tx, tenant)
	if err != nil {
		return nil, err
	}
	byName := make(map[string]dbsqlc.BucketSettingsListRow, len(settings))
	for _, r := range settings {
		byName[r.Name] = r
	}
	rows, err := q.BucketStateList(ctx, tx, &dbsqlc.BucketStateListParams{TenantID: tenant, Names: append([]string{}, names...), Most: maxCount})
	return postgres.Map(rows, err, func(r dbsqlc.BucketStateListRow) BucketState {
		return BucketState{
			Bucket: bucketFromRow(byName[r.Name]),
			BucketUse: wire.BucketUse{
				RetiredAt: postgres.UTC(byName[r.Name].RetiredAt), Permits: counted(r.Permits), CalendarUsed: counted(r.CalendarUsed), InUse: r.InUse,
				OpensAt: moment(r.OpensAt), ClosedUntil: moment(r.ClosedUntil), ClosedBy: r.ClosedBy, Paused: r.Paused, Due: r.Due, Waiting: r.Waiting,
			},
		}
	})
}

// counted returns a count, or nil for -1.
func counted(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}

// moment returns a time, or nil for the zero time.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}

// storedBuckets returns every bucket of a tenant ordered by name, including
// retired ones.
func storedBuckets(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) ([]storedBucket, error) {
	rows, err := dbsqlc.New().BucketSettingsList(ctx, tx, tenant)
	slices.SortFunc(rows, func(a, b dbsqlc.BucketSettingsListRow) int { return cmp.Compare(a.Name, b.Name) })
	return postgres.Map(rows, err, func(r dbsqlc.BucketSettingsListRow) storedBucket {
		return storedBucket{bucketFromRow(r), r.RetiredAt != nil}
	})
}

func bucketFromRow(r dbsqlc.BucketSettingsListRow) Bucket {
	b := Bucket{Name: r.Name, Concurrency: int(postgres.OrZero(r.Concurrency))}
	if r.RateLimit != nil && r.RateSeconds != nil && r.Burst != nil {
		b.Rate = &Rate{Limit: int(*r.RateLimit), Per: durationOf(*r.RateSeconds), Burst: int(*r.Burst)}
	}
	if r.Calendar != nil && r.CalendarLimit != nil {
		b.Calendar = &Calendar{Limit: int(*r.CalendarLimit), Every: *r.Calendar, Timezone: postgres.OrZero(r.Timezone)}
	}
	return b
}

// putBucket stores a bucket, and reactivates it if it was retired.
func putBucket(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, settings Tenant, b Bucket) error {
	p := &dbsqlc.BucketPutParams{TenantID: tenant, Name: b.Name, TenantTimezone: settings.Timezone, Concurrency: postgres.OrNull(int32(b.Concurrency))}
	if r := b.Rate; r != nil {
		p.RateLimit, p.RateSeconds, p.Burst = new(int32(r.Limit)), new(r.Per.Seconds()), new(int32(r.Burst))
	}
	if c := b.Calendar; c != nil {
		p.Calendar, p.CalendarLimit, p.Timezone = new(string(c.Every)), new(int32(c.Limit)), postgres.OrNull(c.Timezone)
	}
	return violations.Fault(dbsqlc.New().BucketPut(ctx, tx, p))
}
