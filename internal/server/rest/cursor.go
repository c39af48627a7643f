package rest

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
)

const (
	// cursorVersion begins every cursor, so that another form can follow.
	cursorVersion = "1"
	defaultLimit  = 50
)

// The lists that cursors belong to. One of one list is refused by the other.
const (
	cursorActions  = "actions"
	cursorLetters  = "dead-letters"
	cursorPauses   = "pauses"
	cursorContacts = "do-not-contact"
	cursorInbox    = "inbox"
	cursorNotes    = "notes"
	cursorBatches  = "batches"

	cursorExecutions = "executions"
	cursorRehearsal  = "policy-simulate"
)

// writeCursor writes the place behind an action in a list.
func writeCursor(of string, last envelope.ActionID) string {
	return base64.RawURLEncoding.EncodeToString([]byte(cursorVersion + ":" + of + ":" + last.String()))
}

// parseCursor reads what writeCursor wrote for the same list; "" is the
// beginning.
func parseCursor(of, text string) (envelope.ActionID, error) {
	var last envelope.ActionID
	if text == "" {
		return last, nil
	}
	refused := invalid("/query/cursor", envelope.RuleFormat, "is not a cursor of this list; take next_cursor as it was, or leave it out to begin again")
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return last, refused
	}
	id, ok := strings.CutPrefix(string(raw), cursorVersion+":"+of+":")
	if !ok || last.UnmarshalText([]byte(id)) != nil || last.String() != id {
		return envelope.ActionID{}, refused
	}
	return last, nil
}

// most is how many items a page is to hold.
func (c *call) most() (int, error) {
	text := c.query.Get("limit")
	if text == "" {
		return defaultLimit, nil
	}
	most, err := strconv.Atoi(text)
	if err != nil {
		return 0, invalid("/query/limit", envelope.RuleType, "must be an integer")
	}
	return most, nil
}

// place is where in a list the caller wants to go on, and how far.
func (c *call) place(of string) (before envelope.ActionID, limit int, err error) {
	if limit, err = c.most(); err != nil {
		return before, 0, err
	}
	before, err = parseCursor(of, c.query.Get("cursor"))
	return before, limit, err
}
