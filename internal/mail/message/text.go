package message

import (
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/mail/message/invisible"
	"github.com/countersign-dev/countersign/internal/mail/message/markup"
)

// readTexts fills the texts of a message from its parts.
func (m *Message) readTexts(leaves []leaf) {
	var texts []string
	shown := shownLeaves(leaves)
	for i := range leaves {
		l := &leaves[i]
		show := slices.Contains(shown, i)
		if !l.text() || l.attached() && !show {
			continue
		}
		text := m.decodeText(l)
		if l.mediaType == "text/html" {
			text = m.readHTML(text, show)
		} else {
			m.addRaw(text)
			if show {
				m.Links = plainLinks(m.Links, text)
				text = trimLines(m.clean(text))
			}
		}
		if show && text != "" {
			texts = append(texts, text)
		}
	}
	m.Text = strings.Join(texts, "\n\n")
	m.Body = m.Text
}

// readHTML returns the text of HTML that is shown.
func (m *Message) readHTML(source string, shown bool) string {
	read := markup.Read(source, func(url string) string { return registrable(hostOf(url)) })
	m.addRaw(read.Raw)
	if !shown {
		return ""
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
	m.Pixels += read.Pixels
	m.Forms += read.Forms
	return trimLines(m.clean(read.Text))
}

// addRaw adds a text to Raw. Zero bytes, which databases refuse, are replaced.
func (m *Message) addRaw(text string) {
	text = strings.ReplaceAll(text, "\x00", "\uFFFD")
	if m.Raw != "" {
		text = "\n" + text
	}
	m.Raw += text
}

// shownLeaves returns the texts that a reader's program shows: of alternatives
// the HTML, since nearly all programs show that. Where no text is meant to be
// shown, the first that is attached is.
func shownLeaves(leaves []leaf) []int {
	var shown []int
	html := map[int]bool{}
	for _, l := range leaves {
		if l.mediaType == "text/html" && !l.attached() {
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
		case l.mediaType == "text/plain" && len(l.alternatives) > 0 && html[l.alternatives[len(l.alternatives)-1]]:
		default:
			shown = append(shown, i)
		}
	}
	if len(shown) == 0 && first >= 0 {
		shown = append(shown, first)
	}
	return shown
}

// trimLines ends lines by LF, removes white space at their ends, and leaves one
// empty line of several.
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
