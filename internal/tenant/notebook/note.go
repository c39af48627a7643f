// Package notebook owns the notes that agents store with a built-in tool. It
// does not change or delete notes.
package notebook

import (
	"time"

	"github.com/google/uuid"
)

// ID identifies a note. The order of ids is that of time.
type ID uuid.UUID

// String returns the 36 characters of the usual form, in lower case.
func (id ID) String() string { return uuid.UUID(id).String() }

// MarshalText returns the same as String and never an error.
func (id ID) MarshalText() ([]byte, error) { return uuid.UUID(id).MarshalText() }

// UnmarshalText reads the usual form.
func (id *ID) UnmarshalText(text []byte) error { return (*uuid.UUID)(id).UnmarshalText(text) }

// Note is a text that an agent wanted to be kept.
type Note struct {
	ID ID `json:"note_id"`
	// Source is the source whose tool was called.
	Source string `json:"source"`
	// Key is the idempotency key of the call, the same for every attempt of an
	// action. The action has the note's id as its provider_id.
	Key       string    `json:"key"`
	Text      string    `json:"text"`
	CreatedAt time.Time `json:"created_at"`
}
