package message

import (
	"slices"
	"strings"
	"unicode"
)

const (
	// foreignWords of one language make a text partly foreign, and so do
	// accentedWords, foreignLetters of other scripts, and a word with an
	// accented one.
	foreignWords   = 2
	foreignLetters = 8
	accentedWords  = 4
	// familiarWords is the number of words that a text needs for its language
	// to be detected; one in familiarShare must be frequent in a language.
	familiarWords = 16
	familiarShare = 16
	// vowelWords is the number of words with an ending that is rare in English
	// that make a text partly foreign.
	vowelWords = 5
)

// vowelEnglish are frequent English words that end in a vowel other than e.
const vowelEnglish = " also alpha area auto beta camera casino criteria data demo dilemma echo ego euro extra formula gala hello hero hobo " +
	"idea info into jumbo kilo logo macro manga media memo menu micro multi piano photo pizza plus polo potato promo quota radio ratio saga " +
	"salsa schema sofa soda solo studio taxi tempo tomato trio turbo ultra undo vanilla veto via video villa visa yoga zero "

// alsoEnglish are frequent words of other languages that are also English
// words, or the rest of one after an apostrophe.
const alsoEnglish = " a an as at be by care come da de del den die do dos du e el est et i if il im in la le les los mais mas men met mi mint no non o on or out par per plus pro re s si so su sur te the till to u un v van var via we "

// Foreign reports whether part of a text is in a language other than English.
// It counts distinct words and letters, and computes no shares, so that adding
// text between the words never changes the result to false.
func Foreign(text string) bool {
	if vowelEndings(text) {
		return true
	}
	var counts [len(languageCodes) / 2]int
	seen := map[string]bool{}
	letters, accented, most := 0, 0, 0
	for word := range wordsOf(text) {
		if seen[word] {
			continue
		}
		seen[word] = true
		other := 0
		for _, r := range word {
			if r >= 0x80 && !unicode.Is(unicode.Latin, r) && unicode.IsLetter(r) {
				letters++
			} else if r >= 0x80 && unicode.IsLetter(r) {
				other++
			}
		}
		if other > 0 {
			accented++
		}
		for _, code := range foreignCodes(word) {
			counts[code]++
			most = max(most, counts[code])
		}
		if letters >= foreignLetters || accented >= accentedWords || most >= foreignWords || most > 0 && accented > most {
			return true
		}
	}
	return false
}

// vowelEndings reports whether a text has enough distinct words that end in a
// vowel other than e, as most words of many languages do. It counts words in
// lower case alone: English text has names of that form.
func vowelEndings(text string) bool {
	seen := map[string]bool{}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) }) {
		if len(word) < 4 || !strings.ContainsRune("aiou", rune(word[len(word)-1])) || strings.ToLower(word) != word || strings.Contains(vowelEnglish, " "+word+" ") {
			continue
		}
		if seen[word] = true; len(seen) >= vowelWords {
			return true
		}
	}
	return false
}

// foreignCodes returns the languages other than English in which a word is
// frequent, unless it is an English word.
func foreignCodes(word string) []uint8 {
	codes := commonWords[word]
	if len(codes) == 0 || codes[0] == 0 || len(word) < 2 || strings.Contains(alsoEnglish, " "+word+" ") {
		return nil
	}
	return codes
}

const (
	// familiar holds the languages of the training mail.
	familiar = "en de fr es it pl pt ja"
	// lined holds the languages whose lines are detected by counts of words
	// alone.
	lined = "en de fr es"
	// ownLetters are the letters of familiar languages that English lacks.
	ownLetters = "äöüßàâæçèéêëîïôœùûÿáíñóúªºìòąćęłńśźżãõ"
	// japaneseShare is the least share of Japanese letters in Japanese text,
	// which has words in Latin letters.
	japaneseShare = 3
)

// Familiar reports whether a text is in a language of the training mail, by its
// letters and most frequent words. A short text is familiar unless it has other
// letters.
func Familiar(text string) bool {
	total, known, others, latin, japanese, letters := 0, 0, 0, 0, 0, 0
	for word := range wordsOf(text) {
		total++
		other := false
		for _, r := range word {
			letters++
			if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) || r == 'ー' {
				japanese++
			}
			if unicode.Is(unicode.Latin, r) {
				latin++
				other = other || r >= 0x80 && !strings.ContainsRune(ownLetters, r)
			}
		}
		if other {
			others++
		}
		if frequentIn(familiar, word) {
			known++
		}
	}
	code := language(text)
	switch {
	case japanese*japaneseShare >= letters && japanese > 0:
		return japanese+latin == letters && strings.ContainsFunc(text, kana)
	case latin*2 < letters, others > 1 && others > known, !strings.Contains(familiar, code):
		return false
	case code != "" && !strings.Contains(lined, code):
		// Few of the frequent words of these languages are listed.
		return true
	}
	return total < familiarWords || known*familiarShare >= total
}

// kana reports whether a letter is one that only Japanese has.
func kana(r rune) bool { return unicode.In(r, unicode.Hiragana, unicode.Katakana) }

// frequentIn reports whether a word is frequent in one of some languages, and
// not a short word of many.
func frequentIn(languages, word string) bool {
	if len(word) < 2 || strings.Contains(" do la na no se si so to ya za ", " "+word+" ") {
		return false
	}
	return slices.ContainsFunc(commonWords[word], func(code uint8) bool { return strings.Contains(languages, languageCodes[2*code:2*code+2]) })
}

// wordsOf returns the words of a text in lower case: letters and apostrophes.
func wordsOf(text string) func(func(string) bool) {
	return func(yield func(string) bool) {
		text, from := strings.ToLower(text), -1
		for i, r := range text {
			if r >= 'a' && r <= 'z' || r == '\'' || r >= 0x80 && unicode.IsLetter(r) {
				if from < 0 {
					from = i
				}
				continue
			}
			if from >= 0 && !yield(text[from:i]) {
				return
			}
			from = -1
		}
		if from >= 0 {
			yield(text[from:])
		}
	}
}
