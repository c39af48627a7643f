package engine

import (
	"strings"
	"time"

	"github.com/google/uuid"
)

// followUpAge is how long the owner is taken to wait for an answer.
const followUpAge = 30 * 24 * time.Hour

// followUps is what the owner waits for in threads. Times are those at which
// messages were received.
type followUps struct {
	// asked is when the owner last asked something that nobody has answered, and
	// written when a person last wrote.
	asked, written map[uuid.UUID]time.Time
	// answered are the threads in which a message of the chunk answers the owner.
	answered map[uuid.UUID]time.Time
}

func newFollowUps() followUps {
	return followUps{asked: map[uuid.UUID]time.Time{}, written: map[uuid.UUID]time.Time{}, answered: map[uuid.UUID]time.Time{}}
}

// ask notes that the owner asked something in a thread, and reports whether it is
// still to be answered: backfill reads the answer first.
func (f followUps) ask(thread uuid.UUID, at time.Time) bool {
	if f.written[thread].After(at) {
		return false
	}
	later(f.asked, thread, at)
	return true
}

// waits reports whether the owner waits for an answer in a thread after a message
// came in. Only one that a person wrote who takes part in the thread answers it.
func (f followUps) waits(thread uuid.UUID, at time.Time, answers bool) bool {
	asked, open := f.asked[thread]
	if answers {
		later(f.written, thread, at)
		if open && at.After(asked) {
			f.answered[thread] = at
			delete(f.asked, thread)
			return false
		}
	}
	return open && at.Sub(asked) <= followUpAge
}

// join makes one thread of two.
func (f followUps) join(from, into uuid.UUID) {
	for _, times := range []map[uuid.UUID]time.Time{f.asked, f.written, f.answered} {
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

// endsQuestion reports whether a text has a question: a question mark that is no
// part of an address.
func endsQuestion(text string) bool {
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
