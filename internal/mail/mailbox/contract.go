package mailbox

import "context"

// Reader reads one account. It is not safe for concurrent use. Every method
// ends soon after ctx does. Apart from ctx's, an error is of a kind of this
// package where the method documents it; every other error is an outage, and
// the same call may succeed later.
type Reader interface {
	// Folders returns the folders of the account that can hold messages.
	Folders(ctx context.Context) ([]Folder, error)
	// End returns the cursor after everything in the folder, for a caller that
	// reads new messages with Changes and existing ones with Older.
	End(ctx context.Context, folder string) (Cursor, error)
	// Changes returns the changes of a folder since the cursor, with at most
	// limit new messages. known returns the caller's locations in that folder,
	// for servers that do not report deletions; it is called only if needed and
	// at most once.
	Changes(ctx context.Context, folder string, since Cursor, limit int, known func(context.Context) ([]Location, error)) (Changes, error)
	// Older returns up to limit messages before a cursor of its own, newest
	// first, and the cursor for the next call; an empty list at the end.
	// Backfill uses it. If all locations of the folder became void, it begins
	// again at the newest.
	Older(ctx context.Context, folder string, before Cursor, limit int) ([]Item, Cursor, error)
	// Read calls each once for every item, in any order, with the bytes of the
	// message, which the callee may keep. It does not mark messages as read. It
	// reports a message over the reader's limit by ErrTooLarge, a deleted one
	// by ErrGone, an unreadable one by ErrUnreadable. An error from each stops
	// Read. The item's Built describes the bytes.
	Read(ctx context.Context, items []Item, each func(item Item, raw []byte, err error) error) error
	// Wait returns when something may have changed in one of the folders since
	// the last Wait for it, or when the reader's polling interval is over. The
	// first Wait for a folder may return immediately. It returns ctx's error
	// when ctx ends first.
	Wait(ctx context.Context, folders []string) error
	Close() error
}

// Identify computes the identity of a message from its bytes; message.Identity
// is one. A Writer needs it because anyone can write a Message-ID.
type Identify func(raw []byte) []byte

// Writer changes one account. It is not safe for concurrent use. After an error
// that is not a kind of this package, the outcome is unknown until Find.
type Writer interface {
	// Find returns the state of the message with the given identity. It tries
	// the location first, then searches that folder and all others for the
	// Message-ID (without angle brackets), and returns ErrGone if no folder has
	// it. Without a Message-ID it tries the location only.
	Find(ctx context.Context, at Location, messageID string, identity []byte) (State, error)
	// Change changes the message at a location and returns its new state; a
	// moved message has another Key. Nothing is changed if it fails with
	// ErrChanged (the flags differ from the expected state), ErrGone (the
	// location is empty), ErrNoFolder (MoveTo does not exist) or ErrUnsupported
	// (the account cannot store a keyword or cannot move safely).
	Change(ctx context.Context, expected State, change Change) (State, error)
	// Append stores a message and returns its location. If the folder already
	// has the Message-ID, it returns ErrExists and that location.
	Append(ctx context.Context, folder string, flags []string, raw []byte) (Location, error)
	// Content returns the bytes of the message at a location, or ErrGone. The
	// message stays unread.
	Content(ctx context.Context, at Location) ([]byte, error)
	// Locate returns the location of a message of a folder with a Message-ID
	// (without angle brackets), or ErrGone.
	Locate(ctx context.Context, folder, messageID string) (Location, error)
	// Folders returns the folders of the account that can hold messages.
	Folders(ctx context.Context) ([]Folder, error)
	Close() error
}
