package classify

import (
	"iter"
	"strings"
	"unicode/utf8"
)

// Limits of the sentences that are classified as requests.
const (
	maxSentences      = 40
	maxSentenceLength = 400
	minSentenceLength = 6
)

// sentences yields the sentences of a text. A line without a final mark
// continues in the next one, unless that is empty or begins a list.
func sentences(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		count := 0
		emit := func(s string) bool {
			s = strings.TrimSpace(s)
			if len(s) < minSentenceLength {
				return true
			}
			count++
			return yield(s[:min(len(s), maxSentenceLength)]) && count < maxSentences
		}
		start := 0
		for i := range len(text) {
			if !ends(text, i) {
				continue
			}
			end := i + 1
			if text[i] >= utf8.RuneSelf {
				end = i + len("。")
			}
			if !emit(text[start:end]) {
				return
			}
			start = end
		}
		emit(text[start:])
	}
}

// ends reports whether a sentence ends with the byte at i.
func ends(text string, i int) bool {
	if full := text[i:]; strings.HasPrefix(full, "。") || strings.HasPrefix(full, "？") || strings.HasPrefix(full, "！") {
		return true
	}
	next := byte('\n')
	if i+1 < len(text) {
		next = text[i+1]
	}
	switch text[i] {
	case '?', '!', '.':
		return next == ' ' || next == '\n' || next == '\r'
	case '\n':
		return next == '\n' || next == '\r' || next == '-' || next == '*' || next == '>' || isDigit(next)
	}
	return false
}
