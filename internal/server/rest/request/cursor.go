package request

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
)

const (
	// cursorVersion begins every cursor, so that its form can change.
	cursorVersion = "1"
	defaultLimit  = 50
)

// errCursor is the error for a cursor that is not one of the list.
func errCursor(at string) error {
	return Invalid(at, envelope.RuleFormat, "is not a cursor of this list; send next_cursor unchanged, or omit it to start over")
}

// WriteTextCursor returns the cursor of the place after an item of a list,
// which text names.
func WriteTextCursor(list, text string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(cursorVersion + ":" + list + ":" + text))
}

// ParseTextCursor returns the text of a cursor that WriteTextCursor returned
// for the same list; at is the pointer of the cursor in the request.
func ParseTextCursor(list, cursor, at string) (string, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil {
		return "", errCursor(at)
	}
	text, ok := strings.CutPrefix(string(raw), cursorVersion+":"+list+":")
	if !ok {
		return "", errCursor(at)
	}
	return text, nil
}

// WriteCursor returns the cursor of the place after an item of a list.
func WriteCursor(list string, last envelope.ActionID) string {
	return WriteTextCursor(list, last.String())
}

// ParseCursor returns the item of a cursor that WriteCursor returned for the
// same list; the zero id for "", the beginning.
func ParseCursor(list, cursor string) (envelope.ActionID, error) {
	return ParseCursorAt(list, cursor, "/query/cursor")
}

// ParseCursorAt is ParseCursor of a cursor at another place in the request.
func ParseCursorAt(list, cursor, at string) (envelope.ActionID, error) {
	var last envelope.ActionID
	if cursor == "" {
		return last, nil
	}
	text, err := ParseTextCursor(list, cursor, at)
	if err != nil {
		return last, err
	}
	if last.UnmarshalText([]byte(text)) != nil || last.String() != text {
		return envelope.ActionID{}, errCursor(at)
	}
	return last, nil
}

// Limit returns the number of items of a page.
func (c *Call) Limit() (int, error) {
	text := c.Query.Get("limit")
	if text == "" {
		return defaultLimit, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil {
		return 0, Invalid("/query/limit", envelope.RuleType, "must be an integer")
	}
	return limit, nil
}

// Page returns the item after which a page of a list begins, and the number of
// items of the page.
func (c *Call) Page(list string) (after envelope.ActionID, limit int, err error) {
	if limit, err = c.Limit(); err != nil {
		return after, 0, err
	}
	after, err = ParseCursor(list, c.Query.Get("cursor"))
	return after, limit, err
}
