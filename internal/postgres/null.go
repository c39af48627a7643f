package postgres

import (
	"time"

	"github.com/google/uuid"
)

// OrZero returns what a nullable column holds, or the zero value for NULL.
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

// UTC returns a nullable time in UTC.
func UTC(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	return new(t.UTC())
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

// IDs returns the ids that a query returned.
func IDs[T ~[16]byte](rows []uuid.UUID) []T {
	all := make([]T, len(rows))
	for i, id := range rows {
		all[i] = T(id)
	}
	return all
}
