package brief

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/client/wire"
)

// Bounds of a message of Slack.
const (
	maxBlocks = 50
	// maxText bounds the characters of a text, and maxHeader those of a header.
	maxText   = 3000
	maxHeader = 150
)

// Message is a message of Slack.
type Message struct {
	// Text is the text of a notification.
	Text   string  `json:"text"`
	Blocks []Block `json:"blocks"`
}

// Block is a block of Block Kit: a header or a section. Its text is plain, so that
// text of mail forms no links, mentions or markup.
type Block struct {
	Type string     `json:"type"`
	Text *BlockText `json:"text"`
}

// BlockText is plain text: nothing in it is markup.
type BlockText struct {
	Type  string `json:"type"`
	Text  string `json:"text"`
	Emoji bool   `json:"emoji"`
}

// Slack returns a brief as a message of Slack, within its bounds. What does not fit is
// left out, and the last block says so.
func Slack(b wire.TriageBrief) Message {
	m := Message{Text: clip(plain(Title(b)), maxHeader), Blocks: []Block{block("header", clip(plain(Title(b)), maxHeader))}}
	for _, s := range sections(b) {
		for _, text := range texts(s) {
			if len(m.Blocks) == maxBlocks-1 {
				m.Blocks = append(m.Blocks, block("section", "The rest does not fit into a message."))
				return m
			}
			m.Blocks = append(m.Blocks, block("section", text))
		}
	}
	return m
}

func block(kind, text string) Block {
	return Block{kind, &BlockText{Type: "plain_text", Text: text}}
}

// texts returns a section as texts of a bounded length.
func texts(s section) []string {
	lines := []string{plain(s.title)}
	for _, l := range s.lines {
		lines = append(lines, "• "+plain(l.mark)+"  "+plain(l.text))
	}
	if s.more > 0 {
		lines = append(lines, "• "+omitted(s.more))
	}
	if s.note != "" {
		lines = append(lines, plain(s.note))
	}
	var all []string
	now := ""
	for _, l := range lines {
		if now != "" && length(now)+1+length(l) > maxText {
			all, now = append(all, now), ""
		}
		now = strings.TrimPrefix(now+"\n"+l, "\n")
	}
	return append(all, now)
}

// length returns the number of UTF-16 units of a text, as Slack counts at most.
func length(text string) (n int) {
	for _, r := range text {
		n += utf16.RuneLen(r)
	}
	return n
}

func clip(text string, most int) string {
	for length(text) > most {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}

// maxAlerted bounds the messages that an alert names.
const maxAlerted = 5

// Alert returns the message about urgent mail of an account: with mail the first
// messages, else their number.
func Alert(account string, urgent []wire.TriageBriefMessage, showsMail bool) Message {
	s := section{title: "Urgent mail in " + account}
	if showsMail {
		for _, m := range urgent[:min(len(urgent), maxAlerted)] {
			s.lines = append(s.lines, line{person(m.SenderName, m.Sender), cmp.Or(m.Subject, "(no subject)")})
		}
		if more := len(urgent) - len(s.lines); more > 0 {
			s.note = fmt.Sprintf("plus %d more", more)
		}
	} else {
		s.note = counted(len(urgent), "message") + " for you."
	}
	m := Message{Text: clip(plain(s.title), maxHeader)}
	for _, text := range texts(s) {
		m.Blocks = append(m.Blocks, block("section", text))
	}
	return m
}
