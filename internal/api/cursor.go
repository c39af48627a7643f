package api

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
	cursorActions = "actions"
	cursorLetters = "dead-letters"
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

// place is where in a list the caller wants to go on, and how far.
func (c *call) place(of string) (before envelope.ActionID, limit int, err error) {
	limit = defaultLimit
	if text := c.query.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil {
			return before, 0, invalid("/query/limit", envelope.RuleType, "must be an integer")
		}
	}
	before, err = parseCursor(of, c.query.Get("cursor"))
	return before, limit, err
}
