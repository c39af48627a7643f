package message

import (
	"unicode"
)

// The language of a text with fewer letters than languageLetters cannot be
// detected. Of a longer text the beginning suffices.
const (
	languageLetters = 40
	languageBytes   = 1000
)

// language returns the ISO 639-1 code of a text's language, or "": by its
// script if only one language uses it, else by its most frequent words.
// Trigrams detect more languages but take a thousand times as long, and
// whatlanggo's results vary between runs.
func language(text string) string {
	text = cutTo(text, languageBytes)
	letters, latin := 0, 0
	var scripts [len(scriptLanguages)]int
	for _, r := range text {
		if r < 0x80 {
			if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
				letters++
				latin++
			}
			continue
		}
		if !unicode.IsLetter(r) {
			continue
		}
		letters++
		for i, s := range scriptLanguages {
			if r >= s.first && r <= s.last {
				scripts[i]++
				break
			}
		}
	}
	if letters < languageLetters/2 || letters < languageLetters && latin > letters/2 {
		return ""
	}
	for i, s := range scriptLanguages {
		if scripts[i]*s.share >= letters {
			return s.code
		}
	}
	return byCommonWords(text)
}

// scriptLanguages are scripts that one language uses alone or mostly. A text is
// in the language if one letter in share is of the script: a few syllables
// distinguish Japanese from Chinese.
var scriptLanguages = [...]struct {
	first, last rune
	share       int
	code        string
}{
	{0x3041, 0x30ff, 8, "ja"}, {0xac00, 0xd7a3, 3, "ko"}, {0x4e00, 0x9fff, 2, "zh"}, {0x0370, 0x03ff, 2, "el"},
	{0x0590, 0x05ff, 2, "he"}, {0x0600, 0x06ff, 2, "ar"}, {0x0900, 0x097f, 2, "hi"}, {0x0980, 0x09ff, 2, "bn"},
	{0x0b80, 0x0bff, 2, "ta"}, {0x0c00, 0x0c7f, 2, "te"}, {0x0e00, 0x0e7f, 2, "th"}, {0x0530, 0x058f, 2, "hy"},
	{0x10a0, 0x10ff, 2, "ka"},
}

// byCommonWords returns the language whose most frequent words are most common
// in a text, or "" without a clear winner.
func byCommonWords(text string) string {
	const (
		least   = 3
		share   = 14 // one word in share
		longest = 14
	)
	var counts [len(languageCodes) / 2]int
	total := 0
	for word := range wordsOf(text) {
		total++
		if len(word) > longest {
			continue
		}
		for _, code := range commonWords[word] {
			counts[code]++
		}
	}
	best, second := 0, 0
	for i, n := range counts {
		if n > counts[best] {
			best, second = i, counts[best]
		} else if i != best {
			second = max(second, n)
		}
	}
	if n := counts[best]; n < least || n*share < total || n*4 < second*5+4 {
		return ""
	}
	return languageCodes[2*best : 2*best+2]
}
