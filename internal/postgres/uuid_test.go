package postgres_test

import (
	"reflect"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

func TestIDsAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	db := dbtest.DB(t)
	for _, id := range []uuid.UUID{uuid.New(), uuid.Max, uuid.Nil} {
		returned(t, db, id)
		returned(t, db, envelope.ActionID(id))
		returned(t, db, envelope.EmployeeID(id))
		returned(t, db, envelope.TenantID(id))
	}
}

// returned checks that a value, a pointer to it and NULL survive a round trip.
func returned[T comparable](t *testing.T, db *pgxpool.Pool, want T) {
	t.Helper()
	var got T
	var pointer, null *T
	err := db.QueryRow(t.Context(), "SELECT $1::uuid, $2::uuid, $3::uuid", want, &want, null).Scan(&got, &pointer, &null)
	if err != nil || got != want || pointer == nil || *pointer != want || null != nil {
		t.Errorf("%v as %v = %v, %v and %v, %v", want, reflect.TypeFor[T](), got, pointer, null, err)
	}
}
