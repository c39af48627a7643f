package thread

import (
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/internal/triage/decide"
)

// threadAge is the longest time between messages with the same subject in one
// thread.
const threadAge = 30 * 24 * time.Hour

// Threads holds the messages that those of a chunk may be related to: stored
// ones and those of the chunk itself.
type Threads struct {
	FollowUps FollowUps
	byID      map[string][]*Related
	byName    map[string][]*Related
	bySubject map[string][]*Related
	// joined maps threads to the threads that they were joined with.
	joined map[uuid.UUID]uuid.UUID
}

// Related is a message that others may be related to.
type Related struct {
	Message
	Thread   uuid.UUID
	Outgoing bool
	Bucket   decide.Bucket
}

// Thread is the thread of a message and its relation to the owner.
type Thread struct {
	ID uuid.UUID
	// ReplyToMine reports whether the message refers to one of the owner,
	// Answers whether it may answer one in the thread, and replied whether the
	// owner answered its sender. Each requires that the sender takes part in
	// the conversation, since anybody can refer to a Message-ID.
	ReplyToMine, Answers, replied bool
	// OwnerReplied reports whether the owner answered it, or a message with its
	// Message-ID.
	OwnerReplied bool
	// Amends is the bucket of the message that this one refers to. senders are
	// the senders of the received messages that it refers to and is addressed
	// to.
	Amends  decide.Bucket
	senders []string
}

// New returns Threads without messages.
func New() *Threads {
	return &Threads{
		byID: map[string][]*Related{}, byName: map[string][]*Related{}, bySubject: map[string][]*Related{}, joined: map[uuid.UUID]uuid.UUID{},
		FollowUps: newFollowUps(),
	}
}

// Add adds a message that others may be related to.
func (t *Threads) Add(r *Related) {
	if r.ID != "" {
		t.byID[r.ID] = append(t.byID[r.ID], r)
	}
	for _, name := range r.Names {
		t.byName[name] = append(t.byName[name], r)
	}
	if r.ThreadSubject != "" {
		t.bySubject[r.ThreadSubject] = append(t.bySubject[r.ThreadSubject], r)
	}
}

// Find returns the thread of a message. If the message belongs to several
// threads, it joins them. own are the addresses of the owner.
func (t *Threads) Find(m *Message, own []string) Thread {
	var is Thread
	var with []*Related
	for _, id := range m.Names {
		for _, r := range t.byID[id] {
			with = append(with, r)
			if m.participates(r) {
				is.ReplyToMine = is.ReplyToMine || r.Outgoing
				is.Amends = cmp.Or(is.Amends, r.Bucket)
			}
			if !r.Outgoing && slices.Contains(m.Participants, r.Sender) && !slices.Contains(is.senders, r.Sender) {
				is.senders = append(is.senders, r.Sender)
			}
		}
	}
	if m.ID != "" {
		for _, r := range t.byName[m.ID] {
			with = append(with, r)
			is.OwnerReplied = is.OwnerReplied || r.Outgoing
			is.replied = is.replied || r.Outgoing && m.participates(r)
		}
	}
	if len(with) == 0 {
		with = t.sameSubject(m, own)
	}
	for _, r := range with {
		is.Answers = is.Answers || r.Outgoing && m.participates(r)
		id := t.now(r.Thread)
		if is.ID == (uuid.UUID{}) {
			is.ID = id
		} else if id != is.ID {
			t.joined[id] = is.ID
			t.FollowUps.Join(id, is.ID)
		}
	}
	if is.ID == (uuid.UUID{}) {
		is.ID = uuid.Must(uuid.NewV7())
	}
	return is
}

// sameSubject returns recent messages of the same subject that share a
// participant, for a reply that refers to no message.
func (t *Threads) sameSubject(m *Message, own []string) (with []*Related) {
	if !m.answers() {
		return nil
	}
	for _, r := range t.bySubject[m.ThreadSubject] {
		shared := slices.ContainsFunc(r.Participants, func(a string) bool { return slices.Contains(m.Participants, a) && !slices.Contains(own, a) })
		if shared && m.Received.Sub(r.Received.Time).Abs() <= threadAge {
			with = append(with, r)
		}
	}
	return with
}

// Joined returns the joined threads by the thread that they were joined into.
func (t *Threads) Joined() map[uuid.UUID][]uuid.UUID {
	into := map[uuid.UUID][]uuid.UUID{}
	for other := range t.joined {
		id := t.now(other)
		into[id] = append(into[id], other)
	}
	return into
}

// now returns the thread that a thread was joined into, or itself.
func (t *Threads) now(id uuid.UUID) uuid.UUID {
	for {
		next, ok := t.joined[id]
		if !ok {
			return id
		}
		id = next
	}
}
