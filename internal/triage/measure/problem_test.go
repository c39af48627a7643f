package measure_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/countersign-dev/countersign/internal/triage/measure"
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
		if got := measure.Problem(test.err); got != test.want {
			t.Errorf("Problem(%v) = %q, want %q", test.err, got, test.want)
		}
	}
}
