package limits

import (
	"context"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

// GET /api/v1/bucket-names lists the names of buckets.
func BucketNames(c *request.Call) error {
	var names []string
	err := c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		set, err := limits.Load(ctx, tx, c.By.Tenant)
		names = set.BucketNames()
		return err
	})
	if err != nil {
		return err
	}
	return request.Items(c, names)
}

// bucketStates reads buckets as the API shows them.
func bucketStates(c *request.Call, names ...string) ([]limits.BucketState, error) {
	var states []limits.BucketState
	err := c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		var err error
		states, err = limits.BucketStates(ctx, tx, c.By.Tenant, names...)
		return err
	})
	for i := range states {
		b := &states[i]
		for _, at := range []**time.Time{&b.RetiredAt, &b.OpensAt, &b.ClosedUntil} {
			*at = request.UTC(*at)
		}
	}
	return states, err
}

// GET /api/v1/buckets lists the buckets with their states.
func Buckets(c *request.Call) error {
	states, err := bucketStates(c)
	if err != nil {
		return err
	}
	return request.Items(c, states)
}

// GET /api/v1/buckets/{name} shows a bucket with its state.
func Bucket(c *request.Call) error {
	states, err := bucketStates(c, c.R.PathValue("name"))
	if err != nil {
		return err
	}
	if len(states) == 0 {
		return fault.New(fault.NotFound, "no bucket %s", c.R.PathValue("name"))
	}
	tag, err := request.ETagOf(states[0].Bucket)
	if err != nil {
		return err
	}
	c.SetETag(tag)
	return c.JSON(http.StatusOK, states[0])
}

// PUT /api/v1/buckets/{name} sets a bucket.
func PutBucket(c *request.Call) error {
	var b limits.Bucket
	if err := c.Decode(&b); err != nil {
		return err
	}
	b.Name = c.R.PathValue("name")
	return c.Change(func(ctx context.Context, tx pgx.Tx) error {
		if err := c.CheckMatch(ctx, tx, bucket(c)); err != nil {
			return err
		}
		return limits.PutBucket(ctx, tx, c.By.Tenant, b, c.By.Name)
	})
}

// DELETE /api/v1/buckets/{name} retires a bucket.
func RetireBucket(c *request.Call) error {
	return c.Change(func(ctx context.Context, tx pgx.Tx) error {
		if err := c.CheckMatch(ctx, tx, bucket(c)); err != nil {
			return err
		}
		return limits.RetireBucket(ctx, tx, c.By.Tenant, c.R.PathValue("name"), c.By.Name)
	})
}

// POST /api/v1/buckets/{name}/reopen reopens a bucket that was closed after
// rate-limit answers.
func ReopenBucket(c *request.Call) error {
	return c.Change(func(ctx context.Context, tx pgx.Tx) error {
		return limits.ReopenBucket(ctx, tx, c.By.Tenant, c.R.PathValue("name"), c.By.Name)
	})
}

// bucket returns a function that reads the limits of the bucket in the path; nil
// if there is none.
func bucket(c *request.Call) func(context.Context, pgx.Tx) (any, error) {
	return func(ctx context.Context, tx pgx.Tx) (any, error) {
		states, err := limits.BucketStates(ctx, tx, c.By.Tenant, c.R.PathValue("name"))
		if err != nil || len(states) == 0 {
			return nil, err
		}
		return states[0].Bucket, nil
	}
}
