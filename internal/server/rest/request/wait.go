package request

import (
	"net/url"
	"time"

	"github.com/countersign-dev/countersign/envelope"
)

// DefaultWait is how long a request that waits for an action's end waits unless
// told otherwise, MaxWait the most.
const (
	DefaultWait = 30 * time.Second
	MaxWait     = 5 * time.Minute
)

// WaitOf returns how long the caller wants to wait for an action's end, or
// otherwise if the query does not say.
func WaitOf(query url.Values, otherwise time.Duration) (time.Duration, error) {
	for _, name := range []string{"wait", "timeout"} {
		text := query.Get(name)
		if text == "" {
			continue
		}
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, Invalid("/query/"+name, envelope.RuleFormat, "must be a duration such as 30s")
		}
		if d > MaxWait {
			return 0, Invalid("/query/"+name, "maximum", "must be at most 5m")
		}
		return d, nil
	}
	return otherwise, nil
}
