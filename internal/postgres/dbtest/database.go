package dbtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/countersign-dev/countersign/db"
)

// copyDatabase creates a database from a template. It copies files: the
// default, which copies through the write-ahead log, takes longer for all
// templates but those of a few pages.
func copyDatabase(ctx context.Context, conn execer, name, template string) error {
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+quoted(name)+" TEMPLATE "+quoted(template)+" STRATEGY file_copy"); err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	return nil
}

// dropDatabase drops a database, if it exists, under whoever is connected.
func dropDatabase(ctx context.Context, conn execer, name string) error {
	if _, err := conn.Exec(ctx, "DROP DATABASE IF EXISTS "+quoted(name)+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("drop database %s: %w", name, err)
	}
	return nil
}

// ownDatabases lists the databases that this package has made.
func ownDatabases(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	const query = "SELECT datname FROM pg_database WHERE starts_with(datname, $1) ORDER BY datname"
	rows, err := conn.Query(ctx, query, anyPrefix)
	if err != nil {
		return nil, fmt.Errorf("list databases: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("list databases: %w", err)
	}
	return names, nil
}

// tryLock takes an advisory lock for the session unless another session holds
// it. One that this session holds already it takes once more.
func tryLock(ctx context.Context, conn *pgx.Conn, class, key int32) (bool, error) {
	var taken bool
	if err := conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1, $2)", class, key).Scan(&taken); err != nil {
		return false, fmt.Errorf("try a lock: %w", err)
	}
	return taken, nil
}

// lockKey turns a digest into the second key of an advisory lock.
func lockKey(digest string) int32 {
	n, err := strconv.ParseUint(digest[:min(8, len(digest))], 16, 32)
	if err != nil {
		return 0 // no name of ours; any key will do
	}
	return int32(n >> 1) // 31 bits
}

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }

// schemaDigest names the schema that the migrations make, River's included.
func schemaDigest() (string, error) {
	river := riverpgxv5.New(nil).GetMigrationFS(riverdriver.MigrationLineMain)
	return digest(db.Migrations, river)
}

// digest returns the beginning of a hash of all files' names and contents.
func digest(trees ...fs.FS) (string, error) {
	hash := sha256.New()
	for _, tree := range trees {
		err := fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := fs.ReadFile(tree, path)
			if err != nil {
				return err
			}
			fmt.Fprintf(hash, "%q %d\n", path, len(text))
			hash.Write(text)
			return nil
		})
		if err != nil {
			return "", fmt.Errorf("read migrations: %w", err)
		}
	}
	return hex.EncodeToString(hash.Sum(nil))[:digestChars], nil
}
