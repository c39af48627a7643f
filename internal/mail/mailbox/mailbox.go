// Package mailbox owns the contract of reading and changing mailboxes: what a
// folder, a location and a state are, and what a Reader and a Writer do. The
// packages beside it implement the contract for IMAP, Maildir, mbox and folders
// of .eml files. It knows neither policy nor the database.
//
// Reading and changing are two types. A program that holds a Reader cannot
// change a mailbox, because a Reader has no method that does.
package mailbox

import (
	"encoding/json"
	"time"
)

// Use is what a folder is for, as IMAP's special-use attributes name it
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
	// UseOther is every other folder.
	UseOther Use = ""
)

// Folder is a folder of an account. Names are UTF-8; the levels of a name are
// separated as the account separates them.
type Folder struct {
	Name string
	Use  Use
}

// Location is where a message lies. It names a message only as long as nobody
// moves it; Key is comparable as text and opaque.
type Location struct {
	Folder string `json:"folder"`
	// Key is "UIDVALIDITY:UID" in IMAP, the base name of the file in a Maildir,
	// the offset in an mbox, name, size and time of an .eml file, and the server's
	// own id over MCP.
	Key string `json:"key"`
}

// Item is a message at a location, before its content is read.
type Item struct {
	Location
	// Flags are the flags and keywords as IMAP writes them ("\\Seen",
	// "$Important", "Countersign_receipts"), as Flags returns them.
	Flags []string
	// Received is INTERNALDATE, or the time of the file.
	Received time.Time
	// Size is in bytes, or 0 if it is not known.
	Size int64
	// Built says that the bytes that Read gave were put together from some fields
	// and the text, because the account does not give the original: nothing in them
	// proves who sent them, and no digest of them finds the message elsewhere.
	Built bool
	// Unusable, if not empty, says why the account's listing of the message cannot be
	// used. Such a message has no Key, or one with which Read may still find it.
	Unusable string
}

// Cursor says how far a folder was read. It is written by a Reader and read by
// the same kind of Reader alone. The zero value is before everything.
type Cursor json.RawMessage

// Changes is what happened in a folder since a cursor.
type Changes struct {
	// New are messages that were not there, oldest first. A message may come more
	// than once, in particular at the border of two cursors.
	New []Item
	// Flagged are messages whose flags may have changed. Some of them may be
	// messages that the caller does not know, since it has not read them yet.
	Flagged []Item
	// Gone are locations at which there is nothing any more.
	Gone []Location
	// Reset says that all earlier locations of the folder are void (another
	// UIDVALIDITY, an mbox that was rewritten): New, of this call and of those that
	// follow while there is More, then holds every message.
	Reset bool
	// Next is the cursor to store in the transaction that stores the changes.
	Next Cursor
	// More says that there is more than the limit allowed: call again with Next.
	More bool
}

// State is what a Writer can restore: where a message lies and its flags.
type State struct {
	Location
	Flags []string `json:"flags"`
}

// Change is what to do to one message. Zero fields change nothing.
type Change struct {
	// MoveTo is a folder. It must be there.
	MoveTo string
	// Add and Remove are flags and keywords.
	Add, Remove []string
}
