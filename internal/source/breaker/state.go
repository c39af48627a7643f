package breaker

import "time"

// Breaker is how the fleet stands to a source that failed, or asked for time.
type State struct {
	Source string `json:"source"`
	// State is closed, open or half-open.
	State string `json:"state"`
	// Cause is why it opened, in one word.
	Cause string    `json:"cause"`
	Since time.Time `json:"since"`
	// OpenUntil is when one call is let through to try, while it is open.
	OpenUntil time.Time `json:"open_until"`
	// Trips counts its openings without a closing between.
	Trips int `json:"trips"`
	// Worker is who saw it last.
	Worker string `json:"worker"`
}
