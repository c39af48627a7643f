package decide

import (
	"fmt"
	"slices"
)

// Level is how much the agent may do autonomously for a cohort.
type Level int

// The levels. L6 is defined but not offered.
const (
	L0 Level = iota
	L1
	L2
	L3
	L4
	L5
	L6
)

// String returns the level in the form "L4".
func (l Level) String() string { return fmt.Sprintf("L%d", int(l)) }

// MarshalText returns the String of the level.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText parses the text of MarshalText in upper or lower case.
func (l *Level) UnmarshalText(text []byte) error {
	if len(text) != 2 || text[0]|0x20 != 'l' || text[1] < '0' || text[1] > '6' {
		return fmt.Errorf("a level must be one of L0 to L6, without L6 where one is set")
	}
	*l = Level(text[1] - '0')
	return nil
}

// Action is an action on a message.
type Action string

// The actions.
const (
	Label       Action = "label"
	Flag        Action = "flag"
	Archive     Action = "archive"
	Draft       Action = "draft"
	Snooze      Action = "snooze"
	Trash       Action = "trash"
	Quarantine  Action = "quarantine"
	Report      Action = "report"
	Send        Action = "send"
	Forward     Action = "forward"
	Delete      Action = "delete"
	Block       Action = "block"
	Unsubscribe Action = "unsubscribe"
	RSVP        Action = "rsvp"
)

// actionRow is a row of the table of actions.
type actionRow struct {
	action Action
	// propose is the lowest level at which the action is proposed, and alone
	// the lowest at which policy decides whether a person is asked.
	propose, alone Level
	// moves reports whether vetoes apply.
	moves bool
}

// never is above every level: such an action always needs a person.
const never = L6 + 1

func actions() []actionRow {
	return []actionRow{
		{action: Label, propose: L2, alone: L4},
		// A person who approves a flag has already seen the message.
		{action: Flag, propose: L4, alone: L4},
		{action: Archive, propose: L2, alone: L4, moves: true},
		{action: Snooze, propose: L2, alone: L4, moves: true},
		{action: Draft, propose: L2, alone: L4},
		{action: Trash, propose: L2, alone: L5, moves: true},
		// Quarantine and Report are for phishing, which has no level above L1.
		{action: Quarantine, propose: L1, alone: never},
		{action: Report, propose: L1, alone: never},
		{action: Send, propose: L2, alone: never},
		{action: Forward, propose: L2, alone: never},
		{action: Delete, propose: L2, alone: never, moves: true},
		{action: Block, propose: L2, alone: never},
		{action: Unsubscribe, propose: L2, alone: never},
		{action: RSVP, propose: L2, alone: never},
	}
}

// rowOf returns the row of an action. An unknown action is never proposed.
func rowOf(a Action) actionRow {
	rows := actions()
	if at := slices.IndexFunc(rows, func(r actionRow) bool { return r.action == a }); at >= 0 {
		return rows[at]
	}
	return actionRow{action: a, propose: never, alone: never, moves: true}
}

// AlwaysConfirmed reports whether an action needs a person at every level.
func AlwaysConfirmed(a Action) bool { return rowOf(a).alone == never }
