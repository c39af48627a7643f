package dbtest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/countersign-dev/countersign/internal/postgres"
)

// The names of our databases begin with these. What follows is the digest of
// the migrations, or for a run its number and a count.
const (
	anyPrefix      = "countersign_test_"
	templatePrefix = anyPrefix + "template_" // migrated, never written to
	sharedPrefix   = anyPrefix + "shared_"   // for Tx; nothing is ever committed
	draftPrefix    = anyPrefix + "draft_"    // a template in the making
	runPrefix      = anyPrefix + "run_"      // one test's own
)

// The first keys of our advisory locks.
const (
	buildLock  = 0x63736274 // held while templates are made or removed
	schemaLock = 0x63737363 // shared by the processes that use a template; the second key is its digest's
	runLock    = 0x63737275 // held by a process; the second key is its number
)

// digestChars is how much of the digest names a template.
const digestChars = 12

// execer is a connection or a pool of them.
type execer interface {
	Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error)
}

// prepare takes the locks of this process, removes what no process uses any
// more, and makes the template and the shared database if they are missing.
// The server gives the locks up when the connection ends.
func (c *cluster) prepare(ctx context.Context) error {
	digest, err := schemaDigest()
	if err != nil {
		return err
	}
	c.template = templatePrefix + digest
	for claimed := false; !claimed; {
		c.run = newRun()
		if claimed, err = tryLock(ctx, c.locks, runLock, c.run); err != nil {
			return err
		}
	}
	if _, err := c.locks.Exec(ctx, "SELECT pg_advisory_lock_shared($1, $2)", schemaLock, lockKey(digest)); err != nil {
		return fmt.Errorf("lock the template: %w", err)
	}
	// Roles belong to the whole server, so no two templates are made at once.
	if _, err := c.locks.Exec(ctx, "SELECT pg_advisory_lock($1, 0)", buildLock); err != nil {
		return fmt.Errorf("wait for other templates: %w", err)
	}
	databases, err := ownDatabases(ctx, c.locks)
	if err != nil {
		return err
	}
	if err := c.sweep(ctx, databases); err != nil {
		return err
	}
	if err := c.build(ctx, databases); err != nil {
		return err
	}
	if _, err := c.locks.Exec(ctx, "SELECT pg_advisory_unlock($1, 0)", buildLock); err != nil {
		return fmt.Errorf("let other templates be made: %w", err)
	}
	return nil
}

// shared is the name of the database for Tx.
func (c *cluster) shared() string {
	return sharedPrefix + strings.TrimPrefix(c.template, templatePrefix)
}

// build makes what is missing among the databases. A template gets its name
// only when it is whole.
func (c *cluster) build(ctx context.Context, databases []string) error {
	if !slices.Contains(databases, c.template) {
		draft := draftPrefix + strings.TrimPrefix(c.template, templatePrefix)
		if err := copyDatabase(ctx, c.locks, draft, "template0"); err != nil {
			return err
		}
		if _, err := postgres.Migrate(ctx, c.url(draft)); err != nil {
			return err
		}
		rename := "ALTER DATABASE " + quoted(draft) + " RENAME TO " + quoted(c.template)
		if _, err := c.locks.Exec(ctx, rename); err != nil {
			return fmt.Errorf("finish the template: %w", err)
		}
	}
	if !slices.Contains(databases, c.shared()) {
		return copyDatabase(ctx, c.locks, c.shared(), c.template)
	}
	return nil
}

// sweep drops the databases of processes that are gone: drafts, the tests' own
// ones, and templates of other schemas that nobody uses now.
func (c *cluster) sweep(ctx context.Context, databases []string) error {
	for _, name := range databases {
		class, key, ok := owner(name)
		if !ok || name == c.template || name == c.shared() {
			continue
		}
		free, err := tryLock(ctx, c.locks, class, key)
		if err != nil {
			return err
		}
		if !free {
			continue
		}
		if err := dropDatabase(ctx, c.locks, name); err != nil {
			return err
		}
		if _, err := c.locks.Exec(ctx, "SELECT pg_advisory_unlock($1, $2)", class, key); err != nil {
			return fmt.Errorf("unlock %s: %w", name, err)
		}
	}
	return nil
}

// owner returns the lock that keeps a database alive. A draft's is the lock
// that whoever calls sweep holds, so it goes.
func owner(name string) (class, key int32, ok bool) {
	switch {
	case strings.HasPrefix(name, draftPrefix):
		return buildLock, 0, true
	case strings.HasPrefix(name, templatePrefix):
		return schemaLock, lockKey(strings.TrimPrefix(name, templatePrefix)), true
	case strings.HasPrefix(name, sharedPrefix):
		return schemaLock, lockKey(strings.TrimPrefix(name, sharedPrefix)), true
	}
	number, _, _ := strings.Cut(strings.TrimPrefix(name, runPrefix), "_")
	run, err := strconv.ParseUint(number, 16, 31)
	return runLock, int32(run), err == nil && strings.HasPrefix(name, runPrefix) // 31 bits
}
