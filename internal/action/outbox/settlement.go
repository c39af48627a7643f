package outbox

import (
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/redact"
	"github.com/countersign-dev/countersign/internal/source"
)

// Retry says how long to wait between attempts: exponentially longer from
// Base to Cap.
type Retry struct {
	Base, Cap time.Duration
	// Jitter is by which part of itself each wait is spread to either side,
	// from 0 to 1.
	Jitter float64
}

// DefaultRetry waits about 1, 2, 4 … seconds, at most 5 minutes.
func DefaultRetry() Retry { return Retry{Base: time.Second, Cap: 5 * time.Minute, Jitter: 0.5} }

// wait returns how long to wait after an attempt, counted from 1. What the
// provider asked for is a floor that jitter never goes below.
func (r Retry) wait(attempt int, asked time.Duration) time.Duration {
	b := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(r.Base),
		backoff.WithMaxInterval(r.Cap),
		backoff.WithMultiplier(2),
		backoff.WithRandomizationFactor(r.Jitter),
		backoff.WithMaxElapsedTime(0),
	)
	d := b.NextBackOff()
	for range min(attempt, 30) - 1 {
		d = b.NextBackOff()
	}
	if asked > 0 {
		// Spread upwards only, so that a thousand envelopes which were told
		// the same second do not all come back in it.
		return asked + min(d, asked)/4
	}
	return d
}

// Dispose turns the outcome of a call into what becomes of the envelope. It
// is the only place that decides it.
func SettlementOf(it Item, out source.Outcome, took time.Duration, retry Retry) Settlement {
	s := Settlement{
		Lease:      it.Lease,
		Attempt:    it.Attempt + 1,
		Code:       out.Code,
		Message:    redact.Text(out.Message),
		Result:     redact.JSONTruncated(out.Result, redact.DefaultLimit),
		ProviderID: out.ProviderID,
		Took:       took,
	}
	if out.RetryAfter > 0 && !out.Deferred {
		// Whatever became of this one, the others are asked for patience.
		s.CloseBucketFor, s.CloseBucket = out.RetryAfter, it.Bucket
	}
	switch out.Kind {
	case source.KindDone:
		s.Status = envelope.StatusSent
	case source.KindConflict:
		s.Status = envelope.StatusConflict
	case source.KindRefused:
		s.fail(it.mayHaveHappened(), Refused)
	case source.KindUnknown:
		s.Status, s.DeadLetter = envelope.StatusUnknown, Unknown
	case source.KindRetry:
		it.Unsure = it.Unsure || out.Unsure
		s.Unsure = it.Unsure
		switch {
		case out.Deferred:
			s.Status, s.Deferred, s.Attempt = envelope.StatusPending, true, it.Attempt
			s.Delay = retry.wait(1, out.RetryAfter)
			s.WaitsFor, s.UnusedPermit = out.Code, it.Permit
		case s.Attempt >= it.MaxAttempts:
			s.fail(it.mayHaveHappened(), Exhausted)
		default:
			s.Status, s.WaitsFor = envelope.StatusPending, WaitsRetry
			s.Delay = retry.wait(s.Attempt, out.RetryAfter)
		}
	}
	return s
}

// doubtful says that the effect may be there from an earlier attempt, so that
// to end the envelope as not executed would be a guess. Class once has its own
// mark for that, and reading has no effect.
func (it *Item) mayHaveHappened() bool {
	switch it.Effect {
	case envelope.EffectIdempotent, envelope.EffectKeyed:
		return it.Unsure || it.LeasesLost > 0
	case envelope.EffectRead, envelope.EffectOnce:
	}
	return false
}

// give gives an envelope up: as failed or, in doubt, as unknown.
func (s *Settlement) fail(doubt bool, why Reason) {
	if s.Status, s.DeadLetter = envelope.StatusFailed, why; doubt {
		s.Status, s.DeadLetter = envelope.StatusUnknown, Unknown
	}
}

// GiveBack puts an envelope back whose call was not started; it is due at
// once and no attempt is counted. Only the holder of the lease knows that
// nothing was sent, so the mark of its start goes too.
func Release(it Item) Settlement {
	return Defer(it, WaitsStart, 0)
}

// Wait puts an envelope back that may not run now; no attempt is counted, and
// its token goes back. It is not for one of class once that was marked.
func Defer(it Item, why string, delay time.Duration) Settlement {
	return Settlement{
		Lease: it.Lease, Status: envelope.StatusPending, Attempt: it.Attempt, Deferred: true, Unsure: it.Unsure,
		Delay: delay, WaitsFor: why, UnusedPermit: it.Permit,
	}
}

// Skip ends an envelope without a call; or, if an earlier attempt may have
// had its effect, as unknown.
func Skip(it Item, code, message string) Settlement {
	s := Settlement{Lease: it.Lease, Status: envelope.StatusSkipped, Attempt: it.Attempt, Code: code, Message: message, UnusedPermit: it.Permit}
	if it.mayHaveHappened() {
		s.Status, s.DeadLetter = envelope.StatusUnknown, Unknown
		s.Message += "; an earlier attempt may have had its effect"
	}
	return s
}

// Lose ends an envelope of class once whose worker vanished after it had
// marked it as going out.
func WorkerLost(it Item) Settlement {
	return Settlement{
		Lease: it.Lease, Status: envelope.StatusUnknown, Attempt: it.Attempt + 1, DeadLetter: Unknown,
		Code: "worker_lost", Message: "the worker vanished after the call was started", UnusedPermit: it.Permit,
	}
}

// Poison ends an envelope on which too many leases ran out.
func TooManyLeasesLost(it Item) Settlement {
	s := Settlement{Lease: it.Lease, Attempt: it.Attempt, Code: "leases_lost", Message: "its workers vanished too many times", UnusedPermit: it.Permit}
	s.fail(it.mayHaveHappened(), Exhausted)
	return s
}
