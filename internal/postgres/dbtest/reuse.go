package dbtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/internal/postgres"
)

// A new database costs as much processor time as many a test: its files, its
// connections, and in each of these the catalogue and the plans of all queries. So
// a test gets a database of an earlier one, with its connections, if that is like a
// new one but for rows, sequences and settings of its sessions, which are put back. If anything else differs
// (objects, settings, statistics, versions of migrations, sizes that the planner would
// see, a session that is still there) the database is dropped, and the test gets a
// new one.

const (
	// keptConns bounds the connections that a database has between tests.
	keptConns = 4
	// reuseBytes bounds the size of a table with only deleted rows. The planner takes
	// a new table to have ten pages, so that up to ten its plans are the same.
	reuseBytes = 10 * 8192
	// releasePoll is the poll interval for connections that a test has yet to release.
	releasePoll = time.Millisecond
)

// database is a test's database and the pool on it.
type database struct {
	cluster    *cluster
	name       string
	statements string
	pool       *pgxpool.Pool
	// made is the state before the first test.
	made state
}

// state has the properties that two databases for the same tests share.
type state struct {
	// Catalogue is a digest of the database's definitions, and Versions
	// the rows of the migrations' tables. Fence is the row of fence.
	Catalogue, Versions, Fence string
	// Sessions is the number of the database's sessions and prepared transactions
	// that the pool does not own.
	Sessions int
	// Filled are the tables with pages, and Sequences the values of the sequences
	// that were used.
	Filled    []string
	Sequences map[string]int64
	// Large reports whether a table is too large.
	Large bool
}

// take returns a database with a pool, in which statements have been executed.
func (c *cluster) take(ctx context.Context, statements string) (*database, error) {
	for {
		d := c.pop(statements)
		if d == nil {
			return c.newDatabase(ctx, statements)
		}
		if d.reset(ctx) == nil {
			return d, nil
		}
		if err := d.drop(ctx); err != nil {
			return nil, err
		}
	}
}

// pop returns a database that was given back, or nil.
func (c *cluster) pop(statements string) *database {
	c.mu.Lock()
	defer c.mu.Unlock()
	free := c.free[statements]
	if len(free) == 0 {
		return nil
	}
	last := len(free) - 1
	d := free[last]
	c.free[statements] = free[:last]
	return d
}

func (c *cluster) newDatabase(ctx context.Context, statements string) (*database, error) {
	name, err := c.create(ctx, c.template)
	if err != nil {
		return nil, err
	}
	// The pool outlives the test.
	pool, err := postgres.Open(context.WithoutCancel(ctx), postgres.Config{URL: c.url(name), Name: "dbtest"})
	if err != nil {
		return nil, err
	}
	d := &database{cluster: c, name: name, statements: statements, pool: pool}
	err = pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		if _, err := conn.Exec(ctx, statements, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		d.made, err = readState(ctx, conn.Conn(), nil)
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("prepare database %s: %w", name, err), d.drop(ctx))
	}
	return d, nil
}

// give makes the database available to other tests. It returns an error if the test
// has not released a connection.
func (d *database) give(ctx context.Context) error {
	if used := d.awaitReleased(); used > 0 {
		err := fmt.Errorf("%d connections are still in use %s after the test", used, closeTimeout)
		return errors.Join(err, dropDatabase(ctx, d.cluster.admin, d.name)) // Close would wait for them
	}
	// Sends the notices of the test's last commits too, which would reach another one.
	if postgres.Notify(ctx, d.pool, "dbtest", "") != nil { // the test has closed the pool
		return d.drop(ctx)
	}
	for i, conn := range d.pool.AcquireAllIdle(ctx) {
		if i >= keptConns || conn.Conn().PgConn().TxStatus() != 'I' {
			_ = conn.Conn().Close(ctx)
		}
		conn.Release()
	}
	d.cluster.mu.Lock()
	defer d.cluster.mu.Unlock()
	d.cluster.free[d.statements] = append(d.cluster.free[d.statements], d)
	return nil
}

// awaitReleased waits until the test's connections are released, and returns the
// number of those that are not.
func (d *database) awaitReleased() int32 {
	tick := time.NewTicker(releasePoll)
	defer tick.Stop()
	deadline := time.After(closeTimeout)
	for {
		used := d.pool.Stat().AcquiredConns()
		if used == 0 {
			return 0
		}
		select {
		case <-tick.C:
		case <-deadline:
			return used
		}
	}
}

// drop drops the database and closes the pool.
func (d *database) drop(ctx context.Context) error {
	d.pool.Close()
	return dropDatabase(ctx, d.cluster.admin, d.name)
}

// errUsed is the error for a database that differs from a new one.
var errUsed = errors.New("the database differs from a new one")

// reset makes the database and its sessions like new ones. It returns an error if it
// cannot.
func (d *database) reset(ctx context.Context) error {
	conns := d.pool.AcquireAllIdle(ctx)
	defer func() {
		for _, conn := range conns {
			conn.Release()
		}
	}()
	if len(conns) == 0 {
		return errUsed
	}
	pids := make([]uint32, len(conns))
	for i, conn := range conns {
		pids[i] = conn.Conn().PgConn().PID()
		var listens bool
		err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_listening_channels())", pgx.QueryExecModeSimpleProtocol).Scan(&listens)
		if err != nil || listens {
			return cmp.Or(err, errUsed)
		}
		const like = "RESET SESSION AUTHORIZATION; RESET ROLE; RESET ALL; DISCARD TEMP; SELECT pg_advisory_unlock_all(); SET search_path = " + postgres.SearchPath
		if _, err := conn.Exec(ctx, like, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("reset a session of %s: %w", d.name, err)
		}
	}
	now, err := readState(ctx, conns[0].Conn(), pids)
	if err != nil {
		return err
	}
	if now.Catalogue != d.made.Catalogue || now.Versions != d.made.Versions || now.Sessions > 0 || now.Large {
		return errUsed
	}
	return d.empty(ctx, conns[0].Conn(), now)
}

// empty deletes the rows of tests, and puts the sequences back.
func (d *database) empty(ctx context.Context, conn *pgx.Conn, now state) error {
	var b strings.Builder
	b.WriteString("BEGIN; SET LOCAL session_replication_role = replica;\n") // no triggers, foreign keys among them
	made := make(map[string]bool)
	for _, table := range d.made.Filled {
		made[table] = true
	}
	for _, table := range now.Filled {
		if !made[table] {
			b.WriteString("DELETE FROM " + table + ";\n")
		}
	}
	if now.Fence != d.made.Fence {
		b.WriteString("DELETE FROM fence; INSERT INTO fence SELECT * FROM jsonb_populate_recordset(NULL::fence, '" + strings.ReplaceAll(d.made.Fence, "'", "''") + "');\n")
	}
	for sequence := range now.Sequences {
		value, used := d.made.Sequences[sequence]
		fmt.Fprintf(&b, "SELECT setval('%s', %d, %t);\n", sequence, max(value, 1), used)
	}
	b.WriteString("COMMIT; SELECT pg_stat_reset()")
	if _, err := conn.Exec(ctx, b.String(), pgx.QueryExecModeSimpleProtocol); err != nil {
		return fmt.Errorf("empty %s: %w", d.name, err)
	}
	return nil
}

// catalogues are the tables of the system that definitions change, and analysis.
var catalogues = []string{
	"pg_attrdef", "pg_attribute", "pg_cast", "pg_class", "pg_constraint", "pg_default_acl", "pg_event_trigger", "pg_extension", "pg_index",
	"pg_namespace", "pg_operator", "pg_policy", "pg_proc", "pg_publication", "pg_statistic", "pg_statistic_ext", "pg_trigger", "pg_type",
	"pg_db_role_setting x WHERE x.setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())",
	"pg_database x WHERE x.datname = current_database()",
}

// readState reads the state of a connection's database, with the process ids of the
// pool's sessions. A row of a catalogue that was written since the last look has a
// later transaction: the age of the latest is compared with that of the first one.
func readState(ctx context.Context, conn *pgx.Conn, pids []uint32) (s state, err error) {
	var digest []string
	for _, from := range catalogues {
		if !strings.Contains(from, " ") {
			from += " x"
		}
		digest = append(digest, "(SELECT concat(count(1), ':', age('3'::xid) - least(age('3'::xid), min(age(x.xmin)))) FROM "+from+")")
	}
	query := `
WITH tables AS (
	SELECT c.oid, format('%I.%I', n.nspname, c.relname) AS name, c.relkind, pg_relation_size(c.oid) AS bytes, c.relpages, c.reltuples
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') AND c.relkind IN ('r', 'S')
)
SELECT concat_ws(' ', ` + strings.Join(digest, ", ") + `, (SELECT concat(sum(t.relpages), ':', sum(t.reltuples)) FROM tables t WHERE t.relkind = 'r')),
	(SELECT md5(concat(string_agg(g::text, ' ' ORDER BY g.id), (SELECT string_agg(r::text, ' ' ORDER BY r.version) FROM river.river_migration r))) FROM countersign_data.goose_db_version g),
	(SELECT coalesce(jsonb_agg(f), '[]')::text FROM countersign_data.fence f),
	(SELECT count(1) FROM pg_stat_activity a WHERE a.datname = current_database() AND a.backend_type = 'client backend' AND a.pid <> ALL ($1::int[]))
		+ (SELECT count(1) FROM pg_prepared_xacts p WHERE p.database = current_database()),
	ARRAY(SELECT t.name FROM tables t WHERE t.relkind = 'r' AND t.bytes > 0),
	(SELECT coalesce(jsonb_object_agg(t.name, pg_sequence_last_value(t.oid)) FILTER (WHERE pg_sequence_last_value(t.oid) IS NOT NULL), '{}') FROM tables t WHERE t.relkind = 'S'),
	(SELECT coalesce(max(t.bytes), 0) > $2 FROM tables t WHERE t.relkind = 'r')`
	if pids == nil {
		pids = []uint32{conn.PgConn().PID()}
	}
	err = conn.QueryRow(ctx, query, pids, reuseBytes).Scan(&s.Catalogue, &s.Versions, &s.Fence, &s.Sessions, &s.Filled, &s.Sequences, &s.Large)
	if err != nil {
		return state{}, fmt.Errorf("read the state of a database: %w", err)
	}
	return s, nil
}
