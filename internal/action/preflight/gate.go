// Package preflight owns the checks between an action that may run and its
// call: kill, deadline, do-not-contact, pause, quiet hours and breaker. They are
// pure: the state of the world comes in as Facts, and the Answer says what to do
// and why. The package reads no clock and no table.
package preflight

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/quiethours"
)

// Verdict is what a gate says.
type Verdict string

// The verdicts.
const (
	// Pass: nothing speaks against the call.
	Pass Verdict = "pass"
	// Skip: the call must not be made, now or later.
	Skip Verdict = "skip"
	// Wait: the call must not be made now; look again later.
	Wait Verdict = "wait"
)

// The codes of verdicts that are not Pass.
const (
	// CodeKilled: an operator used the kill switch.
	CodeKilled = "killed"
	// CodeDeadline: must_run_before has passed.
	CodeDeadline = "deadline"
	// CodeDoNotContact: a recipient is on the do-not-contact list.
	CodeDoNotContact = "do_not_contact"
	// CodePaused: an operator paused what the envelope belongs to.
	CodePaused = "paused"
	// CodeQuietHours: it is quiet, or will be until must_run_before.
	CodeQuietHours = "quiet_hours"
	// CodeBreakerOpen: the source failed too often and is left alone.
	CodeBreakerOpen = "breaker_open"
)

// Facts is what the gates look at. The zero value has nothing against the
// call. All times are by the database's clock.
type Facts struct {
	// Now is when the envelope is judged.
	Now time.Time
	// MustRunBefore is the envelope's deadline; zero if it has none.
	MustRunBefore time.Time
	// DoNotContact is the entry that a recipient matched, if any.
	DoNotContact contact.Match
	// Pause is the pause that the envelope falls under, if any.
	Pause Pause
	// Quiet has one fact for every level at which it is quiet now.
	Quiet []quiethours.Active
	// UrgentAsked says that the envelope asks to be sent during quiet hours,
	// UrgentAllowed that its employee has ScopeQuietOverride.
	UrgentAsked, UrgentAllowed bool
	// BreakerUntil is when a breaker that is open lets the next call through;
	// zero, or not after Now, if calls may be made.
	BreakerUntil time.Time
}

// Pause is an operator's stop. The zero value is none.
type Pause struct {
	// Scope is what was stopped: everything, tenant, employee, source, bucket
	// or tool.
	Scope string
	// Since is when.
	Since time.Time
	// Kill says that what was pending is to be cancelled, not kept.
	Kill bool
}

// Answer is a verdict with its reason.
type Answer struct {
	Verdict Verdict
	// Code is a short stable word, Message a line for people that never
	// repeats an argument or a recipient; both empty for Pass.
	Code, Message string
	// Until is when a Wait is to be looked at again; zero if only an operator
	// can say. For the other verdicts it is zero.
	Until time.Time
}

// Check asks every gate and returns the first answer that is not Pass. What
// ends an envelope for good is asked before what makes it wait: the kill
// switch, the deadline and do-not-contact; then pauses, quiet hours and
// breakers.
func Check(f Facts) Answer {
	for _, g := range []func(*Facts) Answer{killed, deadline, doNotContact, paused, quietHours, breakerOpen} {
		if a := g(&f); a.Verdict != Pass {
			return a
		}
	}
	return Answer{Verdict: Pass}
}

func killed(f *Facts) Answer {
	if f.Pause.Scope == "" || !f.Pause.Kill {
		return Answer{Verdict: Pass}
	}
	return Answer{Verdict: Skip, Code: CodeKilled, Message: "an operator used the kill switch on " + f.Pause.text()}
}

func deadline(f *Facts) Answer {
	if f.MustRunBefore.IsZero() || !f.MustRunBefore.Before(f.Now) {
		return Answer{Verdict: Pass}
	}
	return Answer{Verdict: Skip, Code: CodeDeadline, Message: "must_run_before passed while it waited"}
}

func doNotContact(f *Facts) Answer {
	if f.DoNotContact == (contact.Match{}) {
		return Answer{Verdict: Pass}
	}
	message := "a recipient is on the do-not-contact list"
	if kind := f.DoNotContact.Kind; kind != "" {
		message += fmt.Sprintf(" (by %s)", kind)
	}
	if reason := f.DoNotContact.PublicReason(); reason != "" {
		message += ": " + reason
	}
	return Answer{Verdict: Skip, Code: CodeDoNotContact, Message: message}
}

func paused(f *Facts) Answer {
	if f.Pause.Scope == "" {
		return Answer{Verdict: Pass}
	}
	return Answer{Verdict: Wait, Code: CodePaused, Message: "an operator paused " + f.Pause.text()}
}

// text names what was stopped and since when.
func (p Pause) text() string {
	text := p.Scope
	if text != "everything" {
		text = "its " + text
	}
	if !p.Since.IsZero() {
		text += " at " + stamp(p.Since)
	}
	return text
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func quietHours(f *Facts) Answer {
	if f.UrgentAsked && f.UrgentAllowed {
		return Answer{Verdict: Pass}
	}
	var last quiethours.Active
	var levels []string
	for _, q := range f.Quiet {
		if !q.Until.After(f.Now) {
			continue
		}
		if !slices.Contains(levels, q.Level) {
			levels = append(levels, q.Level)
		}
		if q.Until.After(last.Until) {
			last = q
		}
	}
	if len(levels) == 0 {
		return Answer{Verdict: Pass}
	}
	message := fmt.Sprintf("quiet hours (%s) last until %s", strings.Join(levels, ", "), stamp(last.Until))
	urgent := ""
	if f.UrgentAsked {
		urgent = "; it asks to be sent as urgent, but its employee lacks the scope " + string(policy.ScopeQuietOverride)
	}
	due := f.MustRunBefore
	if !due.IsZero() && !due.After(last.Until) {
		return Answer{Verdict: Skip, Code: CodeQuietHours, Message: message + ", and must_run_before comes no later" + urgent}
	}
	until := last.Until.Add(last.Spread)
	if !due.IsZero() && !until.Before(due) {
		until = last.Until
	}
	return Answer{Verdict: Wait, Code: CodeQuietHours, Message: message + urgent, Until: until}
}

func breakerOpen(f *Facts) Answer {
	if !f.BreakerUntil.After(f.Now) {
		return Answer{Verdict: Pass}
	}
	return Answer{
		Verdict: Wait, Code: CodeBreakerOpen, Until: f.BreakerUntil,
		Message: "its source failed too often and is left alone until " + stamp(f.BreakerUntil),
	}
}
