package postgres_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

// TestArraysAreReadAsTheyWereWritten compares with the texts that PostgreSQL makes of the
// arrays, since pgx reads them by its own codec.
func TestArraysAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	db := dbtest.DB(t)
	long := strings.Repeat("x", 70_000)

	written(t, db, "text", []string{"", "a", `"{},\ NULL`, "é", long})
	written(t, db, "uuid", []uuid.UUID{uuid.Nil, uuid.Max, uuid.New()})
	written(t, db, "integer", []int32{0, -1, math.MaxInt32, math.MinInt32})
	written(t, db, "bigint", []int64{0, -1, math.MaxInt64, math.MinInt64})
	written(t, db, "float8", []float64{0, -1.5, math.MaxFloat64, math.SmallestNonzeroFloat64})
	written(t, db, "bytea", [][]byte{{}, nil, {0, 255}, []byte(long)})
	written(t, db, "jsonb", [][]byte{[]byte(`{"a": 1}`), nil, []byte(`null`)})
	written(t, db, "json", [][]byte{nil, []byte(`{"a": 1}`), []byte(`[]`)})
	written(t, db, "uuid", []string{uuid.NewString()})
	written(t, db, "text", []*string{nil, &long})
}

// written checks that a slice, an empty one and nil are arrays of a type with the same elements.
func written[T any](t *testing.T, db *pgxpool.Pool, of string, want []T) {
	t.Helper()
	var got []T
	var length, empty, bounds int
	var null bool
	query := fmt.Sprintf("SELECT $1::%[1]s[], cardinality($1::%[1]s[]), cardinality($2::%[1]s[]), array_lower($1::%[1]s[], 1), $3::%[1]s[] IS NULL", of)
	err := db.QueryRow(t.Context(), query, want, []T{}, []T(nil)).Scan(&got, &length, &empty, &bounds, &null)
	if err != nil || length != len(want) || empty != 0 || bounds != 1 || !null {
		t.Fatalf("%s[%d] has %d elements from %d on, an empty one %d, nil is NULL: %t, %v", of, len(want), length, bounds, empty, null, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s[] (-want +got):\n%s", of, diff)
	}
}
