package database

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/countersign-dev/countersign/bench/process"
)

const (
	// DiskSize is the size of a small disk, in bytes: a fresh cluster takes
	// about 60 MB, and its write-ahead log is limited to as much.
	DiskSize = 256 << 20
	// refill is how often space that has become free is taken too.
	refill = 50 * time.Millisecond
	// spaceTimeout bounds one statement that needs space.
	spaceTimeout = time.Second
)

// The signs of a full disk: statements that the database refused for lack of
// space, and polls at which it was down, because its log had found no space.
const (
	SignFull = "statements refused for lack of space"
	SignDown = "polls without a database"
)

// Fill keeps the server's disk full for a time and calls sign for each sign of
// that. With wal, the database is made to begin a new file of its write-ahead
// log again and again.
func (s *Server) Fill(ctx context.Context, full time.Duration, wal bool, sign func(string)) (err error) {
	file, err := os.Create(filepath.Join(s.dir, "ballast"))
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, file.Close(), os.Remove(file.Name())); err == nil {
			err = s.Revive(ctx)
		}
	}()
	end := time.Now().Add(full)
	return process.Poll(ctx, refill, func() (bool, error) {
		if err := grow(file); err != nil {
			return false, err
		}
		seen, err := s.needSpace(ctx, wal)
		if seen != "" {
			sign(seen)
		}
		return time.Now().After(end), err
	})
}

// grow appends to a file until no space is free.
func grow(file *os.File) error {
	for _, size := range []int{8 << 20, 4 << 10} {
		for block := make([]byte, size); ; {
			_, err := file.Write(block)
			if errors.Is(err, syscall.ENOSPC) {
				break
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// needSpace runs a statement that needs space, with wal in the write-ahead log
// too, and returns the sign of a full disk; empty if there is none.
func (s *Server) needSpace(ctx context.Context, wal bool) (sign string, err error) {
	const diskFull = "53100"
	ctx, cancel := context.WithTimeout(ctx, spaceTimeout)
	defer cancel()
	if wal {
		_, err = s.Pool.Exec(ctx, "SELECT pg_switch_wal()")
	}
	if err == nil {
		err = s.useSpace(ctx)
	}
	switch pg, ok := errors.AsType[*pgconn.PgError](err); {
	case err == nil:
		return "", nil
	case !ok || pg.Code[:2] == "57" || pg.Code[:2] == "08": // no answer, or that the server is down
		return SignDown, nil
	case pg.Code == diskFull:
		return SignFull, nil
	default:
		return "", fmt.Errorf("use space: %w", err)
	}
}

// useSpace writes a table and rolls back.
func (s *Server) useSpace(ctx context.Context) error {
	tx, err := s.Pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	_, err = tx.Exec(ctx, "CREATE TABLE chaos_space AS SELECT repeat('x', 1000) AS filler FROM generate_series(1, 100)")
	return err
}
