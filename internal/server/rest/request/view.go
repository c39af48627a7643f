package request

import (
	"encoding/json"

	"github.com/countersign-dev/countersign/internal/visible"
)

// PreviewBytes is how much of the arguments of an item a summary shows.
const PreviewBytes = 2048

// Cut returns a JSON object as a summary shows it: as it is if it is short, or else
// {} and the beginning of its text.
func Cut(object json.RawMessage) (shown json.RawMessage, preview string, cut bool) {
	if preview, cut = visible.Cut(string(object), PreviewBytes); !cut {
		return object, "", false
	}
	return json.RawMessage("{}"), preview, true
}

// Short returns a JSON value if a summary shows it, or else otherwise.
func Short(value, otherwise json.RawMessage) json.RawMessage {
	if len(value) <= PreviewBytes {
		return value
	}
	return otherwise
}

// Summary reports whether the query asks for summaries of the items of a list.
func (c *Call) Summary() bool { return c.Query.Get("view") == "summary" }
