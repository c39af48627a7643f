package wire

import (
	"time"

	"github.com/google/uuid"
)

// Worker is a worker process of the fleet.
type Worker struct {
	ID uuid.UUID `json:"worker_id"`
	// Name is its name in the execution log.
	Name    string    `json:"name"`
	Host    string    `json:"host"`
	Version string    `json:"version"`
	Started time.Time `json:"started_at"`
	Seen    time.Time `json:"seen_at"`
	// Concurrency is the maximum number of calls; 0 for a worker of an earlier
	// version. InFlight is the number of actions that it had when it was seen.
	Concurrency int `json:"concurrency"`
	InFlight    int `json:"in_flight"`
	// Draining reports whether it stops: it claims nothing, and its calls end.
	Draining bool `json:"draining"`
	// Refuses is the reason why it claims nothing; empty if it claims.
	Refuses string `json:"refuses"`
}

// Activity is the backlog and the throughput of a tenant over time, in steps, the
// oldest first. Steps in which no worker ran are left out.
type Activity struct {
	Since time.Time       `json:"since"`
	Until time.Time       `json:"until"`
	Step  ActivityStep    `json:"step"`
	Items []ActivityPoint `json:"items"`
}

// ActivityStep is the length of a step.
type ActivityStep string

// The lengths of a step.
const (
	StepMinute        ActivityStep = "1m"
	StepFiveMinutes   ActivityStep = "5m"
	StepQuarterOfHour ActivityStep = "15m"
	StepHour          ActivityStep = "1h"
)

// Duration returns the length of a step; 0 if it is unknown.
func (s ActivityStep) Duration() time.Duration {
	switch s {
	case StepMinute:
		return time.Minute
	case StepFiveMinutes:
		return 5 * time.Minute
	case StepQuarterOfHour:
		return 15 * time.Minute
	case StepHour:
		return time.Hour
	}
	return 0
}

// ActivityPoint is a step. Except for Workers, its numbers are the highest of the
// samples in it.
type ActivityPoint struct {
	// At is the begin of the step.
	At time.Time `json:"at"`
	// Workers is the fewest workers of the fleet in the step.
	Workers   int64 `json:"workers"`
	Due       int64 `json:"due"`
	Scheduled int64 `json:"scheduled"`
	InFlight  int64 `json:"in_flight"`
	// Undecided counts the actions that wait for people, up to 5,000.
	Undecided int64 `json:"undecided"`
	// OldestDue is in seconds.
	OldestDue float64 `json:"oldest_due_seconds"`
	// Estimated reports whether the numbers of the backlog are estimates.
	Estimated bool `json:"estimated"`
	// Ended counts the actions that ended since the sample before, by status.
	Ended []ActivityEnded `json:"ended"`
}

// ActivityEnded counts the actions that ended with a status.
type ActivityEnded struct {
	Status  string `json:"status"`
	Actions int64  `json:"actions"`
}
