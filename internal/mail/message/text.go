package message

import (
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/mail/message/invisible"
	"github.com/countersign-dev/countersign/internal/mail/message/markup"
	"github.com/countersign-dev/countersign/internal/mail/message/quote"
)

// between separates the texts of two parts.
const between = "\n\n"

// texts collects the visible texts.
type texts struct {
	shown   []string
	lines   int
	regions []quote.Region
}

// add adds a text with the lines that a mail program has marked.
func (t *texts) add(text string, marks []markup.Mark) {
	if text == "" {
		return
	}
	if len(t.shown) > 0 {
		t.lines += strings.Count(between, "\n")
	}
	for _, mark := range marks {
		t.regions = append(t.regions, quote.Region{
			Signature: mark.Kind == markup.MarkSignature, From: t.lines + mark.From, To: t.lines + mark.To,
		})
	}
	t.shown = append(t.shown, text)
	t.lines += strings.Count(text, "\n")
}

// readTexts fills the texts of a message from its parts.
func (m *Message) readTexts(leaves []leaf) {
	var all texts
	shown := shownLeaves(leaves)
	for i := range leaves {
		l := &leaves[i]
		show := slices.Contains(shown, i)
		if !l.text() || l.attached() && !show {
			continue
		}
		text := m.decodeText(l)
		if l.html() {
			m.readHTML(text, show, &all)
			continue
		}
		m.addRaw(text)
		if show {
			m.Links = plainLinks(m.Links, text)
			all.add(trimLines(m.clean(text)), nil)
		}
	}
	if len(all.shown) == 0 {
		m.otherAlternatives(leaves, shown, &all)
	}
	m.attachments(leaves, shown)
	m.Text = strings.Join(all.shown, between)
	body, removed := quote.Strip(m.Text, all.regions)
	m.Body = body
	for _, r := range removed {
		m.note(r.Step, r.Kind, r.Count, r.Characters)
	}
}

// otherAlternatives adds the plain-text alternatives of HTML without text, such
// as a single picture, since they describe it.
func (m *Message) otherAlternatives(leaves []leaf, shown []int, all *texts) {
	for i := range leaves {
		if l := &leaves[i]; l.text() && !l.html() && !l.attached() && !slices.Contains(shown, i) {
			text := m.decodeText(l)
			m.Links = plainLinks(m.Links, text)
			all.add(trimLines(m.clean(text)), nil)
		}
	}
}

// readHTML reads HTML.
func (m *Message) readHTML(source string, shown bool, all *texts) {
	read := markup.Read(source, func(url string) string { return registrable(hostOf(url)) })
	m.addRaw(read.Raw)
	if !shown {
		return
	}
	for _, link := range read.Links {
		text, _ := invisible.Clean(link.Text)
		m.Links = append(m.Links, newLink(text, link.URL))
	}
	for _, hidden := range read.Hidden {
		m.Hidden = append(m.Hidden, Hidden(hidden))
	}
	for _, removed := range read.Removed {
		m.note("html", removed.Reason, removed.Count, removed.Characters)
	}
	m.Data = append(m.Data, markup.Data(source)...)
	m.Pixels += read.Pixels
	m.Forms += read.Forms
	all.add(trimEnds(m.clean(read.Text)), read.Marks)
}

// addRaw adds a text to Raw. It replaces zero bytes, which PostgreSQL rejects.
func (m *Message) addRaw(text string) {
	text = strings.ReplaceAll(text, "\x00", "\uFFFD")
	if m.Raw != "" {
		text = "\n" + text
	}
	m.Raw += text
}

// shownLeaves returns the texts that a mail program shows: of alternatives the
// HTML, as nearly all programs do. If no text is meant to be shown, it returns
// the first attached one.
func shownLeaves(leaves []leaf) []int {
	var shown []int
	html := map[int]bool{}
	for _, l := range leaves {
		if l.html() && !l.attached() {
			for _, alternative := range l.alternatives {
				html[alternative] = true
			}
		}
	}
	first := -1
	for i, l := range leaves {
		switch {
		case !l.text():
		case l.attached():
			if first < 0 && l.disposition != "attachment" {
				first = i
			}
		case !l.html() && len(l.alternatives) > 0 && html[l.alternatives[len(l.alternatives)-1]]:
		default:
			shown = append(shown, i)
		}
	}
	if len(shown) == 0 && first >= 0 {
		shown = append(shown, first)
	}
	return shown
}

// trimLines ends lines with LF, removes trailing white space, and collapses
// empty lines into one.
func trimLines(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	empty := 0
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		if line == "" {
			empty++
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
			if empty > 0 {
				b.WriteByte('\n')
			}
		}
		empty = 0
		b.WriteString(line)
	}
	return b.String()
}

// trimEnds removes trailing white space and keeps the number of lines, except
// for empty ones at the end.
func trimEnds(text string) string {
	if !strings.Contains(text, " \n") {
		return strings.TrimRight(text, " \n")
	}
	var b strings.Builder
	b.Grow(len(text))
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight(line, " \t\n"))
		b.WriteByte('\n')
	}
	return strings.TrimRight(b.String(), "\n")
}
