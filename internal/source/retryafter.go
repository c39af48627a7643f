package source

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MaxRetryAfter bounds what RetryAfter returns, so that a source cannot park
// an envelope for good.
const MaxRetryAfter = 24 * time.Hour

// RetryAfter reads the value of a Retry-After header, which is a number of
// seconds or an HTTP date. It returns 0 for one that is missing, malformed or
// in the past, and at most MaxRetryAfter.
func RetryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if seconds, err := strconv.ParseUint(value, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, MaxRetryAfter)
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), MaxRetryAfter)
}
