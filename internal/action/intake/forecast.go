package intake

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/action/decision"
	"github.com/countersign-dev/countersign/internal/action/preflight"
	"github.com/countersign-dev/countersign/internal/source/breaker"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

// Due is an action that may run, for a Forecast.
type Due struct {
	*decision.Action
	// Bucket is the name of its rate bucket.
	Bucket string
	// Urgent reports whether it asks to be sent during quiet hours.
	Urgent                              bool
	NotBefore, MustRunBefore, CreatedAt time.Time
	// From is the due time on the schedule; zero if it is not scheduled.
	From time.Time
}

// Forecast is the answer of the checks before a call about an action that may run.
type Forecast struct {
	// Gates are the answers of the checks, each by itself.
	Gates  []wire.GateResult
	Bucket wire.BucketForecast
	// Skipped reports that the action will end without a call, and Stopped that the
	// time of its call is unknown; otherwise GoesOutAt is that time.
	Skipped, Stopped bool
	GoesOutAt        time.Time
}

// ForecastOf makes each of the checks before a call, as of the due time of the
// action. It changes nothing.
func ForecastOf(ctx context.Context, tx pgx.Tx, d Due, now time.Time) (Forecast, error) {
	l := forecastFacts{due: &d, start: later(later(now, d.NotBefore), d.From)}
	if err := l.read(ctx, tx, now); err != nil {
		return Forecast{}, err
	}
	return l.forecast(now), nil
}

// forecastFacts are the input of the checks.
type forecastFacts struct {
	due *Due
	// start is the due time of the action.
	start time.Time

	// gates are the answers of the tenant's limits at that time.
	gates  preflight.Facts
	bucket limits.BucketState
	// breakerUntil is the time at which its source is used again; zero if the
	// breaker is closed.
	breakerUntil time.Time
	// loginLost reports whether its source waits for a login.
	loginLost bool
}

// read reads the facts.
func (l *forecastFacts) read(ctx context.Context, tx pgx.Tx, now time.Time) error {
	d := l.due
	d.Now = now
	if err := decision.FindRecipients(ctx, tx, []*decision.Action{d.Action}); err != nil {
		return err
	}
	l.gates = preflight.FactsOf(d.Settings.Limits, preflight.Action{
		Tool: d.Tool.Key, Employee: d.Employee, Automations: []string{d.Automation}, Bucket: d.Bucket, Urgent: d.Urgent, MustRunBefore: d.MustRunBefore, CreatedAt: d.CreatedAt,
		Contacts: d.Contacts, Listed: d.Match,
	}, l.start)
	if src, ok := d.Settings.Source(d.Tool.Key.Source); ok {
		l.loginLost = src.WaitsForLogin(d.Tool.Key.Action)
	}
	tenant := d.Settings.Tenant
	buckets, err := limits.BucketStates(ctx, tx, tenant, d.Bucket)
	if err != nil {
		return fmt.Errorf("bucket: %w", err)
	}
	if len(buckets) == 1 {
		l.bucket = buckets[0]
	}
	breakers, err := breaker.NotClosed(ctx, tx, tenant)
	if err != nil {
		return fmt.Errorf("breakers: %w", err)
	}
	for _, s := range breakers {
		if s.ID == d.Tool.Key.Source && s.State == breaker.StateOpen {
			l.breakerUntil = s.Until
		}
	}
	return nil
}

// forecast makes each check by itself, as of when the action is due, and combines
// their answers.
func (l *forecastFacts) forecast(now time.Time) Forecast {
	d := l.due
	f := Forecast{GoesOutAt: l.start, Bucket: wire.BucketForecast{Name: d.Bucket, Permits: l.bucket.Permits, OpensAt: l.bucket.OpensAt, Due: l.bucket.Due}}
	say := func(name string, a preflight.Answer) {
		w := wire.GateResult{Gate: name, Result: string(a.Result), Code: a.Code, Message: a.Message}
		switch {
		case a.Result == preflight.Skip:
			f.Skipped = true
		case a.Result == preflight.Wait && a.Until.IsZero():
			f.Stopped = true
		case a.Result == preflight.Wait:
			w.Until, f.GoesOutAt = new(a.Until.UTC()), later(f.GoesOutAt, a.Until)
		}
		f.Gates = append(f.Gates, w)
	}
	say("do_not_contact", preflight.Check(preflight.Facts{Now: l.start, DoNotContact: l.gates.DoNotContact}))
	say("pause", l.paused())
	say("not_before", waitUntil(now, d.NotBefore, "not_before", "it asks not to be sent before then"))
	say("quiet_hours", l.quiet())
	say("breaker", preflight.Check(preflight.Facts{Now: l.start, LoginLost: l.loginLost, BreakerUntil: l.breakerUntil}))
	say("bucket", l.paced())
	// The deadline is checked last, against the time that the other checks leave.
	say("deadline", preflight.Check(preflight.Facts{Now: f.GoesOutAt, MustRunBefore: d.MustRunBefore}))
	return f
}

func (l *forecastFacts) paused() preflight.Answer {
	if l.gates.Pause != (preflight.Pause{}) {
		return preflight.Check(preflight.Facts{Now: l.start, Pause: l.gates.Pause})
	}
	if l.bucket.Paused {
		return preflight.Answer{Result: preflight.Wait, Code: preflight.CodePaused, Message: "an operator paused its bucket, its tenant or everything"}
	}
	return preflight.Answer{Result: preflight.Pass}
}

func (l *forecastFacts) quiet() preflight.Answer {
	f := l.gates
	f.DoNotContact, f.Pause = contact.Match{}, preflight.Pause{}
	for i := range f.Quiet {
		f.Quiet[i].Spread = 0 // it depends on the action's id, which a proposal has not yet
	}
	if !f.MustRunBefore.After(l.start) {
		f.MustRunBefore = time.Time{} // checked by itself
	}
	return preflight.Check(f)
}

func (l *forecastFacts) paced() preflight.Answer {
	if l.bucket.OpensAt == nil {
		return preflight.Answer{Result: preflight.Pass}
	}
	return waitUntil(l.start, *l.bucket.OpensAt, "bucket", "the next may go then")
}

func waitUntil(now, until time.Time, code, message string) preflight.Answer {
	if !until.After(now) {
		return preflight.Answer{Result: preflight.Pass}
	}
	return preflight.Answer{Result: preflight.Wait, Code: code, Message: message, Until: until}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
