package contact

import (
	"strings"
	"unicode"

	"golang.org/x/net/idna"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// clean removes invisible characters from a text (zero-width and control
// characters, variation selectors), and replaces compatibility forms such as
// full-width letters. Line ends and tabs stay.
func clean(text string) string {
	if isASCII(text) && !strings.ContainsFunc(text, invisible) {
		return text
	}
	return settle(text, func(text string) string {
		return norm.NFKC.String(strings.Map(func(r rune) rune {
			if invisible(r) {
				return -1
			}
			return r
		}, strings.ToValidUTF8(text, "\uFFFD")))
	})
}

// settle repeats a step until it changes nothing, at most four times.
func settle(text string, step func(string) string) string {
	for range 4 {
		next := step(text)
		if next == text {
			break
		}
		text = next
	}
	return text
}

func invisible(r rune) bool {
	return unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Cc, r) && !unicode.IsSpace(r) ||
		unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) || unicode.Is(unicode.Variation_Selector, r)
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}

// fold returns a text in a form in which texts that read alike are equal:
// cleaned, in one case, with single spaces and none at the ends.
func fold(text string) string {
	if isASCII(text) {
		return strings.Join(strings.Fields(strings.ToLower(clean(text))), " ")
	}
	return settle(text, func(text string) string {
		return strings.Join(strings.Fields(clean(cases.Fold().String(norm.NFD.String(clean(text))))), " ")
	})
}

// names maps domain names by the Lookup profile, but accepts names that exist
// although they are invalid: with underscores, or with hyphens in reserved
// positions.
var names = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.Transitional(false),
	idna.StrictDomainName(false), idna.CheckHyphens(false), idna.CheckJoiners(false))

// foldDomain returns a domain name in ASCII and lower case, without dots at its
// ends. A text that is not a domain name is only folded; domainLike
// distinguishes the two.
func foldDomain(text string) string {
	return settle(text, func(text string) string {
		next, err := names.ToASCII(clean(text))
		if err != nil {
			next = fold(clean(text))
		}
		return strings.Trim(next, ".")
	})
}

// domainLike reports whether a folded text could be a domain name of at least
// labels labels.
func domainLike(text string, labels int) bool {
	if text == "" || len(text) > 253 || strings.Count(text, ".")+1 < labels {
		return false
	}
	last := ""
	for label := range strings.SplitSeq(text, ".") {
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, notLabel) ||
			strings.Trim(label, "-") != label {
			return false
		}
		last = label
	}
	return strings.Trim(last, "0123456789") != "" // else it is an address of IP version 4
}

func notLabel(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
}

// parents returns a domain and its parent domains, down to two labels.
func parents(domain string) []string {
	var list []string
	for domainLike(domain, 2) {
		list = append(list, domain)
		_, domain, _ = strings.Cut(domain, ".")
	}
	return list
}
