package dbtest

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

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
	// cloneConns bounds how many databases are created or dropped at once.
	cloneConns = 4
	// sharedConns bounds how many tests can hold a Tx at once.
	sharedConns = 32
)

// opened is the one server that all tests of a process share. It is package
// state because `go test` has no other place that outlives a test and is
// reached from each of them; nothing but its first use changes it.
var opened = sync.OnceValues(open)

// cluster is a server with the template for this binary's schema.
type cluster struct {
	base     *url.URL
	admin    *pgxpool.Pool // on the maintenance database
	locks    *pgx.Conn     // holds the locks of this process
	run      int32         // number of this process, unique among the running ones
	template string
	clones   atomic.Int64

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
	address := os.Getenv(URLEnv)
	if address == "" {
		server, err := embedded.Start(ctx, embedded.Config{Fast: true})
		if err != nil {
			return nil, err
		}
		address = server.URL()
	}
	return connect(ctx, address)
}

// connect makes the template on the server at that address, unless it is
// there, and removes what runs that are over have left.
func connect(ctx context.Context, address string) (*cluster, error) {
	base, err := url.Parse(address)
	if err != nil || (base.Scheme != "postgres" && base.Scheme != "postgresql") {
		// The parser's own text would quote the password.
		return nil, errors.New(URLEnv + " is not a URL such as postgres://user:password@host:port/database")
	}
	c := &cluster{base: base}
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

// drop removes a database, even if there are connections to it.
func (c *cluster) drop(ctx context.Context, name string) error {
	return dropDatabase(ctx, c.admin, name)
}

// newRun draws a number for this process.
func newRun() int32 {
	var b [4]byte
	rand.Read(b[:])
	return int32(binary.BigEndian.Uint32(b[:]) >> 1)
}
