package postgres

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// Later is a transaction with a query that is executed in the round trip of another
// one, directly after it. The first use of Query sets the query and returns ErrLater;
// the second returns the rows. The arguments must not change until then.
type Later struct {
	pgx.Tx
	sql  string
	args []any
	// rows are nil until the query was executed.
	rows *keptRows
}

// ErrLater is the error of a query that is executed later.
var ErrLater = errors.New("the query is executed along with the next one")

// Ahead returns tx for a query that is sent along with the next query of tx, if
// possible, and else when its rows are read. The error of a query that was sent along is
// that of the next one.
func Ahead(tx pgx.Tx) *Later { return &Later{Tx: tx} }

// Query sets the query, or returns its rows.
func (l *Later) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	p, ok := l.Tx.(*pipelinedTx)
	switch {
	case l.sql == "":
		l.sql, l.args = sql, args
		if ok && plain(args) {
			p.ahead = l
		}
		return failedRows{err: ErrLater}, ErrLater
	case l.rows != nil:
		return l.rows, nil
	}
	if ok {
		p.ahead = nil
		if p.begun != nil && plain(args) {
			p.prepared[sql] = struct{}{}
		}
	}
	return l.Tx.Query(ctx, sql, args...)
}

// checkAhead leaves a query that was to be sent ahead to its Later unless the next
// statement is a query and both are prepared. The next statement is prepared from now on.
func (p *pipelinedTx) checkAhead(sql string, args []any, rows bool) {
	if p.ahead == nil {
		return
	}
	_, known := p.prepared[sql]
	_, prepared := p.prepared[p.ahead.sql]
	if known && prepared && rows && plain(args) && !p.final && p.held == nil {
		return
	}
	p.ahead = nil
	if p.begun != nil && rows && plain(args) {
		p.prepared[sql] = struct{}{}
	}
}

// keep reads all rows of the query: the connection is needed before they are.
func (l *Later) keep(results pgx.BatchResults) error {
	rows, err := results.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	kept := &keptRows{types: l.Conn().TypeMap(), fields: slices.Clone(rows.FieldDescriptions())}
	for rows.Next() {
		values := slices.Clone(rows.RawValues())
		for i, v := range values {
			values[i] = slices.Clone(v)
		}
		kept.values = append(kept.values, values)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	l.rows = kept
	return nil
}

// keptRows are rows in memory.
type keptRows struct {
	pgx.Rows
	types  *pgtype.Map
	fields []pgconn.FieldDescription
	values [][][]byte
	row    [][]byte
}

// Close does nothing.
func (*keptRows) Close() {}

// Err returns nil: all rows were read.
func (*keptRows) Err() error { return nil }

// Next reports whether there is another row.
func (r *keptRows) Next() bool {
	if len(r.values) == 0 {
		return false
	}
	r.row, r.values = r.values[0], r.values[1:]
	return true
}

// Scan reads the row.
func (r *keptRows) Scan(dest ...any) error { return pgx.ScanRow(r.types, r.fields, r.row, dest...) }

// pipelinedRows are the rows of a statement that was not sent by itself. Their end is
// that of the results, behind which the connection can be used again.
type pipelinedRows struct {
	pgx.Rows
	tx      *pipelinedTx
	results pgx.BatchResults
	sql     string
	later   *Later
	closed  bool
	err     error
}

// Next reports whether there is another row.
func (r *pipelinedRows) Next() bool {
	if r.Rows.Next() {
		return true
	}
	r.Close()
	return false
}

// Close ends the rows.
func (r *pipelinedRows) Close() {
	if !r.closed {
		r.closed = true
		r.Rows.Close()
		err := r.Rows.Err()
		if err == nil && r.later != nil {
			err = r.later.keep(r.results)
		}
		if r.err = r.tx.end(r.results, r.sql, err); r.err != nil && r.later != nil {
			delete(r.tx.prepared, r.later.sql)
		}
	}
}

// Err returns the error of the statement, and of the commit that went with it.
func (r *pipelinedRows) Err() error {
	if r.closed {
		return r.err
	}
	return r.Rows.Err()
}
