package engine

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/countersign-dev/countersign/internal/triage/account"
)

// problem returns what is stored, logged and shown of an error; empty for none.
// Of an error of the database that is its code: its text may hold values.
func problem(err error) string {
	const most = 300
	if err == nil {
		return ""
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		text := "the database refused a statement: SQLSTATE " + pg.Code
		if pg.ConstraintName != "" {
			text += ", constraint " + pg.ConstraintName
		}
		return text
	}
	if errors.Is(err, context.Canceled) {
		return "interrupted"
	}
	text := []rune(plainText(err.Error()))
	return string(text[:min(len(text), most)])
}

// readError says which account was not read, and why.
type readError struct {
	account string
	err     error
}

func accountError(a account.Account, err error) error {
	if err == nil {
		return nil
	}
	return &readError{a.Name, err}
}

// Error implements error.
func (e *readError) Error() string { return "account " + e.account + ": " + problem(e.err) }

// Unwrap returns the cause.
func (e *readError) Unwrap() error { return e.err }

func endSpan(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, problem(err))
	}
	span.End()
}
