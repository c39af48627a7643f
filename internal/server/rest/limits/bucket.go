package limits

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

// bucketState is a bucket, the use of its limits, and the entity tag of the
// limits.
type bucketState struct {
	limits.BucketState
	ETag string `json:"etag"`
}

// buckets is the collection of buckets.
var buckets = request.Collection[bucketState]{
	Name: "buckets", Noun: request.NounBucket,
	Read: func(ctx context.Context, tx pgx.Tx, c *request.Call) ([]bucketState, error) {
		all, err := limits.BucketStates(ctx, tx, c.By.Tenant, c.Named("name")...)
		return request.Map(all, func(b limits.BucketState) bucketState {
			return bucketState{BucketState: b}
		}), err
	},
	Key:     func(b bucketState) string { return b.Name },
	ETag:    func(b *bucketState) *string { return &b.ETag },
	Version: func(b bucketState) any { return b.Bucket },
}

// BucketNames handles GET /api/v1/bucket-names. It lists the names of buckets.
func BucketNames(c *request.Call) error {
	names, err := request.Read(c, func(ctx context.Context, tx pgx.Tx) ([]string, error) {
		set, err := limits.Load(ctx, tx, c.By.Tenant)
		return set.BucketNames(), err
	})
	if err != nil {
		return err
	}
	return request.Sorted(c, "bucket-names", names, func(name string) string { return name })
}

// Buckets handles GET /api/v1/buckets. It lists the buckets with their states.
func Buckets(c *request.Call) error { return buckets.List(c) }

// Bucket handles GET /api/v1/buckets/{name}. It shows a bucket with its state.
func Bucket(c *request.Call) error { return buckets.Show(c, c.R.PathValue("name")) }

// PutBucket handles PUT /api/v1/buckets/{name}. It sets a bucket.
func PutBucket(c *request.Call, b limits.Bucket) error {
	if err := c.CheckTools("*"); err != nil {
		return err
	}
	b.Name = c.R.PathValue("name")
	return buckets.Put(c, b.Name, "", func(ctx context.Context, tx pgx.Tx) error {
		return limits.PutBucket(ctx, tx, c.By.Tenant, b, c.By.Actor())
	})
}

// RetireBucket handles DELETE /api/v1/buckets/{name}. It retires a bucket.
func RetireBucket(c *request.Call) error {
	name := c.R.PathValue("name")
	return buckets.Delete(c, name, "", func(ctx context.Context, tx pgx.Tx) error {
		return limits.RetireBucket(ctx, tx, c.By.Tenant, name, c.By.Actor())
	})
}

// ReopenBucket handles POST /api/v1/buckets/{name}/reopen. It reopens a bucket
// that was closed after rate-limit answers.
func ReopenBucket(c *request.Call) error {
	name := c.R.PathValue("name")
	return buckets.Put(c, name, "", func(ctx context.Context, tx pgx.Tx) error {
		return limits.ReopenBucket(ctx, tx, c.By.Tenant, name, c.By.Actor())
	})
}
