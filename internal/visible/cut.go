package visible

import "unicode/utf8"

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
