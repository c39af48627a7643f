package draft

import (
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/net/publicsuffix"
)

// Replacements for a link or an address that a model wrote.
const (
	linkLeftOut    = "[link left out]"
	addressLeftOut = "[address left out]"
)

// scheme matches the beginning of an address with a scheme.
var scheme = regexp.MustCompile(`(?i)://|(^|[^a-z])(mailto|tel|sms|callto|sip|xmpp|javascript|data|file|magnet|news|geo|https?|ftp):`)

// Unlinked removes everything that a mail program may turn into a link: words
// with a scheme, addresses, host names.
func Unlinked(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		end := strings.IndexFunc(text, unicode.IsSpace)
		if end < 0 {
			end = len(text)
		}
		b.WriteString(unlinkedWord(text[:end]))
		text = text[end:]
		next := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsSpace(r) })
		if next < 0 {
			next = len(text)
		}
		b.WriteString(text[:next])
		text = text[next:]
	}
	return b.String()
}

// unlinkedWord returns a word without spaces, or its replacement.
func unlinkedWord(word string) string {
	switch {
	case strings.ContainsRune(word, '@') || strings.ContainsRune(word, '＠'):
		return addressLeftOut
	case scheme.MatchString(word), hasHost(word):
		return linkLeftOut
	}
	return word
}

// hasHost reports whether a word contains a host name under a suffix that a
// registry manages, or an IP address.
func hasHost(word string) bool {
	// Other full stops separate labels of host names as well.
	word = strings.NewReplacer("。", ".", "．", ".", "｡", ".").Replace(strings.ToLower(word))
	parts := strings.FieldsFunc(word, func(r rune) bool { return r != '.' && r != '-' && !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	for _, part := range parts {
		host := strings.Trim(part, ".-")
		if !strings.Contains(host, ".") {
			continue
		}
		if numbers(host) {
			return true
		}
		suffix, managed := publicsuffix.PublicSuffix(host)
		if managed && len(suffix) < len(host) {
			return true
		}
	}
	return false
}

// numbers reports whether a name is four numbers between dots.
func numbers(host string) bool {
	return strings.Count(host, ".") == 3 && strings.Trim(host, "0123456789.") == ""
}
