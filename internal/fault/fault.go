// Package fault owns the few kinds of error that callers can tell apart. Any
// other error is a bug or an outage, whose text callers do not see. The package
// is independent of HTTP, MCP and SQL. It also owns the suggestions in errors
// about unknown names.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// Kind is a class of failure that a caller can act on. Test for one with
// errors.Is(err, fault.NotFound).
type Kind string

// The kinds.
const (
	// NotFound means that the thing does not exist or is hidden from the caller.
	NotFound Kind = "not found"
	// Invalid means that the input breaks a rule; the same input will fail again.
	Invalid Kind = "invalid"
	// Conflict means that the thing is not in a state that allows this.
	Conflict Kind = "conflict"
	// Denied means that the caller has no right to this, or that policy denies it.
	Denied Kind = "denied"
	// Busy means that the same request may succeed later.
	Busy Kind = "busy"
	// Gone means that the time for this has passed.
	Gone Kind = "gone"
	// Stale means that the thing has changed since the caller saw it.
	Stale Kind = "stale"
	// Unconditional means that the caller must name the version of the thing that
	// it saw.
	Unconditional Kind = "unconditional"
	// Limited means that the caller has reached a limit for now.
	Limited Kind = "limited"
)

// Error returns the name of the kind; it makes a kind a target of errors.Is.
func (k Kind) Error() string { return string(k) }

// Error is a failure of a known kind. Its text may be shown to the caller: it
// contains ids, fields and rules, but no payload and no secret.
type Error struct {
	Kind Kind
	Text string
	// Code, if any, is a stable word for this failure within its kind, for
	// programs that use the API.
	Code string
	// Pointer, if any, is a JSON Pointer to the refused field of the request, or
	// to its subject. Rule is the rule that the field breaks.
	Pointer, Rule string
	// Cause, if any, is for logs only.
	Cause error
	// After is the wait before the next try; 0 if unknown.
	After time.Duration
	// Quota is the limit that the caller has reached, in errors of Exceeded.
	Quota *Quota
}

// Quota is a limit and its remainder.
type Quota struct {
	// Name names the limit.
	Name string
	// Max is the limit per Window, or the limit of concurrent uses if Window is
	// 0.
	Max    int
	Window time.Duration
	// Left is the remainder of Max.
	Left int
	// Reset is the time until Left grows; 0 if unknown.
	Reset time.Duration
}

// New returns an error of a kind with a text for the caller.
func New(kind Kind, format string, args ...any) error {
	return &Error{Kind: kind, Text: fmt.Sprintf(format, args...)}
}

// Coded is New with a code.
func Coded[C ~string](code C, kind Kind, format string, args ...any) error {
	return &Error{Kind: kind, Text: fmt.Sprintf(format, args...), Code: string(code)}
}

// At is New for a field, and the rule that it breaks.
func At(pointer, rule string, kind Kind, format string, args ...any) error {
	return &Error{Kind: kind, Text: fmt.Sprintf(format, args...), Pointer: pointer, Rule: rule}
}

// Wrap is New with a cause, which is logged but not shown to the caller.
func Wrap(cause error, kind Kind, format string, args ...any) error {
	return &Error{Kind: kind, Text: fmt.Sprintf(format, args...), Cause: cause}
}

// WrapCoded is Wrap with a stable word for programs in Code.
func WrapCoded[C ~string](cause error, code C, kind Kind, format string, args ...any) error {
	return &Error{Kind: kind, Text: fmt.Sprintf(format, args...), Code: string(code), Cause: cause}
}

// Exceeded is New for Limited, for a caller that has reached a quota.
func Exceeded(q Quota, format string, args ...any) error {
	return &Error{Kind: Limited, Text: fmt.Sprintf(format, args...), After: q.Reset, Quota: &q}
}

// Error returns the text, followed by the cause if there is one. Only Text may
// be shown to a caller.
func (e *Error) Error() string {
	if e.Cause == nil {
		return e.Text
	}
	return e.Text + ": " + e.Cause.Error()
}

// Unwrap lets errors.Is find the kind as well as the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}

// RetryAfter returns the wait before the next try in whole seconds, at least
// one.
func RetryAfter(err error) int {
	e, _ := errors.AsType[*Error](err)
	if e == nil {
		return 1
	}
	return WholeSeconds(e.After)
}

// WholeSeconds returns a wait in whole seconds, rounded up, and at least one.
func WholeSeconds(wait time.Duration) int {
	return max(1, int((wait+time.Second-1)/time.Second))
}

// KindOf returns the kind of err, or "" if it has none.
func KindOf(err error) Kind {
	if k, ok := errors.AsType[Kind](err); ok {
		return k
	}
	return ""
}
