package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// threadAge is how far apart messages of one subject may be to be one thread.
const threadAge = 30 * 24 * time.Hour

// threads are the messages that those of a chunk may belong to: the stored ones,
// and those of the chunk itself.
type threads struct {
	byHeader  map[string][]*related
	byRef     map[string][]*related
	bySubject map[string][]*related
	// joined has the threads that turned out to be another one.
	joined map[uuid.UUID]uuid.UUID
	followUps
}

// related is a message that others may belong to.
type related struct {
	header, subject, sender string
	participants            []string
	thread                  uuid.UUID
	outgoing                bool
	received                time.Time
	bucket                  decide.Bucket
}

// thread is what a message belongs to.
type thread struct {
	id uuid.UUID
	// replyToMine says that the message names one of the owner, answers that it may
	// answer one in the thread, and replied that the owner answered its sender. Each
	// takes part in the conversation, since anybody can write the name of a message.
	replyToMine, answers, replied bool
	// ownerReplied says that the owner answered it, or what has its name.
	ownerReplied bool
	// amends is the bucket of the message that this one names; senders are those of
	// the messages that it names, that came in, and that it is addressed to.
	amends  decide.Bucket
	senders []string
}

func newThreads() *threads {
	return &threads{
		byHeader: map[string][]*related{}, byRef: map[string][]*related{}, bySubject: map[string][]*related{}, joined: map[uuid.UUID]uuid.UUID{},
		followUps: newFollowUps(),
	}
}

func (t *threads) put(r *related, refs []string) {
	if r.header != "" {
		t.byHeader[r.header] = append(t.byHeader[r.header], r)
	}
	for _, ref := range refs {
		t.byRef[ref] = append(t.byRef[ref], r)
	}
	if r.subject != "" {
		t.bySubject[r.subject] = append(t.bySubject[r.subject], r)
	}
}

// add makes a message of the chunk one that later ones may belong to.
func (t *threads) add(m messageRow) {
	t.put(&related{
		header: m.Header, subject: m.ThreadSubject, sender: m.Sender, participants: m.Participants, thread: m.Thread,
		outgoing: m.Outgoing, received: m.Received.Time,
	}, m.Refs)
}

// find returns the thread of a message. A message that belongs to several makes
// them one.
func (t *threads) find(m *mail, own []string) thread {
	var is thread
	var with []*related
	ours := participants(m.message)
	for _, id := range m.named {
		for _, r := range t.byHeader[id] {
			with = append(with, r)
			if m.participates(r) {
				is.replyToMine = is.replyToMine || r.outgoing
				is.amends = cmp.Or(is.amends, r.bucket)
			}
			if !r.outgoing && slices.Contains(ours, r.sender) && !slices.Contains(is.senders, r.sender) {
				is.senders = append(is.senders, r.sender)
			}
		}
	}
	if m.header != "" {
		for _, r := range t.byRef[m.header] {
			with = append(with, r)
			is.ownerReplied = is.ownerReplied || r.outgoing
			is.replied = is.replied || r.outgoing && m.participates(r)
		}
	}
	if len(with) == 0 {
		with = t.sameSubject(m, own)
	}
	for _, r := range with {
		is.answers = is.answers || r.outgoing && m.participates(r)
		id := t.now(r.thread)
		if is.id == (uuid.UUID{}) {
			is.id = id
		} else if id != is.id {
			t.joined[id] = is.id
			t.followUps.join(id, is.id)
		}
	}
	if is.id == (uuid.UUID{}) {
		is.id = uuid.Must(uuid.NewV7())
	}
	return is
}

// participates reports whether a message may speak in the conversation of another.
func (m *mail) participates(r *related) bool {
	var sender string
	if len(m.message.From) == 1 {
		sender = address(m.message.From[0])
	}
	return signal.Participates(m.authentication, sender, list(m.message), r.participants)
}

// sameSubject returns messages of the same subject within some time that share a
// participant, for an answer that names no message.
func (t *threads) sameSubject(m *mail, own []string) (with []*related) {
	subject := threadSubject(m.message.Subject)
	if subject == "" || len(m.named) > 0 || subject == message.Fold(m.message.Subject) {
		return nil // it is no answer
	}
	ours := participants(m.message)
	for _, r := range t.bySubject[subject] {
		shared := slices.ContainsFunc(r.participants, func(a string) bool { return slices.Contains(ours, a) && !slices.Contains(own, a) })
		if shared && m.item.Received.Sub(r.received).Abs() <= threadAge {
			with = append(with, r)
		}
	}
	return with
}

// now returns what a thread is by now.
func (t *threads) now(id uuid.UUID) uuid.UUID {
	for {
		next, ok := t.joined[id]
		if !ok {
			return id
		}
		id = next
	}
}
