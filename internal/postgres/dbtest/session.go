package dbtest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Session is a transaction that ends with its test and in which savepoints
// replace transactions: BeginTx lets it replace a pool. It differs from a pool in that transactions cannot run side by
// side, their isolation level and access mode are those of the session, and
// deferred constraints and notifications wait for a commit that never comes.
type Session struct {
	pgx.Tx

	t testing.TB
}

// Commit fails the test: later tests would see its rows. A test that commits needs
// a database of its own.
func (s *Session) Commit(context.Context) error {
	s.t.Helper()
	err := errors.New("the transaction of dbtest.Tx cannot be committed; use dbtest.DB")
	s.t.Error(err)
	return err
}

// BeginTx begins a savepoint. Settings that opts.BeginQuery makes with SET
// LOCAL, the role among them, hold until its Commit or Rollback, as they would
// in a transaction.
func (s *Session) BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error) {
	sp, err := s.Tx.Begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("begin a savepoint: %w", err)
	}
	inner := &savepoint{Tx: sp, outer: s.Tx}
	if err := inner.set(ctx, opts.BeginQuery); err != nil {
		return nil, errors.Join(err, sp.Rollback(ctx))
	}
	return inner, nil
}

// savepoint is a transaction inside a Session.
type savepoint struct {
	pgx.Tx

	outer pgx.Tx
	// names and values are the settings to put back on Commit; Rollback puts
	// them back by itself.
	names, values []string
}

// set runs what follows the "begin" of a transaction's first statement.
func (sp *savepoint) set(ctx context.Context, beginQuery string) error {
	_, settings, ok := strings.Cut(beginQuery, ";")
	if !ok {
		return nil
	}
	sp.names = settingNames(settings)
	const query = `
SELECT array_agg(coalesce(current_setting(name, true), '') ORDER BY place)
FROM unnest($1::text[]) WITH ORDINALITY AS s (name, place)`
	if err := sp.QueryRow(ctx, query, sp.names).Scan(&sp.values); err != nil {
		return fmt.Errorf("remember settings: %w", err)
	}
	if _, err := sp.Exec(ctx, settings); err != nil {
		return fmt.Errorf("begin a savepoint: %w", err)
	}
	return nil
}

// Commit releases the savepoint. After a failed statement it rolls back
// instead and returns pgx.ErrTxCommitRollback, as a real commit would.
func (sp *savepoint) Commit(ctx context.Context) error {
	const failed = 'E'
	if sp.Conn().PgConn().TxStatus() == failed {
		return errors.Join(pgx.ErrTxCommitRollback, sp.Rollback(ctx))
	}
	if err := sp.Tx.Commit(ctx); err != nil {
		return fmt.Errorf("release a savepoint: %w", err)
	}
	const query = "SELECT set_config(name, value, true) FROM unnest($1::text[], $2::text[]) AS s (name, value)"
	if _, err := sp.outer.Exec(ctx, query, sp.names, sp.values); err != nil {
		return fmt.Errorf("put settings back: %w", err)
	}
	return nil
}

// settingNames returns the names in statements such as
// "set local role r; set local a.b = 'c'".
func settingNames(statements string) []string {
	var names []string
	for _, match := range regexp.MustCompile(`(?i)\bset\s+local\s+([a-z_][a-z0-9_.]*)`).FindAllStringSubmatch(statements, -1) {
		names = append(names, strings.ToLower(match[1]))
	}
	return names
}
