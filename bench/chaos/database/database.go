// Package database owns the PostgreSQL server of a run: it starts, restarts,
// holds up and fills it, and reads what Countersign wrote about a tenant. It
// does not judge what it reads.
package database

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/bench/process"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/embedded"
)

const (
	// sessionName is the application_name of this program's sessions.
	sessionName = "chaos"
	// upTimeout is how long the database has to answer before it is restarted,
	// as a supervisor would do it, and upPoll how often it is asked.
	upTimeout = 5 * time.Second
	upPoll    = 100 * time.Millisecond
)

// Server is a server under test.
type Server struct {
	URL     string
	Version string
	Pool    *pgxpool.Pool
	// Restart is nil unless this program started the server.
	Restart func(ctx context.Context, mode embedded.Mode) error

	dir     string
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
		s.URL, s.dir, s.Restart = server.URL(), server.Dir(), server.Restart
	}
	if _, err := postgres.Migrate(ctx, s.URL); err != nil {
		return nil, err
	}
	if s.Pool, err = postgres.Open(ctx, postgres.Config{URL: s.URL, Name: sessionName}); err != nil {
		return nil, err
	}
	s.closers = append(s.closers, func() error { s.Pool.Close(); return nil })
	if err := s.Pool.QueryRow(ctx, "SHOW server_version").Scan(&s.Version); err != nil {
		return nil, fmt.Errorf("ask for the server's version: %w", err)
	}
	return s, nil
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
