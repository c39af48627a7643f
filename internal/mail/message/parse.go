package message

import (
	"strings"

	"github.com/countersign-dev/countersign/internal/mail/message/invisible"
)

// Parse parses a message. It never fails, and its memory and time are
// proportional to the size of raw.
func Parse(raw []byte) *Message {
	m := &Message{Identity: Identify(raw)}
	body := m.readFields(raw)
	m.readHeader()
	m.readTexts(m.readParts(raw, body))
	m.Language = language(m.Body)
	return m
}

// oneLine returns the visible text on one line and counts the removed
// characters.
func (m *Message) oneLine(text string) string {
	return strings.Join(strings.Fields(m.clean(text)), " ")
}

// clean removes invisible characters and counts them.
func (m *Message) clean(text string) string {
	text, counts := invisible.Clean(text)
	if counts == (invisible.Counts{}) {
		return text
	}
	m.Invisible.ZeroWidth += counts.ZeroWidth
	m.Invisible.Bidi += counts.Bidi
	m.Invisible.Tags += counts.Tags
	m.Invisible.Selectors += counts.Selectors
	m.Invisible.SoftHyphens += counts.SoftHyphens
	m.Invisible.Other += counts.Other
	for _, removed := range []struct {
		kind  string
		count int
	}{
		{"zero_width", counts.ZeroWidth}, {"bidi", counts.Bidi}, {"tags", counts.Tags}, {"selectors", counts.Selectors},
		{"soft_hyphens", counts.SoftHyphens}, {"other", counts.Other},
	} {
		if removed.count > 0 {
			m.note("unicode", removed.kind, removed.count, removed.count)
		}
	}
	return text
}

// Fold normalises a text for matching: without invisible characters, in
// Unicode's form NFKC, lower case, runs of white space as one space.
func Fold(text string) string { return invisible.Fold(text) }
