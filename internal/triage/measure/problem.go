package measure

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/countersign-dev/countersign/internal/postgres"
)

// Problem returns the text of an error that is stored, logged and shown, or "".
// For a database error it is the SQLSTATE, since its text may contain values.
func Problem(err error) string {
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
	text := []rune(postgres.Text(err.Error()))
	return string(text[:min(len(text), most)])
}

// EndSpan ends a span with the Problem of an error.
func EndSpan(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, Problem(err))
	}
	span.End()
}
