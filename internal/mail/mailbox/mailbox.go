// Package mailbox owns the contract of reading and changing mailboxes: folders,
// locations, states, Reader and Writer. Its sibling packages implement the
// contract for IMAP, Maildir, mbox and folders of .eml files. It imports
// neither policy nor the database.
//
// Reading and changing are two types. A program that holds a Reader cannot
// change a mailbox, because a Reader has no method that does.
package mailbox

import (
	"encoding/json"
	"fmt"
	"time"
)

// Use is the purpose of a folder, named as in IMAP's special-use attributes
// (RFC 6154).
type Use string

// The uses.
const (
	UseInbox   Use = "inbox"
	UseSent    Use = "sent"
	UseDrafts  Use = "drafts"
	UseArchive Use = "archive"
	UseTrash   Use = "trash"
	UseJunk    Use = "junk"
	UseAll     Use = "all"
	// UseSnoozed holds messages that return to their folder at a later time.
	UseSnoozed Use = "snoozed"
	// UseOther is every other folder.
	UseOther Use = ""
)

// Folder is a folder of an account. Names are UTF-8, with the account's
// separator between levels.
type Folder struct {
	Name string
	Use  Use
}

// Location is the place of a message. It identifies the message only until it
// is moved; Key is opaque and comparable as text.
type Location struct {
	Folder string `json:"folder"`
	// Key is "UIDVALIDITY:UID" in IMAP, the base name of the file in a Maildir,
	// the offset in an mbox, name, size and time of an .eml file, and the
	// server's own id over MCP.
	Key string `json:"key"`
}

// Item is a message at a location, before its content is read.
type Item struct {
	Location
	// Flags are the flags and keywords in IMAP's notation ("\\Seen",
	// "$Important", "Countersign_receipts"), normalised by Flags.
	Flags []string
	// Received is INTERNALDATE, or the time of the file.
	Received time.Time
	// Size is in bytes, or 0 if it is not known.
	Size int64
	// Built reports whether the bytes that Read returned were put together from
	// fields and text, because the account does not return the original. Then
	// they prove nothing about the sender, and their digest does not find the
	// message elsewhere.
	Built bool
	// Unusable, if not empty, is the reason why the account's listing of the
	// message cannot be used. Such a message has no Key, or one with which Read
	// may still find it.
	Unusable string
}

// Cursor is the position in a folder. Only a Reader of the same kind can read
// it. The zero value is before everything.
type Cursor json.RawMessage

// ParseCursor decodes the position of a folder of some kind; the zero Cursor is the
// zero T. The error is ErrInvalid unless the position is valid.
func ParseCursor[T any](text Cursor, kind string, valid func(T) bool) (position T, err error) {
	if len(text) == 0 {
		return position, nil
	}
	if err := json.Unmarshal(text, &position); err != nil || !valid(position) {
		return position, fmt.Errorf("cursor of %s: %w", kind, ErrInvalid)
	}
	return position, nil
}

// Changes holds the changes of a folder since a cursor.
type Changes struct {
	// New holds new messages, oldest first. A message may be repeated, in
	// particular at the border of two cursors.
	New []Item
	// Flagged holds messages whose flags may have changed. It may include
	// messages that the caller has not read yet.
	Flagged []Item
	// Gone holds the locations that are empty now.
	Gone []Location
	// Reset reports whether all earlier locations of the folder are void
	// (another UIDVALIDITY, a rewritten mbox). New, in this call and those that
	// follow while there is More, then holds every message.
	Reset bool
	// Next is the cursor to store in the transaction that stores the changes.
	Next Cursor
	// More reports whether the limit cut the changes: call again with Next.
	More bool
}

// State is the part of a message that a Writer can restore: its location and
// its flags.
type State struct {
	Location
	Flags []string `json:"flags"`
}

// Change is a change of one message. Zero fields change nothing.
type Change struct {
	// MoveTo is an existing folder.
	MoveTo string
	// Add and Remove are flags and keywords.
	Add, Remove []string
}
