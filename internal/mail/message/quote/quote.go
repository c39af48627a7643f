// Package quote finds the text in a mail that its author did not write for it:
// earlier messages, signatures, legal footers, and banners of mail servers. It
// works on lines, in the forms and languages of the common mail programs. It
// only removes lines and never changes one, except for markers of conversations
// with language models.
package quote

import (
	"strings"
	"unicode/utf8"
)

// Region is a range of lines, From to before To, that a mail program marked as
// an earlier message or as a signature.
type Region struct {
	Signature bool
	From, To  int
}

// Removed counts the removals of one rule.
type Removed struct {
	// Step is quote, signature or banner.
	Step, Kind        string
	Count, Characters int
}

// reading is the state of one Strip.
type reading struct {
	lines   []string
	gone    []bool
	removed []Removed
}

// Strip returns the text that the author of a mail wrote for it. A text that
// consists of quotes is kept, as in a forwarded mail.
func Strip(text string, regions []Region) (string, []Removed) {
	r := &reading{lines: strings.Split(text, "\n")}
	r.gone = make([]bool, len(r.lines))
	r.banners()
	afterBanners, notes := r.save()
	r.quotes(regions)
	if !r.hasText(0, len(r.lines)) {
		r.gone, r.removed = afterBanners, notes
	}
	afterQuotes, notes := r.save()
	r.signatures(regions)
	if !r.hasText(0, len(r.lines)) {
		r.gone, r.removed = afterQuotes, notes
	}
	body := text
	if len(r.removed) > 0 {
		body = r.join()
	}
	if strings.TrimSpace(body) == "" {
		return text, nil
	}
	without, count := withoutMarkers(body)
	if count > 0 {
		r.note("banner", "role marker", count, utf8.RuneCountInString(body)-utf8.RuneCountInString(without))
		body = strings.TrimSpace(without)
	}
	return body, r.removed
}

// Own returns the text that the author of a mail wrote for it, or "" if the text
// consists of quotes, as in a forwarded mail.
func Own(text string) string {
	const above = "Hello." // below a text of the author a forwarded mail is a quote
	body, _ := Strip(above+"\n\n"+text, nil)
	own, _ := strings.CutPrefix(body, above)
	return strings.TrimSpace(own)
}

func (r *reading) save() ([]bool, []Removed) {
	return append([]bool(nil), r.gone...), append([]Removed(nil), r.removed...)
}

func (r *reading) note(step, kind string, count, characters int) {
	for i := range r.removed {
		if n := &r.removed[i]; n.Step == step && n.Kind == kind {
			n.Count += count
			n.Characters += characters
			return
		}
	}
	r.removed = append(r.removed, Removed{step, kind, count, characters})
}

// remove removes lines.
func (r *reading) remove(step, kind string, from, to int) {
	characters := 0
	for i := from; i < to; i++ {
		if !r.gone[i] {
			r.gone[i] = true
			characters += utf8.RuneCountInString(r.lines[i])
		}
	}
	if characters > 0 {
		r.note(step, kind, 1, characters)
	}
}

// hasText reports whether a range of lines has text that was not removed.
func (r *reading) hasText(from, to int) bool {
	for i := from; i < to; i++ {
		if !r.gone[i] && strings.TrimSpace(r.lines[i]) != "" {
			return true
		}
	}
	return false
}

// join returns the remaining lines, with one empty line between paragraphs.
func (r *reading) join() string {
	var b strings.Builder
	empty := false
	for i, line := range r.lines {
		if r.gone[i] || strings.TrimSpace(line) == "" {
			empty = true
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
			if empty {
				b.WriteByte('\n')
			}
		}
		empty = false
		b.WriteString(line)
	}
	return strings.TrimSpace(b.String())
}

// next returns the first line from i on that is not empty, or len(lines).
func (r *reading) next(i int) int {
	for i < len(r.lines) && strings.TrimSpace(r.lines[i]) == "" {
		i++
	}
	return i
}

func quoted(line string) bool {
	line = strings.TrimLeft(line, " \t")
	return strings.HasPrefix(line, ">") || strings.HasPrefix(line, "|>")
}

// quotes removes earlier messages.
func (r *reading) quotes(regions []Region) {
	for i := 0; i < len(r.lines); i++ {
		line := r.lines[i]
		if r.gone[i] || line == "" {
			continue
		}
		if quoted(line) {
			end := i
			for end < len(r.lines) && (quoted(r.lines[end]) || strings.TrimSpace(r.lines[end]) == "" && quoted(r.line(r.next(end)))) {
				end++
			}
			r.remove("quote", "prefix", i, end)
			i = end - 1
			continue
		}
		if end, kind := r.attribution(i); end > i {
			if after := r.next(end); quoted(r.line(after)) {
				r.remove("quote", "attribution", i, end)
				i = end - 1
				continue
			} else if kind == certain && after < len(r.lines) && r.hasText(0, i) {
				r.remove("quote", "attribution", i, len(r.lines))
				break
			}
		}
		if kind := r.earlier(i); kind != "" {
			// With no text above, the message was forwarded and is the content.
			if r.hasText(0, i) {
				r.remove("quote", kind, i, len(r.lines))
			}
			break
		}
	}
	r.markup(regions)
}

// markup removes the regions that a mail program marked as earlier messages.
func (r *reading) markup(regions []Region) {
	for _, region := range regions {
		if !region.Signature && r.hasText(0, region.From) && !r.quotedWithin(region) {
			r.remove("quote", "markup", region.From, min(region.To, len(r.lines)))
		}
	}
}

func (r *reading) line(i int) string {
	if i >= len(r.lines) {
		return ""
	}
	return r.lines[i]
}

// quotedWithin reports whether a region has lines with the prefix of quotes.
// Its other lines are then answers.
func (r *reading) quotedWithin(region Region) bool {
	for i := region.From; i < region.To && i < len(r.lines); i++ {
		if quoted(r.lines[i]) {
			return true
		}
	}
	return false
}

// earlier returns the rule by which an earlier message begins at a line and
// extends to the end, or "".
func (r *reading) earlier(i int) string {
	line := strings.TrimSpace(r.lines[i])
	if separator(line) {
		return "separator"
	}
	if rule(line) {
		if next := r.next(i + 1); r.headerBlock(next, true) {
			return "header block"
		}
		return ""
	}
	if r.headerBlock(i, false) {
		return "header block"
	}
	return ""
}

// rule reports whether a line is a horizontal rule.
func rule(line string) bool {
	return len(line) >= 5 && strings.Trim(line, "_-=—–") == ""
}
