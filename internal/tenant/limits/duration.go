package limits

import (
	"time"

	"github.com/countersign-dev/countersign/envelope"
)

// Duration is a length of time in limits.
type Duration = envelope.Duration

const day = 24 * time.Hour

// durationOf makes a duration of seconds as they are stored.
func durationOf(seconds float64) Duration {
	return Duration(time.Duration(seconds*float64(time.Second) + 0.5).Round(time.Microsecond))
}
