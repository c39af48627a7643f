package plan

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/decide"
)

// Origin is the source of a field's value.
type Origin string

// The origins.
const (
	// Header is the header of the message and its location.
	Header Origin = "header"
	// Configured is the configuration of the account.
	Configured Origin = "config"
	// Templated is a fixed text with enumerated words.
	Templated Origin = "template"
	// Enumerated is a word of a fixed list.
	Enumerated Origin = "enum"
	// Calendar is the day of the event of the message, in a form of ours.
	Calendar Origin = "calendar"
	// ModelText is text that a language model wrote.
	ModelText Origin = "model_text"
	// Span is a part of the text of a message that its owner tagged, or a date in
	// such a part. No proposal that triage makes by itself takes one.
	Span Origin = "span"
	// Literal is a number or a boolean of the configuration of an action, in JSON.
	Literal Origin = "literal"
)

// Origins returns all origins.
func Origins() []Origin {
	return []Origin{Header, Configured, Templated, Enumerated, Calendar, ModelText}
}

// Value is a text with its origin. Only functions of this package return one,
// so that a value cannot have a false origin. The zero value has no origin and
// is rejected everywhere.
type Value struct {
	text   string
	origin Origin
	ref    string
}

// Text returns the value, in at most 998 bytes unless it is the text of a mail.
func (v Value) Text() string { return v.text }

// Origin returns the origin of the text.
func (v Value) Origin() Origin { return v.origin }

// Ref returns the exact reference: a header field, a pointer into the
// configuration, or the name of a template or of a list.
func (v Value) Ref() string { return v.ref }

// HeaderName is the name of a header field with usable values.
type HeaderName string

// The header fields.
const (
	HeaderFrom       HeaderName = "From"
	HeaderReplyTo    HeaderName = "Reply-To"
	HeaderTo         HeaderName = "To"
	HeaderCc         HeaderName = "Cc"
	HeaderSubject    HeaderName = "Subject"
	HeaderMessageID  HeaderName = "Message-ID"
	HeaderReferences HeaderName = "References"
)

// FromHeader returns the value at an index of a header field: an address, an
// identifier, or the subject.
func FromHeader(m *message.Message, name HeaderName, at int) (Value, error) {
	addresses := func(all []message.Address) []string {
		var texts []string
		for _, a := range all {
			texts = append(texts, a.Addr)
		}
		return texts
	}
	var all []string
	switch name {
	case HeaderFrom:
		all = addresses(m.From)
	case HeaderReplyTo:
		all = addresses(m.ReplyTo)
	case HeaderTo:
		all = addresses(m.To)
	case HeaderCc:
		all = addresses(m.Cc)
	case HeaderSubject:
		all = []string{m.Subject}
	case HeaderMessageID:
		all = []string{m.MessageID}
	case HeaderReferences:
		all = m.References
	}
	if at < 0 || at >= len(all) {
		return Value{}, fmt.Errorf("the header field %s has no value %d", name, at)
	}
	return line(Value{all[at], Header, fmt.Sprintf("%s/%d", name, at)})
}

// located returns the location of a message and its identity.
func located(at mailbox.Location, m *message.Message) (folder, key, identity Value, err error) {
	if folder, err = line(Value{at.Folder, Header, "mailbox/folder"}); err != nil {
		return
	}
	if key, err = line(Value{at.Key, Header, "mailbox/key"}); err != nil {
		return
	}
	return folder, key, Value{hex.EncodeToString(m.Identity[:]), Header, "mailbox/identity"}, nil
}

// FromConfig returns the value at a pointer of an account's configuration, such
// as /labels/receipts.
func FromConfig(c Config, pointer string) (Value, error) {
	text, ok := c.at(pointer)
	if !ok || text == "" {
		return Value{}, fmt.Errorf("the configuration of the account has nothing at %s", pointer)
	}
	if pointer == "/away/text" {
		return printable(Value{text, Configured, pointer}, "\n\t")
	}
	return line(Value{text, Configured, pointer})
}

// Vocabulary is a fixed list of words.
type Vocabulary struct {
	name  string
	words []string
}

// Categories returns the vocabulary of categories.
func Categories() Vocabulary {
	return Vocabulary{"categories", []string{
		string(classify.Primary), string(classify.Newsletters), string(classify.Notifications),
		string(classify.Promotions), string(classify.Receipts), string(classify.Social),
	}}
}

// Flags returns the vocabulary of the flags that triage may set.
func Flags() Vocabulary { return Vocabulary{"flags", []string{mailbox.FlagFlagged}} }

// Enum returns a word of a vocabulary.
func Enum(v Vocabulary, word string) (Value, error) {
	if !slices.Contains(v.words, word) {
		return Value{}, fmt.Errorf("unknown word for %s", v.name)
	}
	return Value{word, Enumerated, v.name}, nil
}

// TemplateName is the name of a template, one of the constants below.
type TemplateName string

// LabelTemplate is the label of a category without a configured label.
const LabelTemplate TemplateName = "label"

// templates returns the fixed texts of every template; there is a slot between
// two of them.
func templates() map[TemplateName][]string {
	return map[TemplateName][]string{LabelTemplate: {"", ""}}
}

// Template fills the slots of a template. A slot accepts only an enumerated
// word.
func Template(name TemplateName, slots ...Value) (Value, error) {
	texts, ok := templates()[name]
	if !ok || len(slots) != len(texts)-1 {
		return Value{}, fmt.Errorf("unknown template %q with %d slots", name, len(slots))
	}
	var b strings.Builder
	for i, text := range texts {
		b.WriteString(text)
		if i == len(slots) {
			break
		}
		if slots[i].origin != Enumerated {
			return Value{}, fmt.Errorf("slot %d of the template %q takes a word of a fixed list, not a value of the origin %q", i, name, slots[i].origin)
		}
		b.WriteString(slots[i].text)
	}
	return Value{b.String(), Templated, string(name)}, nil
}

// FromCalendar returns the time of a snooze, which follows from the day of the
// message's event.
func FromCalendar(at time.Time) (Value, error) {
	if at.IsZero() {
		return Value{}, errors.New("the message is about no later event")
	}
	return Value{at.UTC().Format(time.RFC3339), Calendar, "event"}, nil
}

// FromModel returns text that a language model wrote.
func FromModel(text string) (Value, error) {
	return printable(Value{text, ModelText, ""}, "\n\t")
}

// maxLine is the source's limit for a Message-ID, here in bytes.
const maxLine = 998

// line accepts a value that is one line of text.
func line(v Value) (Value, error) {
	if v.text == "" || len(v.text) > maxLine {
		return Value{}, fmt.Errorf("the value of %s is empty or longer than %d bytes", v.ref, maxLine)
	}
	return printable(v, "")
}

// printable accepts a value without control characters other than those in but.
func printable(v Value, but string) (Value, error) {
	control := func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune(but, r) }
	if !utf8.ValidString(v.text) || strings.ContainsFunc(v.text, control) {
		return Value{}, fmt.Errorf("the value of %s contains unprintable characters", v.ref)
	}
	return v, nil
}

// asksForAction reports whether a label requests an action on the message. Only
// people may set such labels.
func asksForAction(label string) bool {
	return decide.IsActionTag(label) || decide.IsActionTag("countersign_"+label)
}
