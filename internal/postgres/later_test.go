package postgres_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/countersign-dev/countersign/internal/postgres"
)

// TestAQueryIsSentAlongWithTheNext sends one along with the first statement of a
// transaction, with a later one and with statements that take none along. It succeeds and
// fails, is executed after the other, and the connection is used before its rows are read.
func TestAQueryIsSentAlongWithTheNext(t *testing.T) {
	t.Parallel()
	pool, counted := onePool(t)
	if _, err := pool.Exec(t.Context(), "CREATE TEMPORARY SEQUENCE turns"); err != nil {
		t.Fatal(err)
	}
	numbers := func(ctx context.Context, tx pgx.Tx, sql string, by int) ([]int, error) {
		rows, err := tx.Query(ctx, sql, by)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		var all []int
		for rows.Next() {
			var n, at int
			if err := rows.Scan(&n, &at); err != nil {
				return nil, err
			}
			all = append(all, n, at)
		}
		return all, rows.Err()
	}
	const turn, along = "SELECT 1 / $1::int, nextval('pg_temp.turns')", "SELECT n / $1::int, nextval('pg_temp.turns') FROM generate_series(10, 30, 10) n"
	for name, c := range map[string]struct {
		before, next func(ctx context.Context, tx pgx.Tx) error
		batches      int
	}{
		"the first": {batches: 1},
		"a later one": {
			before:  func(ctx context.Context, tx pgx.Tx) error { _, err := numbers(ctx, tx, turn, 1); return err },
			batches: 2,
		},
		"none": {
			next: func(ctx context.Context, tx pgx.Tx) error { _, err := tx.Exec(ctx, "SELECT 1"); return err },
		},
	} {
		for try, by := range []int{1, 1, 1, 0, 1} {
			if _, err := pool.Exec(t.Context(), "SELECT setval('pg_temp.turns', 1, false)"); err != nil {
				t.Fatal(err)
			}
			*counted = trips{}
			var got []int
			err := postgres.InTx(t.Context(), pool, postgres.Admin(), func(tx pgx.Tx) (err error) {
				if c.before != nil {
					if err := c.before(t.Context(), tx); err != nil {
						return err
					}
				}
				later := postgres.Ahead(tx)
				if _, err := numbers(t.Context(), later, along, by); !errors.Is(err, postgres.ErrLater) {
					t.Errorf("%s: the query that is set returns %v", name, err)
				}
				if c.next != nil {
					if err := c.next(t.Context(), tx); err != nil {
						return err
					}
				}
				first, err := numbers(t.Context(), tx, turn, 1)
				if err != nil {
					return err
				}
				got, err = numbers(t.Context(), later, along, by)
				got = slices.Concat(first[1:], got)
				return err
			})
			if pg, ok := errors.AsType[*pgconn.PgError](err); by == 0 != ok || ok && pg.Code != "22012" {
				t.Fatalf("%s, by %d: %v", name, by, err)
			}
			from := 1
			if c.before != nil {
				from = 2
			}
			if want := []int{from, 10, from + 1, 20, from + 2, 30, from + 3}; by == 1 && !slices.Equal(got, want) {
				t.Errorf("%s, try %d: %v, want %v", name, try, got, want)
			}
			if sent := *counted; try == 2 && sent.batches != c.batches {
				t.Errorf("%s: sent %+v, want %d batches", name, sent, c.batches)
			}
		}
	}
}
