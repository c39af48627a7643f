package imap

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

// Pace limits commands to a share of what a provider allows, and holds all of
// them back after the provider said that it was too much. It is safe for
// concurrent use.
type Pace struct {
	limiter *rate.Limiter

	mu     sync.Mutex
	closed time.Time
}

// pause is how long a limit without a time holds commands back.
const pause = time.Minute

// NewPace returns a pace of so many commands a second, after a burst. A
// configuration gives a share of the provider's limit, such as 60 %.
func NewPace(perSecond float64, burst int) *Pace {
	return &Pace{limiter: rate.NewLimiter(rate.Limit(perSecond), max(burst, 1))}
}

// wait waits for the next command's turn. It does not wait for the end of a
// pause, but says when that is.
func (p *Pace) wait(ctx context.Context) error {
	p.mu.Lock()
	left := time.Until(p.closed)
	p.mu.Unlock()
	if left > 0 {
		return &mailbox.BusyError{Reason: "the server's limit was reached", After: left}
	}
	return p.limiter.Wait(ctx)
}

// close holds commands back for a while, with a quarter of it more or less, and
// returns for how long.
func (p *Pace) close(after time.Duration) time.Duration {
	after = time.Duration(float64(after) * (0.75 + rand.Float64()/2))
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := time.Now().Add(after); until.After(p.closed) {
		p.closed = until
	}
	return after
}
