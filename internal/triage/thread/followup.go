package thread

import (
	"strings"
	"time"

	"github.com/google/uuid"
)

// followUpAge is how long the owner is taken to wait for an answer.
const followUpAge = 30 * 24 * time.Hour

// FollowUps is what the owner waits for in threads. Times are those at which
// messages were received.
type FollowUps struct {
	// Asked is when the owner last asked something that nobody has answered, and
	// Written when a person last wrote.
	Asked, Written map[uuid.UUID]time.Time
	// Answered are the threads in which a message of the chunk answers the owner.
	Answered map[uuid.UUID]time.Time
}

func newFollowUps() FollowUps {
	return FollowUps{Asked: map[uuid.UUID]time.Time{}, Written: map[uuid.UUID]time.Time{}, Answered: map[uuid.UUID]time.Time{}}
}

// Ask notes that the owner asked something in a thread, and reports whether it is
// still to be answered: backfill reads the answer first.
func (f FollowUps) Ask(thread uuid.UUID, at time.Time) bool {
	if f.Written[thread].After(at) {
		return false
	}
	later(f.Asked, thread, at)
	return true
}

// Waits reports whether the owner waits for an answer in a thread after a message
// came in. Only one that a person wrote who takes part in the thread answers it.
func (f FollowUps) Waits(thread uuid.UUID, at time.Time, answers bool) bool {
	asked, open := f.Asked[thread]
	if answers {
		later(f.Written, thread, at)
		if open && at.After(asked) {
			f.Answered[thread] = at
			delete(f.Asked, thread)
			return false
		}
	}
	return open && at.Sub(asked) <= followUpAge
}

// Join makes one thread of two.
func (f FollowUps) Join(from, into uuid.UUID) {
	for _, times := range []map[uuid.UUID]time.Time{f.Asked, f.Written, f.Answered} {
		if at, ok := times[from]; ok {
			later(times, into, at)
			delete(times, from)
		}
	}
}

// later sets a time unless there is a later one.
func later(times map[uuid.UUID]time.Time, thread uuid.UUID, at time.Time) {
	if at.After(times[thread]) {
		times[thread] = at
	}
}

// Asks reports whether a text has a question: a question mark that is no
// part of an address.
func Asks(text string) bool {
	for {
		_, after, found := strings.Cut(text, "?")
		if !found {
			return false
		}
		if after == "" || strings.ContainsAny(after[:1], " \t\r\n?!)\"'") {
			return true
		}
		text = after
	}
}
