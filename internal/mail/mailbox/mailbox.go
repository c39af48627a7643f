// Package mailbox owns the contract of reading and changing mailboxes: what a
// folder, a location and a state are, and what a Reader and a Writer do. The
// packages beside it implement the contract for IMAP, Maildir, mbox and folders
// of .eml files. It knows neither policy nor the database.
//
// Reading and changing are two types. A program that holds a Reader cannot
// change a mailbox, because a Reader has no method that does.
package mailbox

import (
	"context"
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

// Folder is a folder of an account.
type Folder struct {
	Name string
	Use  Use
}

// Location is where a message lies. It names a message only as long as nobody
// moves it; Key is comparable as text and opaque.
type Location struct {
	Folder string `json:"folder"`
	// Key is "UIDVALIDITY:UID" in IMAP, the base name of the file in a Maildir,
	// the offset in an mbox, the name of an .eml file.
	Key string `json:"key"`
}

// Item is a message at a location, before its content is read.
type Item struct {
	Location
	// Flags are the flags and keywords as IMAP writes them ("\\Seen",
	// "$Important", "Countersign_receipts"), sorted.
	Flags []string
	// Received is INTERNALDATE, or the time of the file.
	Received time.Time
	// Size is in bytes.
	Size int64
}

// Cursor says how far a folder was read. It is written by a Reader and read by
// the same kind of Reader alone. The zero value is before everything.
type Cursor json.RawMessage

// Changes is what happened in a folder since a cursor.
type Changes struct {
	// New are messages that were not there, oldest first.
	New []Item
	// Flagged are messages whose flags may have changed.
	Flagged []Item
	// Gone are locations at which there is nothing any more.
	Gone []Location
	// Reset says that all earlier locations of the folder are void (another
	// UIDVALIDITY, an mbox that was rewritten): New then holds every message.
	Reset bool
	// Next is the cursor to store in the transaction that stores the changes.
	Next Cursor
	// More says that there is more than the limit allowed: call again with Next.
	More bool
}

// Reader reads one account. It is not safe for concurrent use. Every method
// ends soon after ctx does.
type Reader interface {
	// Folders returns the folders of the account.
	Folders(ctx context.Context) ([]Folder, error)
	// Changes returns what happened in a folder since the cursor, with at most
	// limit new messages. known are the locations that the caller believes in, for
	// servers that do not tell what went; it is asked only where that is needed.
	Changes(ctx context.Context, folder string, since Cursor, limit int, known func(context.Context) ([]Location, error)) (Changes, error)
	// Older returns up to limit messages before a cursor of its own, newest first,
	// and the cursor for the next call; an empty list at the end. Backfill uses it.
	Older(ctx context.Context, folder string, before Cursor, limit int) ([]Item, Cursor, error)
	// Read calls each with the bytes of every message, in any order, without
	// marking it as read. Messages over the reader's limit of bytes, and messages
	// that are gone, are reported by an error of kind ErrTooLarge or ErrGone; each
	// returns an error to stop.
	Read(ctx context.Context, items []Item, each func(item Item, raw []byte, err error) error) error
	// Wait returns when something may have changed in one of the folders, or when
	// the reader's interval of looking is over. It returns ctx's error when ctx
	// ends first.
	Wait(ctx context.Context, folders []string) error
	Close() error
}

// State is what a Writer can restore: where a message lies and its flags. Two
// states are equal if folder and flags are, whatever the key.
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

// Writer changes one account. It is not safe for concurrent use.
type Writer interface {
	// Find returns the state of the message with the given identity
	// (message.Identity), looking first at the location, then for the Message-ID in
	// all folders; ErrGone if it is nowhere.
	Find(ctx context.Context, at Location, messageID string, identity []byte) (State, error)
	// Change changes the message at a location and returns its state after. It
	// fails with ErrChanged if the flags are not those of the expected state.
	Change(ctx context.Context, expected State, change Change) (State, error)
	// Append stores a message, and returns its location. With a Message-ID that is
	// in the folder already, it returns ErrExists and that location.
	Append(ctx context.Context, folder string, flags []string, raw []byte) (Location, error)
	// Folders returns the folders of the account.
	Folders(ctx context.Context) ([]Folder, error)
	Close() error
}
