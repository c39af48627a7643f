package request

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/internal/fault"
)

// SetRateLimit sets the headers RateLimit-Policy, with the limits, and
// RateLimit, with the remaining quota, as in
// draft-ietf-httpapi-ratelimit-headers. Without quotas it sets none.
func SetRateLimit(h http.Header, quotas ...fault.Quota) {
	if len(quotas) == 0 {
		return
	}
	policies, limits := make([]string, len(quotas)), make([]string, len(quotas))
	for i, q := range quotas {
		policies[i] = fmt.Sprintf("%q;q=%d", q.Name, q.Max)
		if q.Window > 0 {
			policies[i] += fmt.Sprintf(";w=%d", q.Window/time.Second)
		}
		limits[i] = fmt.Sprintf("%q;r=%d", q.Name, q.Left)
		if q.Reset > 0 {
			limits[i] += fmt.Sprintf(";t=%d", fault.WholeSeconds(q.Reset))
		}
	}
	h.Set("RateLimit-Policy", strings.Join(policies, ", "))
	h.Set("RateLimit", strings.Join(limits, ", "))
}
