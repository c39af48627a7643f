package main

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/postgres/embedded"
)

// server is the PostgreSQL that all of a run is measured on.
type server struct {
	base    string
	private *embedded.Server
	version string
	made    int
}

func openServer(ctx context.Context, base string) (*server, error) {
	s := &server{base: base}
	if base == "" {
		var err error
		s.private, err = embedded.Start(ctx, embedded.Config{Download: true, Settings: map[string]string{
			"shared_buffers": "1GB", "max_wal_size": "4GB", "max_connections": "200",
		}})
		if err != nil {
			return nil, err
		}
		s.base = s.private.URL()
	}
	err := s.exec(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SHOW server_version").Scan(&s.version)
	})
	if err != nil {
		s.close()
		return nil, fmt.Errorf("reach PostgreSQL: %w", err)
	}
	return s, nil
}

func (s *server) close() {
	if s.private != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		_ = s.private.Stop(ctx) // it dies with us in any case
	}
}

func (s *server) exec(ctx context.Context, fn func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, s.base)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return fn(conn)
}

// fresh makes an empty database and returns its URL and how to drop it. The
// checkpoint before it gives every run the same start.
func (s *server) fresh(ctx context.Context) (string, func(), error) {
	s.made++
	name := fmt.Sprintf("bench_%d_%d", time.Now().UnixNano(), s.made)
	err := s.exec(ctx, func(conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "CREATE DATABASE "+name); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, "CHECKPOINT")
		return err
	})
	if err != nil {
		return "", nil, err
	}
	u, err := url.Parse(s.base)
	if err != nil {
		return "", nil, err
	}
	u.Path = "/" + name
	drop := func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		_ = s.exec(clean, func(conn *pgx.Conn) error {
			_, err := conn.Exec(clean, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
			return err
		})
	}
	return u.String(), drop, nil
}
