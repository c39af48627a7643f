package contact

import (
	"strings"
	"unicode"

	"golang.org/x/net/idna"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// clean returns a text without what a reader cannot see (zero-width and
// control characters, variation selectors), with compatibility forms such as
// full-width letters made plain. Line ends and tabs stay.
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

// settle repeats a step, a few times at most, until it changes nothing.
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

// fold returns a text in the one form in which two that read alike are equal:
// cleaned, without regard to case, with single spaces and none at the ends.
func fold(text string) string {
	if isASCII(text) {
		return strings.Join(strings.Fields(strings.ToLower(clean(text))), " ")
	}
	return settle(text, func(text string) string {
		return strings.Join(strings.Fields(clean(cases.Fold().String(norm.NFD.String(clean(text))))), " ")
	})
}

// names maps domain names as the Lookup profile does, yet lets pass what
// exists although it should not: underscores, and hyphens in places kept for
// other ends.
var names = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.Transitional(false),
	idna.StrictDomainName(false), idna.CheckHyphens(false), idna.CheckJoiners(false))

// foldDomain returns a domain name in ASCII and lower case, without dots at
// its ends. A text that is no domain name is folded as it is; domainLike tells.
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
// so many labels.
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

// parents returns a domain and the domains above it, down to two labels.
func parents(domain string) []string {
	var list []string
	for domainLike(domain, 2) {
		list = append(list, domain)
		_, domain, _ = strings.Cut(domain, ".")
	}
	return list
}
