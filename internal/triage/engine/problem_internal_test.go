package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestProblem(t *testing.T) {
	t.Parallel()
	refused := &pgconn.PgError{Code: "23514", Message: "a secret of the mail", Detail: "a secret", ConstraintName: "triage_messages_identity_check"}
	for _, test := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{fmt.Errorf("commit: %w", refused), "the database refused a statement: SQLSTATE 23514, constraint triage_messages_identity_check"},
		{fmt.Errorf("read: %w", context.Canceled), "interrupted"},
		{fmt.Errorf("a\x00\xffb"), "ab"},
		{fmt.Errorf("%s", strings.Repeat("ü", 400)), strings.Repeat("ü", 300)},
	} {
		if got := problem(test.err); got != test.want {
			t.Errorf("problem(%v) = %q, want %q", test.err, got, test.want)
		}
	}
}
