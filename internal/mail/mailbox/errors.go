package mailbox

import (
	"errors"
	"fmt"
	"time"
)

// The kinds of error that callers act on; test for them with errors.Is.
var (
	// ErrGone says that there is no such message any more.
	ErrGone = errors.New("the message is not there any more")
	// ErrTooLarge says that a message is over the reader's limit of bytes.
	ErrTooLarge = errors.New("the message is larger than the limit")
	// ErrUnreadable says that the account does not give a message in any form that
	// can be read, while it gives others.
	ErrUnreadable = errors.New("the account does not give this message in a form that can be read")
	// ErrChanged says that the flags of a message are not those that were expected.
	ErrChanged = errors.New("the message was changed by someone else")
	// ErrExists says that a message with this Message-ID is in the folder already.
	ErrExists = errors.New("a message with this Message-ID is there already")
	// ErrNoFolder says that the account has no such folder.
	ErrNoFolder = errors.New("there is no such folder")
	// ErrUnsupported says that the account cannot do what was asked.
	ErrUnsupported = errors.New("the mailbox does not support this")
	// ErrDenied says that the credentials were refused, or give no right to this.
	// Trying again with the same credentials does not help.
	ErrDenied = errors.New("the mailbox denies this")
	// ErrBusy says that the account is locked or over a limit for now; RetryAfter
	// says for how long.
	ErrBusy = errors.New("the mailbox is busy")
	// ErrInvalid says that the input is not valid, such as a cursor of another kind
	// of reader or a flag that is no atom.
	ErrInvalid = errors.New("the input is not valid")
)

// BusyError is an error of kind ErrBusy that says when to try again.
type BusyError struct {
	// Reason names the limit or the lock, in words of this program.
	Reason string
	// After is how long to wait; 0 if unknown.
	After time.Duration
}

// Error says why, and for how long.
func (e *BusyError) Error() string {
	if e.After <= 0 {
		return fmt.Sprintf("%v: %s", ErrBusy, e.Reason)
	}
	return fmt.Sprintf("%v: %s; try again in %s", ErrBusy, e.Reason, e.After.Round(time.Second))
}

// Unwrap returns ErrBusy.
func (e *BusyError) Unwrap() error { return ErrBusy }

// RetryAfter returns how long an error of kind ErrBusy asks to wait, 0 if it
// does not say.
func RetryAfter(err error) time.Duration {
	if busy, ok := errors.AsType[*BusyError](err); ok {
		return busy.After
	}
	return 0
}
