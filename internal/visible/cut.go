package visible

import (
	"encoding/json"
	"unicode/utf8"
)

// Cut returns the beginning of a text, at most most bytes of whole characters,
// and whether it was cut.
func Cut(text string, most int) (beginning string, cut bool) {
	if len(text) <= most {
		return text, false
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most], true
}

// PreviewBytes is the maximum size of a JSON value that a summary contains
// whole.
const PreviewBytes = 2048

// Summary returns a JSON object for a summary: a short one whole, any other as
// {} with the beginning of its text as preview.
func Summary(object json.RawMessage) (shown json.RawMessage, preview string, cut bool) {
	if preview, cut = Cut(string(object), PreviewBytes); !cut {
		return object, "", false
	}
	return json.RawMessage("{}"), preview, true
}

// Short returns a JSON value if it is short enough for a summary, else
// otherwise.
func Short(value, otherwise json.RawMessage) json.RawMessage {
	if len(value) <= PreviewBytes {
		return value
	}
	return otherwise
}
