package message

import (
	"strings"
	"unicode"

	"github.com/abadojack/whatlanggo"
)

// Of texts with fewer letters than languageLetters the language is guessed
// wrong, and with confidence. Of longer ones the beginning is enough.
const (
	languageLetters = 40
	languageBytes   = 600
)

// language returns the ISO 639-1 code of a text's language, or nothing.
func language(text string) string {
	text = cutTo(text, languageBytes)
	letters := 0
	for _, r := range text {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= 0x80 && unicode.IsLetter(r) {
			letters++
		}
	}
	if letters < languageLetters {
		return ""
	}
	if code := byCommonWords(text); code != "" {
		return code
	}
	return whatlanggo.DetectLang(text).Iso6391()
}

// commonWords are the most frequent words of some languages. Words of more than
// one of them are left out; those of languages that are not told apart here stand
// for none.
var commonWords = map[string]string{
	"the": "en", "and": "en", "of": "en", "you": "en", "is": "en", "that": "en", "for": "en", "it": "en", "with": "en",
	"this": "en", "your": "en", "have": "en", "are": "en", "be": "en", "we": "en", "will": "en", "from": "en", "to": "en",
	"at": "en", "if": "en", "my": "en", "our": "en", "not": "en", "by": "en", "can": "en", "has": "en", "been": "en",
	"how": "en", "what": "en", "they": "en", "would": "en", "which": "en", "about": "en", "but": "en", "or": "en", "all": "en",
	"i'm": "en", "it's": "en", "as": "en", "there": "en", "their": "en", "when": "en", "out": "en", "get": "en", "more": "en",
	"und": "de", "der": "de", "das": "de", "ist": "de", "nicht": "de", "ich": "de", "sie": "de", "wir": "de",
	"mit": "de", "für": "de", "auf": "de", "ein": "de", "eine": "de", "zu": "de", "ihre": "de", "sich": "de",
	"et": "fr", "les": "fr", "des": "fr", "vous": "fr", "est": "fr", "pour": "fr", "une": "fr", "dans": "fr",
	"nous": "fr", "votre": "fr", "pas": "fr", "du": "fr", "avec": "fr",
	"het": "nl", "een": "nl", "van": "nl", "niet": "nl", "dat": "nl", "voor": "nl", "zijn": "nl", "ik": "nl", "naar": "nl",
	"og": "", "det": "", "som": "", "til": "", "ikke": "", "att": "", "och": "", "är": "", "på": "", "que": "", "los": "",
	"las": "", "el": "", "una": "", "por": "", "con": "", "di": "", "che": "", "per": "", "il": "", "não": "", "em": "", "os": "",
}

// byCommonWords returns the language of whose common words a text is full, and
// of no other's. It is a hundred times faster than comparing trigrams with those
// of every language, and right where it answers.
func byCommonWords(text string) string {
	const (
		least   = 4
		share   = 12
		longest = 8
	)
	counts := map[string]int{}
	total, known := 0, 0
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r != '\'' && !unicode.IsLetter(r) }) {
		total++
		if len(word) > longest {
			continue
		}
		if code, ok := commonWords[strings.ToLower(word)]; ok {
			counts[code]++
			known++
		}
	}
	for _, code := range []string{"en", "de", "fr", "nl"} {
		if n := counts[code]; n >= least && n*share >= total && n >= 4*(known-n) {
			return code
		}
	}
	return ""
}
