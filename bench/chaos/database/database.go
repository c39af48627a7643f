// Package database owns the PostgreSQL server of a run: it starts, restarts,
// holds up and fills it, and reads Countersign's rows of a tenant. It does not
// judge them.
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
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/bench/process"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/embedded"
)

const (
	// sessionName is the application_name of this program's sessions.
	sessionName = "chaos"
	// upTimeout is the time that the database has to answer before it is
	// restarted, as a supervisor would do, and upPoll the poll interval.
	upTimeout = 5 * time.Second
	upPoll    = 100 * time.Millisecond
)

// Server is a server under test.
type Server struct {
	URL     string
	Version string
	// Pool is for the run's own statements, Clients for those of agents, which connect
	// as workers do.
	Pool, Clients *pgxpool.Pool
	// Restart is nil unless this program started the server.
	Restart func(ctx context.Context, mode embedded.Mode) error

	dir     string
	pid     func() int
	closers []func() error
}

// Open starts a server, or uses the one at a URL, and migrates it. It must be
// closed.
func Open(ctx context.Context, url string, private embedded.Config) (_ *Server, err error) {
	s := &Server{URL: url}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if url == "" {
		server, err := embedded.Start(ctx, private)
		if err != nil {
			return nil, err
		}
		s.closers = append(s.closers, func() error { return server.Stop(context.WithoutCancel(ctx)) })
		s.URL, s.dir, s.pid, s.Restart = server.URL(), server.Dir(), server.Pid, server.Restart
	}
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	s.Clients = s.Pool
	return s, nil
}

// connect migrates the database and opens the pool.
func (s *Server) connect(ctx context.Context) (err error) {
	if _, err := postgres.Migrate(ctx, s.URL); err != nil {
		return err
	}
	if s.Pool, err = postgres.Open(ctx, postgres.Config{URL: s.URL, Name: sessionName}); err != nil {
		return err
	}
	s.closers = append(s.closers, func() error { s.Pool.Close(); return nil })
	if err := s.Pool.QueryRow(ctx, "SHOW server_version").Scan(&s.Version); err != nil {
		return fmt.Errorf("ask for the server's version: %w", err)
	}
	return nil
}

// OpenSmall starts a server on a disk of DiskSize.
func OpenSmall(ctx context.Context, private embedded.Config) (*Server, error) {
	dir, release, err := smallDisk(DiskSize)
	if err != nil {
		return nil, err
	}
	private.Dir = dir
	private.Settings = map[string]string{"max_wal_size": "64MB", "min_wal_size": "32MB"}
	s, err := Open(ctx, "", private)
	if err != nil {
		return nil, errors.Join(err, release())
	}
	s.closers = append([]func() error{release}, s.closers...)
	return s, nil
}

// Close releases everything in the reverse order.
func (s *Server) Close() error {
	var err error
	for i := len(s.closers) - 1; i >= 0; i-- {
		err = errors.Join(err, s.closers[i]())
	}
	s.closers = nil
	return err
}

// Revive restarts the server as after a crash if it does not answer.
func (s *Server) Revive(ctx context.Context) error {
	up, cancel := context.WithTimeout(ctx, upTimeout)
	defer cancel()
	err := process.Poll(up, upPoll, func() (bool, error) { return s.Pool.Ping(up) == nil, nil })
	if err != nil && ctx.Err() == nil {
		return s.Restart(ctx, embedded.Immediate)
	}
	return err
}

const (
	// DiskSize is the size of a small disk, in bytes: a fresh cluster takes
	// about 60 MB, and its write-ahead log is limited to as much.
	DiskSize = 256 << 20
	// refill is the interval at which freed space is taken too.
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
// too, and returns the sign of a full disk, or empty.
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
	_, err = tx.Exec(ctx, "CREATE TABLE countersign_data.chaos_space AS SELECT repeat('x', 1000) AS filler FROM generate_series(1, 100)")
	return err
}
