package dbtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/countersign-dev/countersign/db"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/embedded"
)

const (
	// openTimeout bounds everything that happens once per process: the start
	// of a server, and the template's migrations.
	openTimeout = 5 * time.Minute
	// maintenance is the database for work on others. Advisory locks count
	// within one database only, so all runs on a server use this one.
	maintenance = "postgres"
	// cloneConns bounds the databases that are created or dropped concurrently.
	cloneConns = 4
	// sharedConns bounds the tests that hold a Tx concurrently.
	sharedConns = 32
)

// opened is the one server that all tests of a process share, and openedTx the one
// of Tx. They are package state because `go test` has no other place that outlives a
// test and is reached from each of them; nothing but the first use changes them.
var (
	opened   = sync.OnceValues(open)
	openedTx = sync.OnceValues(openTx)
)

// cluster is a server with the template for this binary's schema.
type cluster struct {
	base     *url.URL
	admin    *pgxpool.Pool // on the maintenance database
	locks    *pgx.Conn     // holds the locks of this process
	run      int32         // number of this process, unique among the running ones
	template string
	clones   atomic.Int64
	server   *embedded.Server // a private one: it ends when nothing refers to it

	// mu guards free: the databases that tests have given back, by the statements
	// executed in them.
	mu   sync.Mutex
	free map[string][]*database

	// sharedPool opens the pool for Tx.
	sharedPool func() (*pgxpool.Pool, error)
}

// use returns the cluster, or fails the test.
func use(t testing.TB) *cluster {
	t.Helper()
	c, err := opened()
	if err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	return c
}

// open finds or starts a server and makes its template. Nothing closes them:
// connections end with the process, and so does a private server.
func open() (*cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	if address := os.Getenv(URLEnv); address != "" {
		return connect(ctx, address)
	}
	server, err := embedded.Start(ctx, embedded.Config{Fast: true, Settings: embedded.ForTests()})
	if err != nil {
		return nil, err
	}
	c, err := connect(ctx, server.URL())
	if err == nil {
		c.server = server
	}
	return c, err
}

// openTx is open for the server of Tx.
func openTx() (*cluster, error) {
	address := os.Getenv(TxURLEnv)
	if address == "" {
		return opened()
	}
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	return connect(ctx, address)
}

// connect creates the template on the server at an address, unless it exists,
// and removes the databases of finished runs.
func connect(ctx context.Context, address string) (*cluster, error) {
	base, err := url.Parse(address)
	if err != nil || (base.Scheme != "postgres" && base.Scheme != "postgresql") {
		// The parser's own text would quote the password.
		return nil, errors.New(URLEnv + " or " + TxURLEnv + " is not a URL such as postgres://user:password@host:port/database")
	}
	c := &cluster{base: base, free: make(map[string][]*database)}
	c.sharedPool = sync.OnceValues(func() (*pgxpool.Pool, error) {
		return postgres.Open(context.Background(), postgres.Config{
			URL: c.url(c.shared()), MaxConns: sharedConns, Name: "dbtest",
		})
	})
	if c.locks, err = pgx.Connect(ctx, c.url(maintenance)); err != nil {
		return nil, fmt.Errorf("connect to the maintenance database: %w", err)
	}
	if err := c.prepare(ctx); err != nil {
		return nil, errors.Join(err, c.locks.Close(ctx))
	}
	c.admin, err = postgres.Open(ctx, postgres.Config{URL: c.url(maintenance), MaxConns: cloneConns, Name: "dbtest admin"})
	if err != nil {
		return nil, fmt.Errorf("open the maintenance database: %w", err)
	}
	return c, nil
}

// url returns the address of a database on the server.
func (c *cluster) url(database string) string {
	u := *c.base
	u.Path = "/" + database
	return u.String()
}

// create makes a database for one test and returns its name.
func (c *cluster) create(ctx context.Context, template string) (string, error) {
	name := fmt.Sprintf("%s%08x_%d", runPrefix, c.run, c.clones.Add(1))
	if err := copyDatabase(ctx, c.admin, name, template); err != nil {
		return "", err
	}
	return name, nil
}

// The prefixes of the names of our databases. They are followed by the digest
// of the migrations or, for a run, by its number and a count.
const (
	anyPrefix      = "countersign_test_"
	templatePrefix = anyPrefix + "template_" // migrated, never written to
	sharedPrefix   = anyPrefix + "shared_"   // for Tx; nothing is committed
	draftPrefix    = anyPrefix + "draft_"    // a template in the making
	runPrefix      = anyPrefix + "run_"      // one test's own
)

// The first keys of our advisory locks.
const (
	buildLock  = 0x63736274 // held while templates are made or removed
	schemaLock = 0x63737363 // shared by the processes that use a template; the second key is its digest's
	runLock    = 0x63737275 // held by a process; the second key is its number
)

// digestChars is the length of the digest in the name of a template.
const digestChars = 12

// execer is a connection or a pool of them.
type execer interface {
	Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error)
}

// prepare takes the locks of this process, removes unused databases, and
// creates the template and the shared database if they are missing. The server
// releases the locks when the connection ends.
func (c *cluster) prepare(ctx context.Context) error {
	digest, err := schemaDigest()
	if err != nil {
		return err
	}
	c.template = templatePrefix + digest
	for claimed := false; !claimed; {
		c.run = rand.Int32()
		if claimed, err = tryLock(ctx, c.locks, runLock, c.run); err != nil {
			return err
		}
	}
	if _, err := c.locks.Exec(ctx, "SELECT pg_advisory_lock_shared($1, $2)", schemaLock, lockKey(digest)); err != nil {
		return fmt.Errorf("lock the template: %w", err)
	}
	// Roles belong to the whole server, so templates are created one at a time.
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

// build creates the missing databases. A template gets its name only when it
// is complete.
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

// sweep drops the databases of ended processes: drafts, the tests' own ones,
// and unused templates of other schemas.
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
// that the caller of sweep holds, so drafts are dropped.
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

// copyDatabase creates a database from a template. It copies files, which on a
// file system in memory is faster than the default, a copy through the
// write-ahead log.
func copyDatabase(ctx context.Context, conn execer, name, template string) error {
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+quoted(name)+" TEMPLATE "+quoted(template)+" STRATEGY file_copy"); err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	return nil
}

// dropDatabase drops a database, if it exists, and disconnects its users.
func dropDatabase(ctx context.Context, conn execer, name string) error {
	if _, err := conn.Exec(ctx, "DROP DATABASE IF EXISTS "+quoted(name)+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("drop database %s: %w", name, err)
	}
	return nil
}

// ownDatabases lists the databases that this package has made.
func ownDatabases(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	const query = "SELECT datname FROM pg_database WHERE starts_with(datname, $1) ORDER BY datname"
	rows, _ := conn.Query(ctx, query, anyPrefix) // CollectRows returns the error
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("list databases: %w", err)
	}
	return names, nil
}

// tryLock takes an advisory lock for the session unless another session holds
// it. A lock that this session holds already is taken once more.
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
