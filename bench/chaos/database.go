package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/embedded"
)

// ourName is the application_name of this program's sessions.
const ourName = "chaos"

// database is a server under test.
type database struct {
	url     string
	version string
	pool    *pgxpool.Pool
	// dir and restart are there if the server is ours.
	dir     string
	restart func(ctx context.Context, mode embedded.Mode) error
	closers []func() error
}

// openDatabase starts a server of our own, or uses the one at a URL, and
// migrates it. It must be closed.
func openDatabase(ctx context.Context, url string, private embedded.Config) (_ *database, err error) {
	db := &database{url: url}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.close())
		}
	}()
	if url == "" {
		server, err := embedded.Start(ctx, private)
		if err != nil {
			return nil, err
		}
		db.closers = append(db.closers, func() error { return server.Stop(context.WithoutCancel(ctx)) })
		db.url, db.dir, db.restart = server.URL(), server.Dir(), server.Restart
	}
	if _, err := postgres.Migrate(ctx, db.url); err != nil {
		return nil, err
	}
	if db.pool, err = postgres.Open(ctx, postgres.Config{URL: db.url, Name: ourName}); err != nil {
		return nil, err
	}
	db.closers = append(db.closers, func() error { db.pool.Close(); return nil })
	if err := db.pool.QueryRow(ctx, "SHOW server_version").Scan(&db.version); err != nil {
		return nil, fmt.Errorf("ask for the server's version: %w", err)
	}
	return db, nil
}

// openSmallDatabase starts a server of our own on a small disk of its own.
func openSmallDatabase(ctx context.Context, private embedded.Config) (*database, error) {
	dir, release, err := smallDisk(diskSize)
	if err != nil {
		return nil, err
	}
	private.Dir = dir
	private.Settings = map[string]string{"max_wal_size": "64MB", "min_wal_size": "32MB"}
	db, err := openDatabase(ctx, "", private)
	if err != nil {
		return nil, errors.Join(err, release())
	}
	db.closers = append([]func() error{release}, db.closers...)
	return db, nil
}

// close ends what was opened, the last first.
func (db *database) close() error {
	var err error
	for i := len(db.closers) - 1; i >= 0; i-- {
		err = errors.Join(err, db.closers[i]())
	}
	db.closers = nil
	return err
}

// revive starts the server again if it has stopped.
func (db *database) revive(ctx context.Context) error {
	up, cancel := context.WithTimeout(ctx, upTimeout)
	defer cancel()
	for up.Err() == nil {
		if db.pool.Ping(up) == nil {
			return nil
		}
		pause(up, pollInterval)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return db.restart(ctx, crash)
}
