package thread

import (
	"strings"
	"time"

	"github.com/google/uuid"
)

// followUpAge is how long the owner waits for an answer.
const followUpAge = 30 * 24 * time.Hour

// FollowUps holds the answers that the owner waits for in threads. Times are
// those at which messages were received.
type FollowUps struct {
	// Asked is the time of the owner's last unanswered question, and Written
	// that of the last message by a person.
	Asked, Written map[uuid.UUID]time.Time
	// Answered holds the threads in which a message of the chunk answers the
	// owner.
	Answered map[uuid.UUID]time.Time
}

func newFollowUps() FollowUps {
	return FollowUps{Asked: map[uuid.UUID]time.Time{}, Written: map[uuid.UUID]time.Time{}, Answered: map[uuid.UUID]time.Time{}}
}

// Ask records a question of the owner in a thread, and reports whether it is
// unanswered: backfill reads the answer first.
func (f FollowUps) Ask(thread uuid.UUID, at time.Time) bool {
	if f.Written[thread].After(at) {
		return false
	}
	later(f.Asked, thread, at)
	return true
}

// Waits reports whether the owner waits for an answer in a thread after a
// message arrived. Only a message of a person who takes part in the thread is
// an answer.
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

// Join joins two threads.
func (f FollowUps) Join(from, into uuid.UUID) {
	for _, times := range []map[uuid.UUID]time.Time{f.Asked, f.Written, f.Answered} {
		if at, ok := times[from]; ok {
			later(times, into, at)
			delete(times, from)
		}
	}
}

// later sets a time unless a later one is set.
func later(times map[uuid.UUID]time.Time, thread uuid.UUID, at time.Time) {
	if at.After(times[thread]) {
		times[thread] = at
	}
}

// Asks reports whether a text contains a question: a question mark outside an
// address.
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
