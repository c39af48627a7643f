package visible

import (
	"encoding/json"
	"unicode/utf8"
)

// Cut returns the beginning of a text, at most so many bytes of whole
// characters, and whether that is not all of it.
func Cut(text string, most int) (beginning string, cut bool) {
	if len(text) <= most {
		return text, false
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most], true
}

// PreviewBytes is the size up to which a summary shows a JSON value whole.
const PreviewBytes = 2048

// Summary returns a JSON object as a summary shows it: a short one whole, any other as
// {} and the beginning of its text.
func Summary(object json.RawMessage) (shown json.RawMessage, preview string, cut bool) {
	if preview, cut = Cut(string(object), PreviewBytes); !cut {
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
