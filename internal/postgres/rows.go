package postgres

import (
	"errors"

	"github.com/jackc/pgx/v5"
)

// Map converts the rows of a query with of, unless the query failed with err.
func Map[R, T any](rows []R, err error, of func(R) T) ([]T, error) {
	return TryMap(rows, err, func(r R) (T, error) { return of(r), nil })
}

// TryMap is Map for a conversion that can fail.
func TryMap[R, T any](rows []R, err error, of func(R) (T, error)) ([]T, error) {
	if err != nil {
		return nil, err
	}
	all := make([]T, len(rows))
	for i, r := range rows {
		if all[i], err = of(r); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Affected returns the error of a statement that must change a row: its own, or
// none if it changed no row.
func Affected(rows int64, err, none error) error {
	if err == nil && rows == 0 {
		return none
	}
	return err
}

// Found returns the error of a query that must find a row: none in the place of
// pgx.ErrNoRows.
func Found(err, none error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return none
	}
	return err
}
