package overview

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// ReadOldest is readOldest for all buckets.
func ReadOldest(ctx context.Context, tx pgx.Tx) (time.Duration, error) { return readOldest(ctx, tx, 0) }
