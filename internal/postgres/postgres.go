// Package postgres owns access to the database: the pool, transactions with a role
// and a tenant, migrations, and the mapping of PostgreSQL's errors to faults. It is
// independent of the meaning of the tables; their stores own the texts of
// violations.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
)

// Config configures access to the database.
type Config struct {
	// URL is a connection string; it may hold a password and is never logged.
	URL string
	// MaxConns bounds the pool; zero means 10.
	MaxConns int32
	// Pooled reports whether connections go through a pooler in transaction mode
	// (PgBouncer): statements are then described, not prepared by name.
	Pooled bool
	// Name is shown as application_name in pg_stat_activity.
	Name string
}

// Open returns a pool. It does not wait for the database to answer.
func Open(ctx context.Context, cfg Config) (*pgxpool.Pool, error) {
	pc, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		return nil, errNoURL()
	}
	pc.MaxConns = cfg.MaxConns
	pc.MaxConns = cmp.Or(pc.MaxConns, 10)
	pc.ConnConfig.ConnectTimeout = 5 * time.Second
	if cfg.Pooled {
		pc.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	if cfg.Name != "" {
		pc.ConnConfig.RuntimeParams["application_name"] = cfg.Name
	}
	pc.ConnConfig.OnNotice = noteUnreplicated
	sender := &noticeSender{tenants: make(map[string]*Notice)}
	pc.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		registerUUID(conn.TypeMap())
		registerArrays(conn.TypeMap())
		conn.PgConn().CustomData()[noticesKey] = &notices{sender: sender}
		if cfg.Pooled {
			// The next statement may run in another session; CheckSchema reads the session's path.
			return nil
		}
		// Not a parameter of the connection's start, which PgBouncer rejects.
		if pipelines(conn) {
			conn.PgConn().CustomData()[pipelineKey] = &pipeline{prepared: make(map[string]struct{}), sets: make(map[Scope]string)}
		}
		_, err := conn.Exec(ctx, "SET search_path = "+SearchPath)
		return err
	}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("open pool: %w", err)
	}
	sender.use(pool)
	return pool, nil
}

// errNoURL is the error for a malformed connection string. The parser's own text
// may quote it, and with it the password.
func errNoURL() error {
	return errors.New("DATABASE_URL is not a PostgreSQL connection string (postgres://user:password@host:port/database)")
}

// Begins starts transactions: a pool, or in tests a transaction that starts
// savepoints.
type Begins interface {
	BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error)
}

// InTx runs fn in a transaction of the given scope and commits it if fn returns
// nil. After a serialization failure or a deadlock it runs fn again, three times
// in all, after a short pause for the other transaction, so fn must have no
// effect outside tx. Inside fn use tx alone: taking a second connection there can
// starve the pool. The error is a fault if callers can act on it.
func InTx(ctx context.Context, db Begins, as Scope, fn func(tx pgx.Tx) error) error {
	for try := 1; ; try++ {
		err := inTx(ctx, db, as, fn)
		if err == nil || try == 3 || !rerunnable(err) || ctx.Err() != nil {
			return Fault(err)
		}
		// On a busy machine the other transaction resumes late. Without the pause this
		// one could lock the contested row again and cause the same deadlock.
		select {
		case <-ctx.Done():
			return Fault(err)
		case <-time.After(time.Duration(try) * (10*time.Millisecond + rand.N(20*time.Millisecond))):
		}
	}
}

// InTxReturning is InTx for an fn with a value.
func InTxReturning[T any](ctx context.Context, db Begins, as Scope, fn func(tx pgx.Tx) (T, error)) (value T, err error) {
	err = InTx(ctx, db, as, func(tx pgx.Tx) error {
		value, err = fn(tx)
		return err
	})
	return value, err
}

func inTx(ctx context.Context, db Begins, as Scope, fn func(tx pgx.Tx) error) error {
	tx, end, err := begin(ctx, db, as)
	if err != nil {
		return err
	}
	defer end()
	done, announced := false, noticesOf(tx)
	defer func() {
		if !done {
			announced.take()
			// Also after a panic in fn; the caller's context may be over.
			clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			_ = tx.Rollback(clean) // the cause is returned already
		}
	}()
	if err := fn(tx); err != nil {
		return err
	}
	done = true
	announce, lost := announced.take(), announced.commits()
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	if lost() {
		return errUnreplicated()
	}
	announce()
	return nil
}

// begin begins a transaction; end gives its connection back when it is over.
func begin(ctx context.Context, db Begins, as Scope) (tx pgx.Tx, end func(), err error) {
	if shared, ok := db.(*Shared); ok {
		return shared.begin(ctx, as)
	}
	pool, ok := db.(*pgxpool.Pool)
	if !ok {
		tx, err = db.BeginTx(ctx, pgx.TxOptions{BeginQuery: as.begin()})
		return tx, func() {}, err
	}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, nil, err
	}
	tx, err = beginOn(ctx, conn, as)
	return tx, conn.Release, err
}

// beginOn begins a transaction on a connection, which it releases if that fails.
func beginOn(ctx context.Context, conn *pgxpool.Conn, as Scope) (pgx.Tx, error) {
	if tx := pipelined(conn.Conn(), as); tx != nil {
		return tx, nil
	}
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{BeginQuery: as.begin()})
	if err != nil {
		conn.Release()
	}
	return tx, err
}

func rerunnable(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pg.Code == "40001" || pg.Code == "40P01")
}

// Scope is the role and tenant of a transaction. Without a scope, row-level
// security hides every row.
type Scope struct {
	role     string
	tenant   string
	planned  bool
	readOnly bool
	snapshot bool
	alone    bool
}

// API acts for one tenant with the rights of the API: every query
// reads and writes that tenant's rows only.
func API(tenant envelope.TenantID) Scope {
	return Scope{role: "countersign_api", tenant: tenant.String()}
}

// Authenticator acts for no tenant yet: it can find a token and nothing else.
func Authenticator() Scope { return Scope{role: "countersign_api"} }

// Worker acts with the rights of a worker, across tenants.
func Worker() Scope { return Scope{role: "countersign_worker"} }

// Triage acts with the rights of triage, for the tenant that the connection's
// login is bound to.
func Triage() Scope { return Scope{role: "countersign_triage"} }

// Admin acts as the connection's own user: for migrations and for setting up
// tenants from the command line.
func Admin() Scope { return Scope{} }

// Planned returns the scope with one kind of plan: index lookups in nested
// loops, planned once. The hot statements take and settle a few
// hundred rows by key. With small tables that were never analysed the planner
// sometimes preferred to merge or hash whole tables into them, and one run in
// six took five times as long. For the last external id of a range it read all of a
// tenant's actions by the primary key, and sorted them.
//
// Such statements compare the first column of a key with ANY (ARRAY[key]). With an
// equality, a plan from a time of few rows reads the whole index, in its order, and
// compares every row with every key.
func (s Scope) Planned() Scope {
	s.planned = true
	return s
}

// PlanAnew has the rest of a transaction's statements planned for the values and
// the size that the tables have now. It is for tables that may have grown a
// thousandfold since the connection planned a statement.
func PlanAnew(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, "set local plan_cache_mode = force_custom_plan")
	return err
}

// ReadOnly returns the scope with a read-only transaction.
func (s Scope) ReadOnly() Scope {
	s.readOnly = true
	return s
}

// Alone returns the scope for transactions of one statement, which is their Final.
func (s Scope) Alone() Scope {
	s.alone = true
	return s
}

// idleTimeout ends a transaction whose client sends nothing: if its host froze or
// vanished, it would keep its locks, and with them a bucket, until TCP gives up,
// which takes hours.
const idleTimeout = "15s"

// Snapshot returns the scope with a read-only transaction all of whose statements
// see the same state.
func (s Scope) Snapshot() Scope {
	s.readOnly, s.snapshot = true, true
	return s
}

// start returns the statement that begins a transaction of the scope, without its
// parameters.
func (s Scope) start() string {
	start := "begin"
	if s.snapshot {
		start += " isolation level repeatable read"
	}
	if s.readOnly {
		start += " read only"
	}
	return start
}

// parameters returns the names and values of PostgreSQL's parameters for every
// transaction of the scope, without its tenant.
func (s Scope) parameters() [][2]string {
	// Set in every transaction, since behind a pooler the session may be shared.
	all := [][2]string{{"search_path", SearchPath}}
	if s.role != "" {
		all = append(all, [2]string{"role", s.role}, [2]string{"idle_in_transaction_session_timeout", idleTimeout})
	}
	if s.planned {
		for _, plan := range []string{"enable_hashjoin", "enable_mergejoin", "enable_seqscan", "enable_bitmapscan", "enable_sort", "jit"} {
			all = append(all, [2]string{plan, "off"})
		}
		all = append(all, [2]string{"plan_cache_mode", "force_generic_plan"})
	}
	return all
}

// begin returns the statements that begin a transaction of the scope.
func (s Scope) begin() string {
	var b strings.Builder
	b.WriteString(s.start())
	for _, p := range s.parameters() {
		b.WriteString("; set local " + p[0] + " = ")
		if p[0] == "search_path" {
			b.WriteString(p[1]) // a list
		} else {
			b.WriteString("'" + p[1] + "'")
		}
	}
	if s.tenant != "" {
		// The text of a UUID cannot break out of the quotes.
		b.WriteString("; set local countersign.tenant_id = '" + s.tenant + "'")
	}
	return b.String()
}

// set returns one statement that sets the parameters of the scope, for a transaction
// that start has begun. The tenant, if there is one, is its argument.
func (s Scope) set() string {
	var b strings.Builder
	b.WriteString("SELECT ")
	for i, p := range s.parameters() {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("pg_catalog.set_config('" + p[0] + "', '" + p[1] + "', true)")
	}
	if s.tenant != "" {
		b.WriteString(", pg_catalog.set_config('countersign.tenant_id', $1, true)")
	}
	return b.String()
}
