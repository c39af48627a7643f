package rest

import (
	"context"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

// change makes a change that writes its own event, and answers that it was
// made.
func (s *Server) change(c *call, do func(ctx context.Context, tx pgx.Tx) error) error {
	if err := s.inTx(c, do); err != nil {
		return err
	}
	// What waited may go now.
	s.cfg.Wake()
	return c.nothing()
}

func (s *Server) listBucketNames(c *call) error {
	var names []string
	err := s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		set, err := limits.Load(ctx, tx, c.by.Tenant)
		names = set.BucketNames()
		return err
	})
	if err != nil {
		return err
	}
	return items(c, names)
}

// bucketStates reads buckets as the API shows them.
func (s *Server) bucketStates(c *call, names ...string) ([]limits.BucketState, error) {
	var states []limits.BucketState
	err := s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		var err error
		states, err = limits.BucketStates(ctx, tx, c.by.Tenant, names...)
		return err
	})
	for i := range states {
		b := &states[i]
		for _, at := range []**time.Time{&b.RetiredAt, &b.OpensAt, &b.ClosedUntil} {
			*at = utc(*at)
		}
	}
	return states, err
}

func (s *Server) listBuckets(c *call) error {
	states, err := s.bucketStates(c)
	if err != nil {
		return err
	}
	return items(c, states)
}

func (s *Server) getBucket(c *call) error {
	states, err := s.bucketStates(c, c.r.PathValue("name"))
	if err != nil {
		return err
	}
	if len(states) == 0 {
		return fault.New(fault.NotFound, "no bucket %s", c.r.PathValue("name"))
	}
	return c.json(http.StatusOK, states[0])
}

func (s *Server) putBucket(c *call) error {
	var b limits.Bucket
	if err := c.decode(&b); err != nil {
		return err
	}
	b.Name = c.r.PathValue("name")
	return s.change(c, func(ctx context.Context, tx pgx.Tx) error {
		return limits.PutBucket(ctx, tx, c.by.Tenant, b, c.by.Name)
	})
}

func (s *Server) retireBucket(c *call) error {
	return s.change(c, func(ctx context.Context, tx pgx.Tx) error {
		return limits.RetireBucket(ctx, tx, c.by.Tenant, c.r.PathValue("name"), c.by.Name)
	})
}

func (s *Server) reopenBucket(c *call) error {
	return s.change(c, func(ctx context.Context, tx pgx.Tx) error {
		return limits.ReopenBucket(ctx, tx, c.by.Tenant, c.r.PathValue("name"), c.by.Name)
	})
}
