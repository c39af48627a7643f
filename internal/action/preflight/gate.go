// Package preflight owns the checks of an action just before its call: kill, deadline, do-not-contact, pause,
// quiet hours, login and breaker. They are pure functions from Facts to an Answer, which has the result and the
// reason. The package reads no clock and no table.
package preflight

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/quiethours"
)

// Result is the result of a check.
type Result string

// The results.
const (
	// Pass: no check prevents the call.
	Pass Result = "pass"
	// Skip: the call must not be made, now or later.
	Skip Result = "skip"
	// Wait: the call must not be made now; check again later.
	Wait Result = "wait"
)

// The codes of results that are not Pass.
const (
	// CodeKilled: an operator used the kill switch.
	CodeKilled = envelope.CodeKilled
	// CodeDeadline: must_run_before has passed.
	CodeDeadline = "deadline"
	// CodeDoNotContact: a recipient is on the do-not-contact list.
	CodeDoNotContact = "do_not_contact"
	// CodePaused: an operator paused the tenant, or a source, tool, bucket or
	// employee or automation of the envelope.
	CodePaused = "paused"
	// CodeQuietHours: it is quiet, or will be until must_run_before.
	CodeQuietHours = "quiet_hours"
	// CodeBreakerOpen: the source failed too often, and its breaker is open.
	CodeBreakerOpen = "breaker_open"
	// CodeLoginLost: the login of the source is lost, and its calls wait.
	CodeLoginLost = "login_lost"
)

// Facts is the input of the checks. The zero value passes all of them. All
// times are by the database's clock.
type Facts struct {
	// Now is the time of the checks.
	Now time.Time
	// MustRunBefore is the envelope's deadline; zero if it has none.
	MustRunBefore time.Time
	// DoNotContact is the entry that a recipient matched, if any.
	DoNotContact contact.Match
	// Pause is the pause that the envelope falls under, if any.
	Pause Pause
	// Quiet has one entry for every level at which it is quiet now.
	Quiet []quiethours.Active
	// UrgentAsked reports whether the envelope asks to be sent during quiet hours,
	// UrgentAllowed whether its employee has ScopeQuietOverride.
	UrgentAsked, UrgentAllowed bool
	// LoginLost reports whether the calls of its source wait for a login.
	LoginLost bool
	// BreakerUntil is the time at which an open breaker admits the next call;
	// zero, or not after Now, if calls may be made.
	BreakerUntil time.Time
}

// Pause is an operator's pause or kill. The zero value is no pause.
type Pause struct {
	// Scope is the kind of thing stopped: everything, tenant, employee, source,
	// bucket, tool or automation.
	Scope string
	// Since is the start of the pause.
	Since time.Time
	// Kill reports whether pending envelopes are cancelled instead of kept.
	Kill bool
}

// Answer is a result with its reason.
type Answer struct {
	Result Result
	// Code is a short stable word, Message a line for people that never
	// repeats an argument or a recipient; both empty for Pass.
	Code, Message string
	// Until is the time at which to check a Wait again; zero if only an operator
	// can end it. For the other results it is zero.
	Until time.Time
}

// Check makes every check and returns the first answer that is not Pass.
// Checks that end an envelope come before those that delay it: the kill
// switch, the deadline and do-not-contact; then pauses, quiet hours, lost
// logins and breakers.
func Check(f Facts) Answer {
	for _, g := range []func(*Facts) Answer{killed, deadline, doNotContact, paused, quietHours, loginLost, breakerOpen} {
		if a := g(&f); a.Result != Pass {
			return a
		}
	}
	return Answer{Result: Pass}
}

func killed(f *Facts) Answer {
	if f.Pause.Scope == "" || !f.Pause.Kill {
		return Answer{Result: Pass}
	}
	return Answer{Result: Skip, Code: CodeKilled, Message: "an operator used the kill switch on " + f.Pause.text()}
}

func deadline(f *Facts) Answer {
	if f.MustRunBefore.IsZero() || !f.MustRunBefore.Before(f.Now) {
		return Answer{Result: Pass}
	}
	return Answer{Result: Skip, Code: CodeDeadline, Message: "must_run_before passed while it waited"}
}

func doNotContact(f *Facts) Answer {
	if f.DoNotContact == (contact.Match{}) {
		return Answer{Result: Pass}
	}
	message := "a recipient is on the do-not-contact list"
	if kind := f.DoNotContact.Kind; kind != "" {
		message += fmt.Sprintf(" (by %s)", kind)
	}
	if reason := f.DoNotContact.PublicReason(); reason != "" {
		message += ": " + reason
	}
	return Answer{Result: Skip, Code: CodeDoNotContact, Message: message}
}

func paused(f *Facts) Answer {
	if f.Pause.Scope == "" {
		return Answer{Result: Pass}
	}
	return Answer{Result: Wait, Code: CodePaused, Message: "an operator paused " + f.Pause.text()}
}

// text returns the scope and the start of a pause, for messages.
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
		return Answer{Result: Pass}
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
		return Answer{Result: Pass}
	}
	message := fmt.Sprintf("quiet hours (%s) last until %s", strings.Join(levels, ", "), stamp(last.Until))
	urgent := ""
	if f.UrgentAsked {
		urgent = "; it asks to be sent as urgent, but its employee lacks the scope " + string(policy.ScopeQuietOverride)
	}
	due := f.MustRunBefore
	if !due.IsZero() && !due.After(last.Until) {
		return Answer{Result: Skip, Code: CodeQuietHours, Message: message + ", and must_run_before comes no later" + urgent}
	}
	until := last.Until.Add(last.Spread)
	if !due.IsZero() && !until.Before(due) {
		until = last.Until
	}
	return Answer{Result: Wait, Code: CodeQuietHours, Message: message + urgent, Until: until}
}

func loginLost(f *Facts) Answer {
	if !f.LoginLost {
		return Answer{Result: Pass}
	}
	return Answer{Result: Wait, Code: CodeLoginLost, Message: "its source has lost its login, and waits for somebody to log in again"}
}

func breakerOpen(f *Facts) Answer {
	if !f.BreakerUntil.After(f.Now) {
		return Answer{Result: Pass}
	}
	return Answer{
		Result: Wait, Code: CodeBreakerOpen, Until: f.BreakerUntil,
		Message: "its source failed too often; its breaker is open until " + stamp(f.BreakerUntil),
	}
}

// Action is the part of an action that the checks read.
type Action struct {
	Tool     policy.Key
	Employee envelope.EmployeeID
	// Automations are the names of the program that proposed it. Approved reports
	// whether a person agreed.
	Automations []string
	Approved    bool
	// Bucket is the name of its rate bucket.
	Bucket string
	// Urgent reports whether the agent asks to send during quiet hours.
	Urgent                   bool
	MustRunBefore, CreatedAt time.Time
	Contacts                 []contact.Contact
	Listed                   contact.Match
}

// FactsOf returns the facts about an action at a time from a tenant's limits.
// Previews and calls use it alike; the caller adds open breakers.
func FactsOf(set *limits.Set, a Action, now time.Time) Facts {
	f := Facts{
		Now: now, MustRunBefore: a.MustRunBefore, DoNotContact: a.Listed,
		Quiet: set.Quiet(a.Employee, a.Bucket, a.Contacts, now),
	}
	if len(f.Quiet) > 0 && a.Urgent {
		e, known := set.Employee(a.Employee)
		f.UrgentAsked, f.UrgentAllowed = true, known && len(policy.MissingScopes(e.Scopes, []string{string(policy.ScopeQuietOverride)})) == 0
	}
	if pause, ok := set.Paused(a.Employee, a.Tool, a.Approved, a.Automations...); ok {
		f.Pause = Pause{
			Scope: pause.Scope, Since: pause.At,
			Kill: pause.Kill && pause.KilledAt != nil && !a.CreatedAt.After(*pause.KilledAt),
		}
	}
	return f
}
