package mailbox

import "context"

// Reader reads one account. It is not safe for concurrent use. Every method
// ends soon after ctx does. An error other than ctx's is one of this package's
// kinds where it says so, and else an outage: the same call may succeed later.
type Reader interface {
	// Folders returns the folders of the account that can hold messages.
	Folders(ctx context.Context) ([]Folder, error)
	// End returns the cursor behind everything that is in the folder now, for a
	// caller that reads from now on with Changes, and what was before with Older.
	End(ctx context.Context, folder string) (Cursor, error)
	// Changes returns what happened in a folder since the cursor, with at most
	// limit new messages. known are the locations in that folder that the caller
	// believes in, for servers that do not tell what went; it is asked only where
	// that is needed, at most once a call.
	Changes(ctx context.Context, folder string, since Cursor, limit int, known func(context.Context) ([]Location, error)) (Changes, error)
	// Older returns up to limit messages before a cursor of its own, newest first,
	// and the cursor for the next call; an empty list at the end. Backfill uses it.
	// It begins again at the newest if all locations of the folder became void.
	Older(ctx context.Context, folder string, before Cursor, limit int) ([]Item, Cursor, error)
	// Read calls each once for every item, in any order, with the bytes of the
	// message, which then belong to the callee, and does not mark it as read. A
	// message over the reader's limit of bytes is reported by ErrTooLarge, one that
	// is gone by ErrGone, one that cannot be read by ErrUnreadable; each returns an
	// error to stop. The item says whether its bytes are Built.
	Read(ctx context.Context, items []Item, each func(item Item, raw []byte, err error) error) error
	// Wait returns when something may have changed in one of the folders since the
	// last Wait for it, or when the reader's interval of looking is over. The first
	// Wait for a folder may return at once. It returns ctx's error when ctx ends
	// first.
	Wait(ctx context.Context, folders []string) error
	Close() error
}

// Identify computes the identity of a message from its bytes, such as
// message.Identity. A Writer is given one, so that it takes no message for
// another because of a Message-ID that anyone can write.
type Identify func(raw []byte) []byte

// Writer changes one account. It is not safe for concurrent use. After an error
// that is no kind of this package the change may have happened or not: Find
// tells.
type Writer interface {
	// Find returns the state of the message with the given identity, looking first
	// at the location, then for the Message-ID (without angle brackets) in that
	// folder and all others; ErrGone if it is nowhere. Without a Message-ID it looks
	// at the location alone.
	Find(ctx context.Context, at Location, messageID string, identity []byte) (State, error)
	// Change changes the message at a location and returns its state after; a
	// message that was moved has another Key there. It fails with ErrChanged if the
	// flags are not those of the expected state, with ErrGone if nothing is at the
	// location, with ErrNoFolder without MoveTo's folder, and with ErrUnsupported
	// if the account cannot hold a keyword or cannot move without risk; then
	// nothing was changed.
	Change(ctx context.Context, expected State, change Change) (State, error)
	// Append stores a message, and returns its location. With a Message-ID that is
	// in the folder already, it returns ErrExists and that location.
	Append(ctx context.Context, folder string, flags []string, raw []byte) (Location, error)
	// Folders returns the folders of the account that can hold messages.
	Folders(ctx context.Context) ([]Folder, error)
	Close() error
}
