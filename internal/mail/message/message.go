// Package message parses a mail into headers, parts, the text that its reader
// sees, and notes of everything removed. It never fails: any bytes give a
// Message, at worst one with an empty text and warnings.
package message

import (
	"time"

	"github.com/countersign-dev/countersign/internal/mail/message/markup"
)

// Address is one address of a header.
type Address struct {
	Name string `json:"name,omitempty"`
	// Addr is the address in lower case, its domain in ASCII.
	Addr string `json:"addr"`
}

// Field is a header field as sent, unfolded and not decoded.
type Field struct{ Name, Value string }

// Message is a parsed mail.
type Message struct {
	// Identity is a SHA-256 digest over a canonical set of headers and the
	// body. Copies of a message on another server or in another folder have the
	// same identity; another message with the same Message-ID does not.
	Identity [32]byte

	// Fields holds all header fields in order.
	Fields                        []Field
	From, Sender, ReplyTo, To, Cc []Address
	// Subject is decoded; invisible characters are removed and noted.
	Subject    string
	Date       time.Time // zero if missing or invalid
	MessageID  string    // without angle brackets, as InReplyTo and References
	InReplyTo  []string
	References []string

	// Text is the visible text as plain text, with quotes and signature,
	// without hidden content and invisible characters. A link is followed by
	// the registrable domain of its target in brackets.
	Text string
	// Body is Text without quotes, signature, banners and forged markers of a
	// conversation with a model. Tiers classify it. It is empty only if Text
	// is: a text that consists of quotes is kept whole.
	Body string
	// Raw is the text of all parts with hidden content and invisible
	// characters, for detectors only.
	Raw string
	// Language is an ISO 639-1 code; empty for short texts.
	Language string

	Links       []Link
	Hidden      []Hidden
	Pixels      int // tracking pixels
	Forms       int // HTML forms
	Attachments []Attachment
	// Calendar is the METHOD of an iCalendar part, such as REQUEST, or "".
	Calendar string
	// Event is the day of the only event of the iCalendar parts, at midnight UTC;
	// zero if there is none, more than one, a repeated or a cancelled one.
	Event time.Time
	// Calendars holds the iCalendar parts, at most three of 256 kB, without copies.
	Calendars []string
	// Data holds the structured data of the shown HTML.
	Data []markup.Item
	// Invisible counts the removed invisible characters by kind.
	Invisible Invisible

	// Notes lists the removals of each step, and Warnings the defects of the
	// mail.
	Notes    []Note
	Warnings []string
}

// Link is a link of the HTML or plain text.
type Link struct {
	Text, URL string
	// Host is in lower case and ASCII; Domain is its registrable domain.
	Host, Domain string
}

// Hidden is content that the reader does not see.
type Hidden struct {
	// Reason is the rule: "display:none", "visibility", "hidden", "opacity",
	// "font-size", "size", "position", "indent", "clip", "mso-hide",
	// "transform" or "color" for hiding styles, and "comment", "title" or the
	// name of an element such as "noscript" for content that no program shows.
	Reason string
	Text   string
}

// Attachment is a part that is not text of the message.
type Attachment struct {
	Name     string `json:"name"`
	Declared string `json:"declared"` // media type as sent
	Detected string `json:"detected"` // media type by content
	Size     int64  `json:"size"`
	// Encrypted reports whether it is an archive with encrypted entries.
	Encrypted bool `json:"encrypted,omitempty"`
	Inline    bool `json:"inline,omitempty"`
}

// Invisible counts invisible characters.
type Invisible struct {
	ZeroWidth, Bidi, Tags, Selectors, SoftHyphens, Other int
}

// Note is a removal of a step.
type Note struct {
	// Step is html, unicode, quote, signature, banner or limit; Kind is the rule.
	Step       string `json:"step"`
	Kind       string `json:"kind"`
	Count      int    `json:"count"`
	Characters int    `json:"characters"`
}
