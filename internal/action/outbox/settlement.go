package outbox

import (
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/redact"
	"github.com/countersign-dev/countersign/internal/source"
)

// Retry is the backoff between attempts: exponential, from Base to Cap.
type Retry struct {
	Base, Cap time.Duration
	// Jitter is the fraction of a wait, from 0 to 1, by which it is randomly
	// made shorter or longer.
	Jitter float64
}

// DefaultRetry waits about 1, 2, 4 … seconds, at most 5 minutes.
func DefaultRetry() Retry { return Retry{Base: time.Second, Cap: 5 * time.Minute, Jitter: 0.5} }

// Wait returns the delay after an attempt, counted from 1. asked, the delay
// that the provider asked for, is a lower bound, jitter included.
func (r Retry) Wait(attempt int, asked time.Duration) time.Duration {
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
		// Jitter only lengthens the delay, so that a thousand actions with the same
		// Retry-After are not all due in the same second.
		return asked + min(d, asked)/4
	}
	return d
}

// settle returns the settlement of an item for an event of the state table.
// Every settlement is made here, so that only the table's statuses are set. An
// event that is not in the table ends as unknown.
func (it *Item) settle(from envelope.Status, ev envelope.Event) Settlement {
	to, err := envelope.Next(from, ev)
	if err != nil {
		to = envelope.StatusUnknown
	}
	s := Settlement{Lease: it.Lease, Status: to, Attempt: it.Attempt}
	if to == envelope.StatusUnknown {
		s.DeadLetter = Unknown
	}
	return s
}

// giveUp returns the settlement of an item whose call failed permanently:
// failed or, if an earlier attempt may have had its effect, unknown.
func (it *Item) giveUp(from envelope.Status, why Reason) Settlement {
	if it.MayHaveHappened() {
		return it.settle(from, envelope.EventLose)
	}
	s := it.settle(from, envelope.EventFail)
	s.DeadLetter = why
	return s
}

// status returns the status of an item's row as this worker claimed it.
func (it *Item) status() envelope.Status {
	if it.Sending {
		return envelope.StatusSending
	}
	return envelope.StatusPending
}

// calledStatus returns the status of an item's row once its call was started:
// calls of class once are marked before.
func (it *Item) calledStatus() envelope.Status {
	if it.Effect == envelope.EffectOnce {
		return envelope.StatusSending
	}
	return it.status()
}

// SettlementOf returns the settlement of an item after a call with an outcome,
// which took so long.
func SettlementOf(it Item, out source.Outcome, took time.Duration, retry Retry) Settlement {
	if out.Kind == source.KindRetry {
		it.Unsure = it.Unsure || out.Unsure
	}
	s := it.afterCall(out, retry)
	s.Code, s.Message, s.ProviderID, s.Took = out.Code, redact.Text(out.Message), out.ProviderID, took
	s.Result = redact.JSONTruncated(out.Result, redact.DefaultLimit)
	if out.RetryAfter > 0 && !out.Deferred {
		// With any outcome of this call, the provider may have asked all callers to wait.
		s.CloseBucketFor, s.CloseBucket = out.RetryAfter, it.Bucket
	}
	return s
}

// afterCall returns the settlement of an item by the kind of an outcome.
func (it *Item) afterCall(out source.Outcome, retry Retry) (s Settlement) {
	from, attempt := it.calledStatus(), it.Attempt+1
	switch out.Kind {
	case source.KindDone:
		s = it.settle(from, envelope.EventSucceed)
	case source.KindConflict:
		s = it.settle(from, envelope.EventConflict)
	case source.KindRefused:
		s = it.giveUp(from, Refused)
	case source.KindUnknown:
		s = it.settle(from, envelope.EventLose)
	case source.KindRetry:
		switch {
		case out.Deferred:
			s = it.settle(from, envelope.EventDefer)
			s.Deferred, s.Delay, s.WaitsFor, s.UnusedPermit = true, retry.Wait(1, out.RetryAfter), out.Code, it.Permit
			attempt = it.Attempt
		case attempt >= it.MaxAttempts:
			s = it.giveUp(from, Exhausted)
		default:
			s = it.settle(from, envelope.EventRetry)
			s.WaitsFor, s.Delay = WaitsRetry, retry.Wait(attempt, out.RetryAfter)
		}
		s.Unsure = it.Unsure
	}
	s.Attempt = attempt
	return s
}

// MayHaveHappened reports whether an earlier attempt may have had its effect,
// so that failed or skipped could be wrong. Calls of class once are marked
// before they start, and reads have no effect.
func (it *Item) MayHaveHappened() bool {
	switch it.Effect {
	case envelope.EffectIdempotent, envelope.EffectKeyed:
		return it.Unsure || it.LeasesLost > 0
	case envelope.EffectRead, envelope.EffectOnce:
	}
	return false
}

// Release returns an item whose call was not started to the schedule. The item
// is due immediately, and no attempt is counted. The start mark is removed as
// well: the holder of the lease is certain that nothing was sent.
func Release(it Item) Settlement {
	s := it.settle(it.status(), envelope.EventRelease)
	s.Deferred, s.Unsure, s.WaitsFor, s.UnusedPermit = true, it.Unsure, WaitsStart, it.Permit
	return s
}

// Defer returns an item to the schedule that may not run now. No attempt is
// counted, and the item's permit is returned. Items of class once that are
// marked as started must not be deferred.
func Defer(it Item, waitsFor string, delay time.Duration) Settlement {
	s := it.settle(it.status(), envelope.EventDefer)
	s.Deferred, s.Unsure, s.Delay, s.WaitsFor, s.UnusedPermit = true, it.Unsure, delay, waitsFor, it.Permit
	return s
}

// Skip ends an item without a call; if an earlier attempt may have had its
// effect, as unknown.
func Skip(it Item, code, message string) Settlement {
	event := envelope.EventSkip
	if it.MayHaveHappened() {
		event, message = envelope.EventLose, message+"; an earlier attempt may have had its effect"
	}
	s := it.settle(it.status(), event)
	s.Code, s.Message, s.UnusedPermit = code, message, it.Permit
	return s
}

// WorkerLost ends an item of class once whose worker was lost after it had
// marked the call as started.
func WorkerLost(it Item) Settlement {
	s := it.settle(envelope.StatusSending, envelope.EventLose)
	s.Attempt++
	s.Code, s.Message, s.UnusedPermit = "worker_lost", "the worker was lost after the call was started", it.Permit
	return s
}

// TooManyLeasesLost ends an item of which more than MaxLeasesLost leases
// expired.
func TooManyLeasesLost(it Item) Settlement {
	s := it.giveUp(it.status(), Exhausted)
	s.Code, s.Message, s.UnusedPermit = "leases_lost", "too many workers were lost while they held it", it.Permit
	return s
}
