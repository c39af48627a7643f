package quote

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a signature. Longer text is kept, so that a line above cannot hide
// content from the tiers.
const (
	maxSignatureLines      = 14
	maxSignatureCharacters = 1000
	maxClosingLines        = 5
	maxClosingWidth        = 60
	maxLegalCharacters     = 2500
)

// signatures removes signatures and footers at the end.
func (r *reading) signatures(regions []Region) {
	for _, region := range regions {
		to := min(region.To, len(r.lines))
		if region.Signature && r.small(region.From, to) && r.hasText(0, region.From) {
			r.remove("signature", "markup", region.From, to)
		}
	}
	r.legal()
	r.delimiters()
	r.devices()
	r.closing()
}

// small reports whether the remaining lines of a range are short enough for a
// signature.
func (r *reading) small(from, to int) bool {
	lines, characters := 0, 0
	for i := from; i < to; i++ {
		if !r.gone[i] && r.lines[i] != "" {
			lines++
			characters += utf8.RuneCountInString(r.lines[i])
			if lines > maxSignatureLines || characters > maxSignatureCharacters {
				return false
			}
		}
	}
	return true
}

// delimiters removes the text below a line of two hyphens, and the footer of a
// mailing list below a horizontal rule.
func (r *reading) delimiters() {
	for i, line := range r.lines {
		line = strings.TrimSpace(line)
		if r.gone[i] || line == "" {
			continue
		}
		if (line == "--" || line == "—") && r.small(i, len(r.lines)) && r.hasText(0, i) {
			r.remove("signature", "delimiter", i, len(r.lines))
			return
		}
		if len(line) >= 10 && rule(line) && r.small(i, len(r.lines)) && r.hasText(0, i) && r.listFooter(i+1) {
			r.remove("signature", "list footer", i, len(r.lines))
			return
		}
	}
}

// listFooter reports whether lines are the footer of a mailing list.
func (r *reading) listFooter(from int) bool {
	for i := from; i < len(r.lines); i++ {
		line := strings.ToLower(r.lines[i])
		if !r.gone[i] && (strings.Contains(line, "mailing list") || strings.Contains(line, "unsubscribe") ||
			strings.Contains(line, "listinfo")) {
			return true
		}
	}
	return false
}

// devices removes lines near the end that mail programs of phones add.
func (r *reading) devices() {
	const near, longest = 25, 90
	below := 0
	for i := len(r.lines) - 1; i >= 0 && below < near; i-- {
		line := r.lines[i]
		if r.gone[i] || line == "" {
			continue
		}
		below++
		if len(line) > longest {
			continue
		}
		line = strings.TrimLeft(line, " *_-")
		if line == "" || line[0] < 0x80 && strings.IndexByte(deviceLetters, line[0]|0x20) < 0 {
			continue
		}
		lower := strings.ToLower(line)
		for _, phrase := range devices {
			if strings.HasPrefix(lower, phrase) {
				r.remove("signature", "device", i, i+1)
				break
			}
		}
	}
}

// closing removes a closing word and the short lines below it at the end.
func (r *reading) closing() {
	short := 0
	for i := len(r.lines) - 1; i >= 0; i-- {
		line := strings.TrimSpace(r.lines[i])
		if r.gone[i] || line == "" {
			continue
		}
		if closes(line) && short > 0 && r.hasText(0, i) {
			r.remove("signature", "closing", i, len(r.lines))
			return
		}
		if utf8.RuneCountInString(line) > maxClosingWidth || strings.ContainsAny(line, "?!") {
			return
		}
		if !contact(line) || short == 0 {
			short++
		}
		if short > maxClosingLines {
			return
		}
	}
}

// contact reports whether a line is a phone number or an address; a signature
// may have any number of them.
func contact(line string) bool {
	digits := 0
	for _, c := range line {
		if c >= '0' && c <= '9' {
			digits++
		}
	}
	return digits >= 5 || strings.Contains(line, "@") || strings.Contains(line, "www.") || strings.Contains(line, "://")
}

// closes reports whether a line is a closing word.
func closes(line string) bool {
	const longest = 40
	if len(line) > longest {
		return false
	}
	line = strings.ToLower(strings.TrimFunc(line, func(r rune) bool { return unicode.IsPunct(r) || unicode.IsSpace(r) }))
	return slices.Contains(closings, line)
}

// legal removes legal footers among the last paragraphs.
func (r *reading) legal() {
	const last = 4
	to := len(r.lines)
	for range last {
		for to > 0 && (r.gone[to-1] || r.lines[to-1] == "") {
			to--
		}
		from, characters := to, 0
		for from > 0 && !r.gone[from-1] && r.lines[from-1] != "" && characters <= maxLegalCharacters {
			from--
			characters += len(r.lines[from])
		}
		if from == to || !r.hasText(0, from) {
			return
		}
		if characters <= maxLegalCharacters && hasPhrase(legalWords, legal, strings.Join(r.lines[from:to], " ")) {
			r.remove("signature", "legal", from, to)
		}
		to = from
	}
}

// hasPhrase reports whether a line has one of the phrases, in lower case. Every
// phrase has one of the words.
func hasPhrase(words, phrases []string, line string) bool {
	const shortest = 8
	if len(line) < shortest {
		return false
	}
	line = strings.ToLower(line)
	in := func(text string) bool { return strings.Contains(line, text) }
	return slices.ContainsFunc(words, in) && slices.ContainsFunc(phrases, in)
}

// banners removes the lines of mail servers above mail from outside.
func (r *reading) banners() {
	const top, longest = 8, 300
	seen := 0
	for i := 0; i < len(r.lines) && seen < top; i++ {
		line := strings.TrimSpace(r.lines[i])
		if line == "" {
			continue
		}
		seen++
		if len(line) <= longest && hasPhrase(bannerWords, banners, line) {
			r.remove("banner", "external", i, i+1)
		}
	}
}
