package postgres

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
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

// OrZero returns the value of a nullable column, or the zero value for NULL.
func OrZero[T any](column *T) T {
	if column == nil {
		var zero T
		return zero
	}
	return *column
}

// OrNull returns the value for a nullable column: NULL for the zero value.
func OrNull[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

// NotNull returns bytes for an element of an array, whose queries take none for
// NULL. An array with NULL elements would need a slice of pointers.
func NotNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// Texts converts texts to another type, such as those of a column. It returns an
// empty slice, and not nil, for none.
func Texts[To, From ~string](all []From) []To {
	texts := make([]To, len(all))
	for i, text := range all {
		texts[i] = To(text)
	}
	return texts
}

// UTC returns a nullable time in UTC.
func UTC(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	return new(t.UTC())
}

// Text returns a text without the zero bytes and the invalid UTF-8 that PostgreSQL
// does not store.
func Text(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, ""), "\x00", "")
}

// Clip returns Text of at most a number of bytes.
func Clip(text string, most int) string { return Text(text[:min(len(text), most)]) }

// JSON encodes a value for jsonb, which has no zero characters.
func JSON(value any) ([]byte, error) {
	raw, err := json.Marshal(value)
	out := raw[:0]
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			continue
		}
		if bytes.HasPrefix(raw[i:], []byte(`\u0000`)) {
			i += 5
			continue
		}
		out = append(out, raw[i], raw[i+1]) // a backslash is never the last character
		i++
	}
	return out, err
}

// Seconds returns a number of seconds, as a query measures time, as a duration.
func Seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// UUIDs returns ids for a query that takes an array.
func UUIDs[T ~[16]byte](ids []T) []uuid.UUID {
	all := make([]uuid.UUID, len(ids))
	for i, id := range ids {
		all[i] = uuid.UUID(id)
	}
	return all
}
