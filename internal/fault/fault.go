// Package fault owns the few kinds of error that the outside can tell apart.
// Everything else is a bug or an outage, and callers see only that it was
// one. It refuses to know about HTTP, SQL or any other border.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// Kind is a sort of failure that a caller can act on. Test for one with
// errors.Is(err, fault.NotFound).
type Kind string

// The kinds.
const (
	// NotFound says that there is no such thing, or that the caller may not
	// know of it.
	NotFound Kind = "not found"
	// Invalid says that the input breaks a rule; the same input will fail
	// again.
	Invalid Kind = "invalid"
	// Conflict says that the thing is not in a state that allows this.
	Conflict Kind = "conflict"
	// Denied says that the caller, or policy, does not allow it.
	Denied Kind = "denied"
	// Busy says that it may work later.
	Busy Kind = "busy"
	// Gone says that the time for it has passed.
	Gone Kind = "gone"
	// Stale says that the thing is not the one that the caller saw.
	Stale Kind = "stale"
	// Unconditional says that the caller has to say which version of the thing
	// it saw.
	Unconditional Kind = "unconditional"
	// Limited says that the caller has had as much as it may have for now.
	Limited Kind = "limited"
)

// Error makes a kind usable as a target of errors.Is.
func (k Kind) Error() string { return string(k) }

// Error is a failure of a known kind with a text that may be shown to the
// caller: it names ids, fields and rules, never a payload or a secret.
type Error struct {
	Kind Kind
	Text string
	// Cause, if any, is for logs alone.
	Cause error
	// After is how long to wait before the next try; 0 if nobody can say.
	After time.Duration
}

// New returns an error of a kind whose text may be shown to the caller.
func New(kind Kind, format string, args ...any) error {
	return &Error{Kind: kind, Text: fmt.Sprintf(format, args...)}
}

// Wrap is New with a cause that reaches logs but never the caller.
func Wrap(cause error, kind Kind, format string, args ...any) error {
	return &Error{Kind: kind, Text: fmt.Sprintf(format, args...), Cause: cause}
}

// Limit is New for Limited, with how long to wait.
func Limit(after time.Duration, format string, args ...any) error {
	return &Error{Kind: Limited, Text: fmt.Sprintf(format, args...), After: after}
}

// Error returns the text, and the cause after it if there is one. Only Text
// is fit for a caller's eyes.
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

// RetryAfter returns how long to wait before the next try, in whole seconds and
// at least one.
func RetryAfter(err error) int {
	e, _ := errors.AsType[*Error](err)
	if e == nil {
		return 1
	}
	return max(1, int((e.After+time.Second-1)/time.Second))
}

// KindOf returns the kind of err, or "" for one that the outside has no name
// for.
func KindOf(err error) Kind {
	if k, ok := errors.AsType[Kind](err); ok {
		return k
	}
	return ""
}
