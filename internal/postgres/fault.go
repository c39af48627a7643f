package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/countersign-dev/countersign/internal/fault"
)

// reconnectAfter is the Retry-After for a database that does not answer.
const reconnectAfter = 2 * time.Second

// Fault returns the fault for an error of the database, and any other error
// unchanged. For violated constraints see Violations.
func Fault(err error) error {
	if err == nil || fault.KindOf(err) != "" {
		return err
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return fault.Wrap(err, fault.NotFound, "not found")
	}
	if unreachable(err) {
		return &fault.Error{Kind: fault.Busy, Text: "the database does not answer; try again", Cause: err, After: reconnectAfter}
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch pg.Code {
		case "55P03", "57014", "53300": // lock not available, statement timeout, too many connections
			return fault.Wrap(err, fault.Busy, "the database is busy; try again")
		}
	}
	return err
}

// unreachable reports whether err means that the database is down, restarting,
// or cut off. A transaction that ended with such an error may have been
// committed.
func unreachable(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		// Connection exceptions, shut down by an administrator or after a crash,
		// and starting up.
		return strings.HasPrefix(pg.Code, "08") || slices.Contains([]string{"57P01", "57P02", "57P03"}, pg.Code)
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	_, network := errors.AsType[*net.OpError](err)
	return network || errors.Is(err, io.ErrUnexpectedEOF) || pgconn.SafeToRetry(err)
}

// Violations maps names of constraints to the faults of their violations. The
// package that owns a table has one for its constraints.
type Violations map[string]error

// Fault returns the fault for the constraint that err reports as violated, with
// err as its cause, and any other error unchanged.
func (v Violations) Fault(err error) error {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return err
	}
	known, ok := errors.AsType[*fault.Error](v[pg.ConstraintName])
	if !ok {
		return err
	}
	return fault.Wrap(err, known.Kind, "%s", known.Text)
}

// Duplicate reports whether err is the violation of a unique constraint. The
// transaction in which it happened is aborted.
func Duplicate(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "23505"
}
