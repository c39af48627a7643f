package postgres

import "time"

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
