// Package thread holds the stored values of messages. It groups messages into
// threads, and tracks the answers that an owner waits for and the history of
// senders. Every value is bounded, so that it can be stored. The package reads
// neither a mailbox nor the database.
package thread

import (
	"slices"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/authenticate"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// Message holds the stored values of a message.
type Message struct {
	// ID is its Message-ID, Names are the Message-IDs that it refers to, and
	// ThreadSubject is its subject without the prefixes of replies.
	ID            string   `json:"header_id"`
	Names         []string `json:"refs"`
	ThreadSubject string   `json:"thread_subject"`
	Participants  []string `json:"participants"`
	Sender        string   `json:"sender"`
	SenderName    string   `json:"sender_name"`
	List          string   `json:"list"`
	Subject       string   `json:"subject"`
	Body          string   `json:"body"`
	Sent          *Instant `json:"sent_at"`
	// SentOffset is the offset of the sender's clock from UTC in seconds.
	SentOffset *int    `json:"sent_offset"`
	Received   Instant `json:"received_at"`

	parsed         *message.Message
	authentication authenticate.Result
}

// maxOffset is the largest offset of a zone from UTC, in seconds.
const maxOffset = 14 * 60 * 60

// Of returns the stored values of a message.
func Of(m *message.Message, received time.Time, a authenticate.Result) Message {
	t := Message{
		ID: identifier(m.MessageID), Names: []string{}, ThreadSubject: postgres.Clip(message.ThreadSubject(m.Subject), maxThreadSubject),
		Participants: participants(m), List: list(m), Subject: postgres.Clip(m.Subject, maxSubject), Body: postgres.Clip(m.Body, maxBody),
		Sent: sentAt(m.Date), Received: InstantOf(received), parsed: m, authentication: a,
	}
	if _, offset := m.Date.Zone(); t.Sent != nil && offset >= -maxOffset && offset <= maxOffset {
		t.SentOffset = &offset
	}
	for _, id := range slices.Concat(m.InReplyTo, m.References) {
		if id = identifier(id); id != "" && !slices.Contains(t.Names, id) && len(t.Names) < maxNamed {
			t.Names = append(t.Names, id)
		}
	}
	if len(m.From) > 0 {
		t.Sender, t.SenderName = address(m.From[0]), postgres.Clip(m.From[0].Name, maxName)
	}
	return t
}

// Addresses returns the keys of the participants and the list in Senders.
func (m *Message) Addresses() []string {
	if m.List == "" {
		return m.Participants
	}
	return append(slices.Clone(m.Participants), listAddress(m.List))
}

// participates reports whether a message may take part in the conversation of
// another.
func (m *Message) participates(r *Related) bool {
	sender := m.Sender
	if len(m.parsed.From) != 1 {
		sender = ""
	}
	return signal.Participates(m.authentication, sender, m.List, r.Participants)
}

// answers reports whether the subject is that of a reply which refers to no
// message.
func (m *Message) answers() bool {
	return m.ThreadSubject != "" && len(m.Names) == 0 && m.ThreadSubject != message.Fold(m.parsed.Subject)
}
