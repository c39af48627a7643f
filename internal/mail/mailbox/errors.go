package mailbox

import (
	"errors"
	"fmt"
	"time"
)

// The kinds of errors that callers act on; test for them with errors.Is.
var (
	// ErrGone is returned for a message that no longer exists.
	ErrGone = errors.New("the message no longer exists")
	// ErrTooLarge is returned for a message over the reader's size limit.
	ErrTooLarge = errors.New("the message is larger than the limit")
	// ErrUnreadable is returned for a message that the account does not return
	// in a readable form, while it returns others.
	ErrUnreadable = errors.New("the account does not return the message in a readable form")
	// ErrChanged is returned if the flags of a message differ from those
	// expected.
	ErrChanged = errors.New("the message was changed by someone else")
	// ErrExists is returned if the folder already has a message with this
	// Message-ID.
	ErrExists = errors.New("a message with this Message-ID already exists")
	// ErrNoFolder is returned if the account does not have the folder.
	ErrNoFolder = errors.New("the folder does not exist")
	// ErrUnsupported is returned for operations that the account cannot do.
	ErrUnsupported = errors.New("the mailbox does not support the operation")
	// ErrDenied is returned if the credentials were refused or lack the right.
	// A retry with the same credentials fails too.
	ErrDenied = errors.New("the mailbox denied access")
	// ErrBusy is returned if the account is locked or over a limit for now;
	// RetryAfter returns how long.
	ErrBusy = errors.New("the mailbox is busy")
	// ErrInvalid is returned for invalid input, such as a cursor of another
	// kind of reader or a flag that is not an atom.
	ErrInvalid = errors.New("invalid input")
)

// BusyError is an error of kind ErrBusy with the time to wait.
type BusyError struct {
	// Reason describes the limit or the lock, without text of the server.
	Reason string
	// After is the time to wait; 0 if unknown.
	After time.Duration
}

// Error returns the reason and the time to wait.
func (e *BusyError) Error() string {
	if e.After <= 0 {
		return fmt.Sprintf("%v: %s", ErrBusy, e.Reason)
	}
	return fmt.Sprintf("%v: %s; try again in %s", ErrBusy, e.Reason, e.After.Round(time.Second))
}

// Unwrap returns ErrBusy.
func (e *BusyError) Unwrap() error { return ErrBusy }

// RetryAfter returns the wait that an error of kind ErrBusy requests, or 0.
func RetryAfter(err error) time.Duration {
	if busy, ok := errors.AsType[*BusyError](err); ok {
		return busy.After
	}
	return 0
}
