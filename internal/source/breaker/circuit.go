// Package breaker owns what the fleet agrees on about sources that fail. Each
// process has its own circuit breaker in front of a source; the first one that
// opens is published here, so that the others leave the source alone too, and
// of all of them one makes the call that shows whether it is well again. It
// refuses to call a source.
package breaker

import (
	"time"

	"github.com/countersign-dev/countersign/envelope"
)

// Source names a source of a tenant.
type Source struct {
	Tenant envelope.TenantID
	ID     string
}

// Phase is where a breaker stands.
type Phase string

// The phases.
const (
	// Closed: the source is in use.
	Closed Phase = "closed"
	// Open: it is left alone.
	Open Phase = "open"
	// HalfOpen: one call is under way that shows whether it is well again.
	HalfOpen Phase = "half-open"
)

// Cause is why a breaker opened.
type Cause string

// The causes.
const (
	// Failures: calls failed in a row.
	Failures Cause = "failures"
	// RetryAfter: the source asked to be left alone for a time.
	RetryAfter Cause = "retry_after"
)

// Standing is a breaker that is not closed.
type Standing struct {
	Source
	Phase Phase
	Cause Cause
	// Since is when it left the phase closed.
	Since time.Time
	// Until is, while it is open, when a probe may be made; while half-open,
	// when the one who makes it counts as gone.
	Until time.Time
	// Trips counts the openings since it was closed.
	Trips int
}
