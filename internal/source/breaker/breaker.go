// Package breaker owns the state of circuit breakers that all workers share.
// Each process has its own circuit breaker in front of a source. The first of
// them that opens is stored here, so that the other processes hold calls back
// too, and only one process makes the probe call. It does not call sources.
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

// State is the state of a circuit breaker.
type State string

// The states.
const (
	// StateClosed lets calls through.
	StateClosed State = "closed"
	// StateOpen holds calls back.
	StateOpen State = "open"
	// StateHalfOpen lets one probe call through.
	StateHalfOpen State = "half-open"
)

// Cause is why a breaker opened.
type Cause string

// The causes.
const (
	// CauseFailures means that calls failed in a row.
	CauseFailures Cause = "failures"
	// CauseRetryAfter means that the source asked for a pause.
	CauseRetryAfter Cause = "retry_after"
)

// OpenBreaker is a breaker that is open or half-open.
type OpenBreaker struct {
	Source
	State State
	Cause Cause
	// Since is when the breaker left the state closed.
	Since time.Time
	// Until is, while the breaker is open, when a probe may be made; while it
	// is half-open, when the worker that probes is considered lost.
	Until time.Time
	// Openings counts how often the breaker opened since it was closed.
	Openings int
}
