package postgres

import "time"

// pollBeat is the interval at whose multiples pauses between polls end.
const pollBeat = time.Second

// started is about when the process started.
var started = time.Now()

// PollPause returns the longest pause before a poll of the database, of at most longest,
// that ends a whole number of seconds after the start of the process; longest itself if
// that is less than a second. Loops that pause so wake an idle process together: a wake
// costs it more than a query that finds nothing. Processes start at different times, so
// that those of a fleet do not poll at the same time.
func PollPause(longest time.Duration) time.Duration { return pollPause(time.Since(started), longest) }

func pollPause(age, longest time.Duration) time.Duration {
	if longest < pollBeat {
		return longest
	}
	return (age + longest).Truncate(pollBeat) - age
}
