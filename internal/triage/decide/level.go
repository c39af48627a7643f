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

// The actions. Each has a tool.
const (
	Label       Action = "label"
	Flag        Action = "flag"
	Archive     Action = "archive"
	Draft       Action = "draft"
	Snooze      Action = "snooze"
	Trash       Action = "trash"
	Quarantine  Action = "quarantine"
	Send        Action = "send"
	Unsubscribe Action = "unsubscribe"
	RSVP        Action = "rsvp"
	// Away answers a message in its owner's absence. A grant approves it.
	Away Action = "away"
)

// actionRow is a row of the table of actions.
type actionRow struct {
	action Action
	// tool is the tool of the mail source that does it.
	tool string
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
		{action: Label, tool: "message.label", propose: L2, alone: L4},
		// A person who approves a flag has already seen the message.
		{action: Flag, tool: "message.flag", propose: L4, alone: L4},
		{action: Archive, tool: "message.archive", propose: L2, alone: L4, moves: true},
		{action: Snooze, tool: "message.snooze", propose: L2, alone: L4, moves: true},
		{action: Draft, tool: "message.draft", propose: L2, alone: L4},
		// Below, the same message is archived.
		{action: Trash, tool: "message.trash", propose: L5, alone: L5, moves: true},
		// Quarantine is for phishing, which has no level above L1.
		{action: Quarantine, tool: "message.move", propose: L1, alone: never},
		{action: Send, tool: "message.send", propose: L2, alone: never},
		{action: Unsubscribe, tool: "message.unsubscribe", propose: L2, alone: never},
		{action: RSVP, tool: "message.rsvp", propose: L2, alone: never},
		// Its grant names the cohorts.
		{action: Away, tool: "message.away", propose: L1, alone: L1},
	}
}

// Tools returns the tool of each action.
func Tools() map[Action]string {
	tools := make(map[Action]string)
	for _, row := range actions() {
		tools[row.action] = row.tool
	}
	return tools
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
