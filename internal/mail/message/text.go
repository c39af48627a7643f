package message

import (
	"bytes"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// readTexts fills the texts of a message from its parts.
func (m *Message) readTexts(leaves []leaf) {
	var texts []string
	shown := shownLeaves(leaves)
	for i := range leaves {
		l := &leaves[i]
		if !l.text() || l.attached() && !slices.Contains(shown, i) {
			continue
		}
		text := m.decodeText(l)
		if l.mediaType == "text/html" {
			text = plainText(text)
		}
		m.Raw = appendText(m.Raw, strings.ReplaceAll(text, "\x00", "\uFFFD"))
		if slices.Contains(shown, i) {
			texts = append(texts, trimLines(m.clean(strings.ReplaceAll(text, "\r\n", "\n"))))
		}
	}
	m.Text = strings.TrimSpace(strings.Join(texts, "\n\n"))
	m.Body = m.Text
}

func appendText(text, more string) string {
	if text == "" {
		return more
	}
	return text + "\n" + more
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

// trimLines removes white space at the ends of lines and runs of empty lines.
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

// plainText returns the text of HTML.
func plainText(source string) string {
	var b strings.Builder
	skip := ""
	for z := html.NewTokenizer(strings.NewReader(source)); ; {
		switch z.Next() {
		case html.ErrorToken:
			return b.String()
		case html.TextToken:
			if skip == "" {
				b.Write(bytes.ReplaceAll(z.Text(), []byte("\n"), []byte(" ")))
			}
		case html.StartTagToken:
			name, _ := z.TagName()
			switch string(name) {
			case "script", "style", "title":
				skip = string(name)
			case "p", "br", "div", "tr", "li", "h1", "h2", "h3", "table":
				b.WriteByte('\n')
			}
		case html.EndTagToken:
			if name, _ := z.TagName(); string(name) == skip {
				skip = ""
			}
		}
	}
}
