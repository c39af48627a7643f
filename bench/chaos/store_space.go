package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// spaceTimeout bounds one statement that takes space.
const spaceTimeout = time.Second

// wantsSpace takes space, with log in the database's log too, and says what
// sign there is of the disk being full; empty if none.
func (s store) wantsSpace(ctx context.Context, log bool) (sign string, err error) {
	const diskFull = "53100"
	ctx, cancel := context.WithTimeout(ctx, spaceTimeout)
	defer cancel()
	if log {
		_, err = s.pool.Exec(ctx, "SELECT pg_switch_wal()")
	}
	if err == nil {
		err = s.takeSpace(ctx)
	}
	switch pg, ok := errors.AsType[*pgconn.PgError](err); {
	case err == nil:
		return "", nil
	case !ok || pg.Code[:2] == "57" || pg.Code[:2] == "08": // no answer, or one that it is not there
		return feltAway, nil
	case pg.Code == diskFull:
		return feltFull, nil
	default:
		return "", fmt.Errorf("take space: %w", err)
	}
}

// takeSpace takes some space and gives it back.
func (s store) takeSpace(ctx context.Context) error {
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	_, err = tx.Exec(ctx, "CREATE TABLE chaos_space AS SELECT repeat('x', 1000) AS filler FROM generate_series(1, 100)")
	return err
}
