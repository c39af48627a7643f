package quote

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// certainty is the confidence that a line introduces an earlier message.
type certainty int

const (
	possible certainty = iota
	certain
)

// Limits of attributions, which mail programs wrap.
const (
	maxAttribution      = 300
	maxAttributionLines = 3
)

// attribution returns the end of an attribution that begins at line i, such as
// "On … wrote:", or i.
func (r *reading) attribution(i int) (end int, kind certainty) {
	text := ""
	for end = i; end < len(r.lines) && end < i+maxAttributionLines; {
		line := strings.TrimSpace(r.lines[end])
		end++
		if line == "" {
			break
		}
		if text != "" {
			text += " "
		}
		if text += line; len(text) > maxAttribution {
			break
		}
		if last, _ := utf8.DecodeLastRuneInString(line); last == ':' || last == '：' {
			if kind, ok := introduces(text, end-i); ok {
				return end, kind
			}
			break
		}
		if end == i+1 && !opens(text) {
			break
		}
	}
	return i, possible
}

// opens reports whether a line may be the first of an attribution, by its first
// words.
func opens(text string) bool {
	first, rest, _ := strings.Cut(text, " ")
	if rest == "" {
		return false
	}
	if first[0] >= '0' && first[0] <= '9' {
		return true
	}
	first = strings.ToLower(strings.Trim(first, "*.,"))
	return openers[first]
}

// introduces returns the certainty that a text ending in a colon is an
// attribution.
func introduces(text string, lines int) (certainty, bool) {
	lower := strings.ToLower(strings.TrimRight(text, ":： *"))
	digits := strings.ContainsAny(lower, "0123456789")
	for _, verb := range verbs {
		at := strings.Index(lower, verb)
		if at < 0 {
			continue
		}
		if digits && opens(text) {
			return certain, true
		}
		if lines == 1 && strings.HasSuffix(lower, verb) {
			return possible, true
		}
	}
	// Some programs write only the date and the address.
	if digits && opens(text) && strings.Contains(lower, "@") && (strings.Contains(lower, "<") || strings.Contains(lower, "(")) {
		return certain, true
	}
	return possible, false
}

// separator reports whether mail programs write the line above an earlier
// message, such as "-----Original Message-----".
func separator(line string) bool {
	if len(line) < 8 || len(line) > 120 || strings.IndexByte("-_=*bBaAdD", line[0]) < 0 {
		return false
	}
	inner := strings.Trim(line, "-_=* \t")
	drawn := strings.HasPrefix(line, "--") || strings.HasPrefix(line, "__") || strings.HasPrefix(line, "==")
	inner = strings.ToLower(strings.TrimRight(inner, ":"))
	if !drawn && !strings.HasPrefix(inner, "begin ") && !strings.HasPrefix(inner, "anfang ") && !strings.HasPrefix(inner, "début ") {
		return false
	}
	return slices.ContainsFunc(separators, func(phrase string) bool { return strings.HasPrefix(inner, phrase) })
}

// headerBlock reports whether the header fields of an earlier message begin at
// a line. Below a separator, any fields suffice; elsewhere there must be an
// address or a subject, since people write "From: London" too.
func (r *reading) headerBlock(i int, below bool) bool {
	const most, others = 12, 2
	var seen [fields]bool
	address, unknown := false, 0
	for n := i; n < len(r.lines) && n < i+most; n++ {
		line := strings.TrimSpace(r.lines[n])
		name, ok := fieldOf(line)
		if !ok {
			if n == i || line == "" {
				break
			}
			if unknown++; unknown > others {
				break
			}
			continue
		}
		seen[name] = true
		address = address || strings.Contains(line, "@")
	}
	dated := seen[fieldDate] || seen[fieldSent]
	if !seen[fieldFrom] || !dated && !seen[fieldTo] {
		return false
	}
	return seen[fieldSubject] || below || address && dated || seen[fieldSent] && seen[fieldTo]
}

// fieldOf returns the header field in a line.
func fieldOf(line string) (field, bool) {
	const longest = 40
	i := strings.IndexByte(line[:min(len(line), longest)], ':')
	if i < 0 && len(line) > 0 && line[0] >= 0x80 {
		i = strings.Index(line[:min(len(line), longest)], "：")
	}
	if i <= 0 {
		return 0, false
	}
	name := strings.Trim(line[:i], "* \t")
	for _, c := range []byte(name) {
		if c >= 'A' && c <= 'Z' || c >= 0x80 {
			name = strings.ToLower(name)
			break
		}
	}
	found, ok := fieldNames[name]
	return found, ok
}
