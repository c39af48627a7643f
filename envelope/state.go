package envelope

import "github.com/countersign-dev/countersign/internal/fault"

// Status is the progress of an action in the outbox.
type Status string

// The statuses.
const (
	// StatusPending waits for its time, a rate limit, a person, or a worker that
	// has leased it.
	StatusPending Status = "pending"
	// StatusSending is marked before the bytes of a call go out that must not
	// be repeated.
	StatusSending Status = "sending"
	// StatusSent has happened.
	StatusSent Status = "sent"
	// StatusConflict: the provider reports that the effect exists already. It
	// counts as success.
	StatusConflict Status = "conflict"
	// StatusFailed did not happen and is a dead letter.
	StatusFailed Status = "failed"
	// StatusSkipped was taken off the schedule before it was started.
	StatusSkipped Status = "skipped"
	// StatusUnknown was started, and its outcome is unknown.
	StatusUnknown Status = "unknown"
)

// Valid reports whether s is one of the constants.
func (s Status) Valid() bool {
	switch s {
	case StatusPending, StatusSending, StatusSent, StatusConflict, StatusFailed, StatusSkipped, StatusUnknown:
		return true
	}
	return false
}

// Ended reports whether s changes only by a person: it is terminal, or unknown
// until it is resolved.
func Ended(s Status) bool { return Terminal(s) || s == StatusUnknown }

// Terminal reports whether s is an end. Only a replay leads away from a failed
// action, and nothing from the other ends. An unknown action has not ended: its
// outcome is still to be found out.
func Terminal(s Status) bool {
	switch s {
	case StatusSent, StatusConflict, StatusFailed, StatusSkipped:
		return true
	case StatusPending, StatusSending, StatusUnknown:
	}
	return false
}

// Event moves an action from one status to another.
type Event string

// The events.
const (
	EventClaim          Event = "claim"
	EventStart          Event = "start"
	EventRelease        Event = "release"
	EventDefer          Event = "defer"
	EventRetry          Event = "retry"
	EventSucceed        Event = "succeed"
	EventConflict       Event = "conflict"
	EventFail           Event = "fail"
	EventLose           Event = "lose"
	EventUndo           Event = "undo"
	EventSkip           Event = "skip"
	EventResolveSent    Event = "resolve_sent"
	EventResolvePending Event = "resolve_pending"
	EventResolveFailed  Event = "resolve_failed"
	EventReplay         Event = "replay"
)

// Events returns all events.
func Events() []Event {
	return []Event{
		EventClaim, EventStart, EventRelease, EventDefer, EventRetry, EventSucceed, EventConflict, EventFail, EventLose, EventUndo, EventSkip,
		EventResolveSent, EventResolvePending, EventResolveFailed, EventReplay,
	}
}

// transition is one legal move. The drawing in docs/reference/states.md shows when
// it is made.
type transition struct {
	from  Status
	event Event
	to    Status
	when  string
}

// transitions are all legal moves. A call of class read, idempotent or keyed
// settles straight from a leased pending; only one of class once is marked
// sending first.
var transitions = [...]transition{
	{StatusPending, EventClaim, StatusPending, "a worker leases it"},
	{StatusPending, EventRelease, StatusPending, "a lease ends before the call was started"},
	{StatusPending, EventDefer, StatusPending, "preflight, a bucket or the provider says later, or it needs a person after all"},
	{StatusPending, EventRetry, StatusPending, "a repeatable call is to be made again"},
	{StatusPending, EventStart, StatusSending, "an unrepeatable call is about to go out"},
	{StatusPending, EventSucceed, StatusSent, "a repeatable call was done"},
	{StatusPending, EventConflict, StatusConflict, "the provider had done it already"},
	{StatusPending, EventLose, StatusUnknown, "no attempt is left, and an earlier one may have had its effect"},
	{StatusPending, EventFail, StatusFailed, "it was refused for good, or its attempts are used up"},
	{StatusPending, EventSkip, StatusSkipped, "its deadline, do-not-contact or policy forbids it"},
	{StatusPending, EventUndo, StatusSkipped, "someone took it back"},

	{StatusSending, EventClaim, StatusSending, "a worker leases it after the worker that started it was lost"},
	{StatusSending, EventRelease, StatusPending, "a worker returns it before the call was started"},
	{StatusSending, EventSucceed, StatusSent, "the call was done"},
	{StatusSending, EventConflict, StatusConflict, "the provider had done it already"},
	{StatusSending, EventFail, StatusFailed, "it was refused for good, or its attempts are used up"},
	{StatusSending, EventSkip, StatusSkipped, "it was forbidden after the mark and before the call"},
	{StatusSending, EventRetry, StatusPending, "the call surely did not happen"},
	{StatusSending, EventDefer, StatusPending, "the provider or preflight says later"},
	{StatusSending, EventLose, StatusUnknown, "the call went out and no answer came"},

	{StatusUnknown, EventResolveSent, StatusSent, "an operator or a reconciling read found it done"},
	{StatusUnknown, EventResolvePending, StatusPending, "an operator or a reconciling read found it not done"},
	{StatusUnknown, EventResolveFailed, StatusFailed, "an operator found it not done and gives it up"},
	{StatusUnknown, EventReplay, StatusPending, "an operator replays the dead letter"},

	{StatusFailed, EventReplay, StatusPending, "an operator replays the dead letter"},
}

// Next returns where an event leads. A move that is not in the table is
// fault.Conflict.
func Next(from Status, ev Event) (Status, error) {
	for i := range transitions {
		if t := &transitions[i]; t.from == from && t.event == ev {
			return t.to, nil
		}
	}
	return from, fault.New(fault.Conflict, "an action that is %q cannot take the event %q", from, ev)
}
