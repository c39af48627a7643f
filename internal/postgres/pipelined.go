package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// pipelinedTx is a transaction that begins in the round trip of its first statement,
// and commits in that of its last one where Final announced it. That needs a
// statement which its connection has prepared already: the first use of a statement
// on a connection is sent by itself. A transaction without a statement costs no
// round trip.
type pipelinedTx struct {
	*pipeline
	conn  *pgx.Conn
	scope Scope
	// begun is nil before the first statement.
	begun pgx.Tx
	// final reports whether the next statement is the last, last whether it has come,
	// and sent whether the commit went with it.
	final, last, sent bool
	// along reports whether the next statement is held until the one after it.
	along bool
	held  *heldStatement
	// ahead is sent along with the next query.
	ahead *Later
}

// heldStatement is a statement without rows that is sent along with the next one.
type heldStatement struct {
	sql  string
	args []any
}

var errFinal = errors.New("a statement came after the last one of its transaction")

// pipeline is the state that a connection keeps between transactions.
type pipeline struct {
	// prepared are the statements that the connection has prepared.
	prepared map[string]struct{}
	// sets are the texts of Scope.set, by scope without its tenant.
	sets map[Scope]string
}

// set returns the statement that sets a scope's parameters, and its arguments.
func (p *pipeline) set(as Scope) (sql string, args []any) {
	kind := Scope{role: as.role, planned: as.planned}
	if as.tenant != "" {
		kind.tenant, args = "some", []any{as.tenant}
	}
	sql, ok := p.sets[kind]
	if !ok {
		sql = kind.set()
		p.sets[kind] = sql
	}
	return sql, args
}

// pipelineKey is the key of a connection's pipeline in its custom data. Connections
// behind a pooler have none.
const pipelineKey = "countersign pipeline"

// pipelined returns a transaction that begins with its first statement; nil if the
// connection cannot do that.
func pipelined(conn *pgx.Conn, as Scope) pgx.Tx {
	shared, ok := conn.PgConn().CustomData()[pipelineKey].(*pipeline)
	if !ok {
		return nil
	}
	return &pipelinedTx{pipeline: shared, conn: conn, scope: as, final: as.alone}
}

// Final returns tx with its commit sent along with the next statement in the same
// round trip, if possible. A later statement is an error. The commit has happened
// when the statement has returned, or its rows were read.
func Final(tx pgx.Tx) pgx.Tx {
	if p, ok := tx.(*pipelinedTx); ok {
		p.final = true
	}
	return tx
}

// Along returns tx with its next statement sent along with the one after it in the same
// round trip, if possible. It must return no rows, and its arguments must not change
// until then. Its error is that of the one after it, or of the commit.
func Along(tx pgx.Tx) pgx.Tx {
	if p, ok := tx.(*pipelinedTx); ok {
		p.along = true
	}
	return tx
}

// CommitSent reports whether the commit of tx was sent and may have happened, though
// a statement returned an error.
func CommitSent(tx pgx.Tx) bool {
	p, ok := tx.(*pipelinedTx)
	return ok && p.sent
}

// pipelines reports whether a connection's tracer, if it has one, also sees
// statements that are sent together.
func pipelines(conn *pgx.Conn) bool {
	tracer := conn.Config().Tracer
	_, ok := tracer.(pgx.BatchTracer)
	return tracer == nil || ok
}

// hold holds a statement that Along announced, and reports whether it did. The statement
// need not be prepared: the transaction has its role by then, so that pgx can prepare it.
func (p *pipelinedTx) hold(sql string, args []any) bool {
	along := p.along && p.begun != nil && p.held == nil && !p.final && !p.last && plain(args)
	if p.along = false; along {
		p.held = &heldStatement{sql, args}
	}
	return along
}

// begin begins the transaction by itself, and sends a statement that is held.
func (p *pipelinedTx) begin(ctx context.Context) (pgx.Tx, error) {
	if held := p.held; held != nil {
		p.held = nil
		if _, err := p.begun.Exec(ctx, held.sql, held.args...); err != nil {
			return nil, err
		}
	}
	if p.begun == nil {
		tx, err := p.conn.BeginTx(ctx, pgx.TxOptions{BeginQuery: p.scope.begin()})
		if err != nil {
			return nil, err
		}
		p.begun = tx
	}
	return p.begun, nil
}

// next returns the transaction for a statement; nil if the statement is to be sent
// with the begin or the commit. rows reports whether the statement returns rows.
func (p *pipelinedTx) next(ctx context.Context, sql string, args []any, rows bool) (pgx.Tx, error) {
	if p.last {
		return nil, errFinal
	}
	p.last = p.final
	p.checkAhead(sql, args, rows)
	if p.begun != nil && !p.final && p.held == nil && p.ahead == nil {
		return p.begun, nil
	}
	if _, ok := p.prepared[sql]; ok && plain(args) {
		return nil, nil
	}
	tx, err := p.begin(ctx)
	if err == nil && (rows || len(args) > 0) && plain(args) { // pgx prepares no other statement
		p.prepared[sql] = struct{}{}
	}
	return tx, err
}

// plain reports whether arguments have no options of pgx.
func plain(args []any) bool {
	if len(args) == 0 {
		return true
	}
	switch args[0].(type) {
	case pgx.QueryExecMode, pgx.QueryResultFormats, pgx.QueryResultFormatsByOID, pgx.QueryRewriter:
		return false
	}
	return true
}

// send sends a statement with the begin, the commit or one that is held, and returns its results.
// If nothing was executed, since the connection lost the statement, the transaction
// begins by itself and there are no results.
func (p *pipelinedTx) send(ctx context.Context, sql string, args []any) (pgx.BatchResults, error) {
	batch := &pgx.Batch{}
	begins := p.begun == nil
	if begins {
		batch.BeginTx(pgx.TxOptions{BeginQuery: p.scope.start()})
		set, tenant := p.set(p.scope)
		batch.Queue(set, tenant...)
	}
	held := p.held
	if p.held = nil; held != nil {
		batch.Queue(held.sql, held.args...)
	}
	batch.Queue(sql, args...)
	if p.ahead != nil {
		batch.Queue(p.ahead.sql, p.ahead.args...)
	}
	if p.final {
		batch.Queue("commit")
	}
	p.sent = p.final
	results := p.conn.SendBatch(ctx, batch)
	if held != nil {
		if _, err := results.Exec(); err != nil {
			return nil, p.end(results, held.sql, err)
		}
	}
	if !begins {
		return results, nil
	}
	for range 2 {
		if _, err := results.Exec(); err != nil {
			_ = p.end(results, sql, err) // the same error
			if p.conn.IsClosed() || p.conn.PgConn().TxStatus() != 'I' || p.sent {
				p.begun = results.Tx()
				return nil, err
			}
			_, err = p.begin(ctx)
			return nil, err
		}
	}
	p.begun = results.Tx()
	return results, nil
}

// Exec executes a statement.
func (p *pipelinedTx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if p.hold(sql, args) {
		return pgconn.CommandTag{}, nil
	}
	tx, err := p.next(ctx, sql, args, false)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	if tx == nil {
		results, err := p.send(ctx, sql, args)
		if err != nil {
			return pgconn.CommandTag{}, err
		}
		if results != nil {
			tag, err := results.Exec()
			return tag, p.end(results, sql, err)
		}
		tx = p.begun
	}
	return tx.Exec(ctx, sql, args...)
}

// end ends the results of a statement, of which err is the error so far. An error of
// the server means that the commit was not executed.
func (p *pipelinedTx) end(results pgx.BatchResults, sql string, err error) error {
	if closed := results.Close(); err == nil {
		err = closed
	}
	if err != nil {
		delete(p.prepared, sql) // pgx may have dropped it too
		if !p.conn.IsClosed() {
			p.sent = false
		}
	}
	return err
}

// Query executes a statement and returns its rows.
func (p *pipelinedTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	tx, err := p.next(ctx, sql, args, true)
	if err != nil {
		return failedRows{err: err}, err
	}
	if tx == nil {
		results, err := p.send(ctx, sql, args)
		if err != nil {
			return failedRows{err: err}, err
		}
		if results != nil {
			rows, err := results.Query()
			if err != nil {
				err = p.end(results, sql, err)
				return failedRows{err: err}, err
			}
			later := p.ahead
			p.ahead = nil
			return &pipelinedRows{Rows: rows, tx: p, results: results, sql: sql, later: later}, nil
		}
		tx = p.begun
	}
	return tx.Query(ctx, sql, args...)
}

// QueryRow executes a statement and returns its first row.
func (p *pipelinedTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if p.begun != nil && !p.final && p.held == nil {
		return p.begun.QueryRow(ctx, sql, args...)
	}
	rows, err := p.Query(ctx, sql, args...)
	return pipelinedRow{rows, err}
}

// Commit commits the transaction, if it has begun.
func (p *pipelinedTx) Commit(ctx context.Context) error {
	if p.begun == nil || p.sent {
		return nil
	}
	if p.held != nil {
		if _, err := p.begin(ctx); err != nil {
			_ = p.begun.Rollback(ctx) // the cause is returned already
			return err
		}
	}
	return p.begun.Commit(ctx)
}

// Rollback rolls the transaction back, if it has begun.
func (p *pipelinedTx) Rollback(ctx context.Context) error {
	if p.begun == nil || p.sent {
		return pgx.ErrTxClosed
	}
	return p.begun.Rollback(ctx)
}

// Begin begins a savepoint.
func (p *pipelinedTx) Begin(ctx context.Context) (pgx.Tx, error) {
	tx, err := p.begin(ctx)
	if err != nil {
		return nil, err
	}
	return tx.Begin(ctx)
}

// CopyFrom copies rows into a table.
func (p *pipelinedTx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error) {
	tx, err := p.begin(ctx)
	if err != nil {
		return 0, err
	}
	return tx.CopyFrom(ctx, table, columns, rows)
}

// SendBatch sends statements together.
func (p *pipelinedTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if _, err := p.begin(ctx); err != nil {
		return failedBatch{err: err}
	}
	return p.begun.SendBatch(ctx, b)
}

// LargeObjects returns access to large objects; it must not be called before the
// transaction has begun.
func (p *pipelinedTx) LargeObjects() pgx.LargeObjects {
	if p.begun == nil {
		return pgx.LargeObjects{}
	}
	return p.begun.LargeObjects()
}

// Prepare prepares a statement.
func (p *pipelinedTx) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	tx, err := p.begin(ctx)
	if err != nil {
		return nil, err
	}
	return tx.Prepare(ctx, name, sql)
}

// Conn returns the connection.
func (p *pipelinedTx) Conn() *pgx.Conn { return p.conn }

// pipelinedRow is the first of some rows.
type pipelinedRow struct {
	rows pgx.Rows
	err  error
}

// Scan reads the row. The error is pgx.ErrNoRows if it does not exist.
func (r pipelinedRow) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.rows.Close()
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return pgx.ErrNoRows
	}
	if err := r.rows.Scan(dest...); err != nil {
		return err
	}
	r.rows.Close()
	return r.rows.Err()
}

// failedRows are the rows of a statement that was not executed.
type failedRows struct {
	pgx.Rows
	err error
}

// Close does nothing.
func (failedRows) Close() {}

// Err returns the reason.
func (r failedRows) Err() error { return r.err }

// Next returns false.
func (failedRows) Next() bool { return false }

// failedBatch are the results of statements that were not sent.
type failedBatch struct {
	pgx.BatchResults
	err error
}

// Exec returns the reason.
func (b failedBatch) Exec() (pgconn.CommandTag, error) { return pgconn.CommandTag{}, b.err }

// Query returns the reason.
func (b failedBatch) Query() (pgx.Rows, error) { return failedRows{err: b.err}, b.err }

// QueryRow returns the reason.
func (b failedBatch) QueryRow() pgx.Row { return pipelinedRow{err: b.err} }

// Close returns the reason.
func (b failedBatch) Close() error { return b.err }
