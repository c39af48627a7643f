package limits

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// PutBucket makes a bucket or sets its limits anew. One that was retired is
// back in use. The limits hold at the next claim; what is used of the old ones
// counts on where it can.
func PutBucket(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, b Bucket, by string) error {
	return change(ctx, tx, tenant, by, func(d *editor) error { return d.putBucket(ctx, b) })
}

// RetireBucket lets nothing new into a bucket. What is in it goes out as its
// limits allow. The bucket named default cannot be retired: fault.Conflict.
func RetireBucket(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, name, by string) error {
	return change(ctx, tx, tenant, by, func(d *editor) error { return d.retireBucket(ctx, name) })
}

// ReopenBucket ends the hold that a provider's answer put on a bucket. Its own
// limits hold on.
func ReopenBucket(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, name, by string) error {
	n, err := dbsqlc.New().BucketReopen(ctx, tx, &dbsqlc.BucketReopenParams{TenantID: uuid.UUID(tenant), Name: name})
	if err == nil && n == 0 {
		return fault.New(fault.NotFound, "no bucket %s", shortened(name))
	}
	if err != nil {
		return err
	}
	return note(ctx, tx, tenant, by, audit.Item{Subject: "bucket " + name + " reopened"})
}

// BucketStates returns a tenant's buckets with how much of each is used, in
// order of name, retired ones among them. With names only those are returned,
// as far as there are any.
func BucketStates(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, names ...string) ([]BucketState, error) {
	q := dbsqlc.New()
	settings, err := q.BucketSettingsList(ctx, tx, uuid.UUID(tenant))
	if err != nil {
		return nil, err
	}
	byName := make(map[string]dbsqlc.BucketSettingsListRow, len(settings))
	for _, r := range settings {
		byName[r.Name] = r
	}
	if names == nil {
		names = []string{}
	}
	rows, err := q.BucketStateList(ctx, tx, &dbsqlc.BucketStateListParams{TenantID: uuid.UUID(tenant), Names: names, Most: MaxCount})
	if err != nil {
		return nil, err
	}
	states := make([]BucketState, len(rows))
	for i, r := range rows {
		states[i] = BucketState{
			Bucket: bucketFromRow(byName[r.Name]), RetiredAt: byName[r.Name].RetiredAt, Tokens: counted(r.Tokens), CalendarUsed: counted(r.CalendarUsed),
			InUse: r.InUse, OpensAt: moment(r.OpensAt), ClosedUntil: moment(r.ClosedUntil), ClosedBy: r.ClosedBy, Paused: r.Paused,
			Due: r.Due, Waiting: r.Waiting,
		}
	}
	return states, nil
}

// counted is a count, or nil for -1.
func counted(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}

// moment is a time, or nil for the zero one.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// storedBuckets returns every bucket of a tenant, retired ones among them.
func storedBuckets(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) ([]storedBucket, error) {
	rows, err := dbsqlc.New().BucketSettingsList(ctx, tx, uuid.UUID(tenant))
	if err != nil {
		return nil, err
	}
	all := make([]storedBucket, len(rows))
	for i, r := range rows {
		all[i] = storedBucket{bucketFromRow(r), r.RetiredAt != nil}
	}
	return all, nil
}

func bucketFromRow(r dbsqlc.BucketSettingsListRow) Bucket {
	b := Bucket{Name: r.Name}
	if r.RateLimit != nil && r.RateSeconds != nil && r.Burst != nil {
		b.Rate = &Rate{Limit: int(*r.RateLimit), Per: durationOf(*r.RateSeconds), Burst: int(*r.Burst)}
	}
	if r.Calendar != nil && r.CalendarLimit != nil {
		b.Calendar = &Calendar{Limit: int(*r.CalendarLimit), Every: Period(*r.Calendar)}
		if r.Timezone != nil {
			b.Calendar.Timezone = *r.Timezone
		}
	}
	if r.Concurrency != nil {
		b.Concurrency = int(*r.Concurrency)
	}
	return b
}

func bucketParams(tenant envelope.TenantID, settings Tenant, b Bucket) *dbsqlc.BucketPutParams {
	p := &dbsqlc.BucketPutParams{TenantID: uuid.UUID(tenant), Name: b.Name, TenantTimezone: settings.Timezone}
	if r := b.Rate; r != nil {
		p.RateLimit, p.RateSeconds, p.Burst = new(int32(r.Limit)), new(r.Per.Seconds()), new(int32(r.Burst))
	}
	if c := b.Calendar; c != nil {
		p.Calendar, p.CalendarLimit = new(string(c.Every)), new(int32(c.Limit))
		if c.Timezone != "" {
			p.Timezone = &c.Timezone
		}
	}
	if b.Concurrency != 0 {
		p.Concurrency = new(int32(b.Concurrency))
	}
	return p
}
