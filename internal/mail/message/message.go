// Package message turns the bytes of a mail into what can be read and judged:
// headers, parts, the text that its reader sees, and a note of everything that
// was taken away. It never fails: whatever the bytes are, there is a Message,
// at worst with an empty text and warnings.
package message

import "time"

// Address is one address of a header.
type Address struct {
	Name string `json:"name,omitempty"`
	// Addr is the address in lower case, its domain in ASCII.
	Addr string `json:"addr"`
}

// Field is a header field as it was sent, unfolded and not decoded.
type Field struct{ Name, Value string }

// Message is a mail as it was understood.
type Message struct {
	// Identity is a SHA-256 digest over a canonical set of headers and the body.
	// Copies of one message on another server or in another folder have the same
	// identity; a message with a Message-ID of another message does not.
	Identity [32]byte

	// Fields are all header fields in the order in which they stand.
	Fields                        []Field
	From, Sender, ReplyTo, To, Cc []Address
	// Subject is decoded; invisible characters are removed and noted.
	Subject    string
	Date       time.Time // zero if it is missing or no date
	MessageID  string    // without the angle brackets, as InReplyTo and References
	InReplyTo  []string
	References []string

	// Text is all that is shown to a reader, as plain text: hidden content and
	// invisible characters are gone, quotes and signature are there. A link is
	// followed by the registrable domain of its target in brackets.
	Text string
	// Body is Text without quotes, signature, banners and forged markers of a
	// conversation with a model. It is what is judged, and empty only if Text is: a
	// text that is nothing but a quote is not shortened.
	Body string
	// Raw is the text of all parts with hidden content and invisible characters,
	// for detectors alone.
	Raw string
	// Language is an ISO 639-1 code; empty for short texts.
	Language string

	Links       []Link
	Hidden      []Hidden
	Pixels      int // tracking pixels
	Forms       int // HTML forms
	Attachments []Attachment
	// Calendar is the METHOD of an iCalendar part, such as REQUEST; empty without.
	Calendar string
	// Invisible counts invisible characters that were removed, by kind.
	Invisible Invisible

	// Notes say what each step removed, and Warnings what was broken.
	Notes    []Note
	Warnings []string
}

// Link is a link of the HTML or plain text.
type Link struct {
	Text, URL string
	// Host is in lower case and ASCII; Domain is its registrable domain.
	Host, Domain string
}

// Hidden is content that a reader does not see.
type Hidden struct {
	// Reason is the rule: "display:none", "visibility", "hidden", "opacity",
	// "font-size", "size", "position", "indent", "clip", "mso-hide", "transform" or
	// "color" for styles that hide, and "comment", "title" or the name of an element
	// such as "noscript" for what no program shows.
	Reason string
	Text   string
}

// Attachment is a part that is no text of the message.
type Attachment struct {
	Name     string `json:"name"`
	Declared string `json:"declared"` // media type as sent
	Detected string `json:"detected"` // media type by content
	Size     int64  `json:"size"`
	// Encrypted says that it is an archive whose entries are encrypted.
	Encrypted bool `json:"encrypted,omitempty"`
	Inline    bool `json:"inline,omitempty"`
}

// Invisible counts characters that do not show.
type Invisible struct {
	ZeroWidth, Bidi, Tags, Selectors, SoftHyphens, Other int
}

// Note says what a step removed.
type Note struct {
	// Step is html, unicode, quote, signature, banner or limit; Kind is the rule.
	Step       string `json:"step"`
	Kind       string `json:"kind"`
	Count      int    `json:"count"`
	Characters int    `json:"characters"`
}
