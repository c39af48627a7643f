package catalog

import "time"

// Retry is how the attempts of a tool are spaced: exponentially longer from
// Base to Cap, each wait spread by the part Jitter of itself to either side.
type Retry struct {
	Base, Cap time.Duration
	Jitter    float64
}

// A webhook's receiver may be away for a day, so its messages are tried for
// about two days, at growing intervals.
const webhookAttempts = 60

// extendRetries gives a tool that delivers webhooks more attempts than other
// tools, as far as no operator bounded or spaced them.
func (t *Tool) extendRetries(bounded bool) {
	if !bounded {
		t.MaxAttempts = webhookAttempts
	}
	if t.Retry == (Retry{}) {
		t.Retry = Retry{Base: 5 * time.Second, Cap: time.Hour, Jitter: 0.2}
	}
}
