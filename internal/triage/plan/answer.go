package plan

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/visible"
)

const (
	// maxReferences limits the messages in the References of a reply, of which
	// it keeps the newest, and maxSubject the bytes of its subject.
	maxReferences = 20
	maxSubject    = 800
)

// identifierForm matches a Message-ID that the source of kind mail accepts.
var identifierForm = regexp.MustCompile(`^[!-;=?-~]+@[!-;=?-~]+$`)

// Answer returns the proposal of a draft that replies to a message. Its text is
// from a model; recipient, subject and conversation are from the header. number
// distinguishes drafts of one message, so that each is proposed once. With
// confirm, a person has to approve the draft before it is stored.
func Answer(text string, number int64, confirm bool, on Target, c Config) (Proposal, error) {
	if on.Built {
		return Proposal{}, errors.New("the account does not return the original of the message, so the recipient of a reply is unproven")
	}
	account, err := FromConfig(c, "/account")
	if err != nil {
		return Proposal{}, err
	}
	to, err := recipient(on.Message)
	if err != nil {
		return Proposal{}, err
	}
	subject, err := replySubject(on.Message)
	if err != nil {
		return Proposal{}, err
	}
	written, err := FromModel(text)
	if err != nil {
		return Proposal{}, err
	}
	fields := []Field{{"/account", account}, {"/to/0", to}, {"/subject", subject}, {"/text", written}}
	fields = append(fields, conversation(on.Message)...)
	if err := Check(ToolDraft, fields); err != nil {
		return Proposal{}, err
	}
	return Proposal{
		Action: decide.Draft, Parts: []Part{{Action: decide.Draft}}, Source: c.Source, Tool: ToolDraft, Fields: fields, Confirm: confirm,
		ExternalID: ExternalID(c.Account, on.Message.Identity, decide.Draft, strconv.FormatInt(number, 10)),
	}, nil
}

// Recipient returns the address that a reply to a message goes to, or "" if there
// is none.
func Recipient(m *message.Message) string {
	to, err := recipient(m)
	if err != nil {
		return ""
	}
	return to.text
}

// recipient returns the address that a reply goes to: Reply-To if it is of the
// domain of From, else From. Another domain in Reply-To is a way to divert
// replies.
func recipient(m *message.Message) (Value, error) {
	if len(m.From) != 1 {
		return Value{}, errors.New("the message does not have exactly one sender")
	}
	if len(m.ReplyTo) == 1 && strings.EqualFold(domainOf(m.ReplyTo[0].Addr), domainOf(m.From[0].Addr)) {
		return FromHeader(m, HeaderReplyTo, 0)
	}
	return FromHeader(m, HeaderFrom, 0)
}

func domainOf(address string) string { return address[strings.LastIndexByte(address, '@')+1:] }

// replySubject returns the subject of a reply to a message.
func replySubject(m *message.Message) (Value, error) {
	subject := strings.TrimSpace(m.Subject)
	if len(subject) < 3 || !strings.EqualFold(subject[:3], "re:") {
		subject = strings.TrimSpace("Re: " + subject)
	}
	subject, _ = visible.Cut(subject, maxSubject)
	return line(Value{subject, Header, string(HeaderSubject) + "/0"})
}

// conversation returns the fields that refer to the answered message. They are
// omitted if its Message-ID is invalid.
func conversation(m *message.Message) (fields []Field) {
	if !identifierForm.MatchString(m.MessageID) {
		return nil
	}
	id, err := FromHeader(m, HeaderMessageID, 0)
	if err != nil {
		return nil
	}
	fields = append(fields, Field{"/in_reply_to", id})
	from, next := max(0, len(m.References)-maxReferences+1), 0
	for i := from; i < len(m.References); i++ {
		if v, err := FromHeader(m, HeaderReferences, i); err == nil && identifierForm.MatchString(v.text) {
			fields = append(fields, Field{fmt.Sprintf("/references/%d", next), v})
			next++
		}
	}
	return append(fields, Field{fmt.Sprintf("/references/%d", next), id})
}
