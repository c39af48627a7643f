package imap

import (
	"encoding/json"

	"github.com/emersion/go-imap/v2"

	"github.com/countersign-dev/countersign/internal/mail/listing"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

// cursor is the position in a folder: all UIDs below Next, Count of them, with
// their flags at the highest ModSeq.
type cursor struct {
	Validity uint32   `json:"validity"`
	Next     imap.UID `json:"next"`
	Count    uint64   `json:"count"`
	ModSeq   uint64   `json:"modseq,omitempty"`
	// Digest is over UIDs and flags; it is set if the server has no ModSeq.
	Digest *listing.Digest `json:"digest,omitempty"`
}

func parseCursor(text mailbox.Cursor) (cursor, error) {
	c, err := mailbox.ParseCursor(text, "an IMAP folder", func(c cursor) bool { return c.Validity != 0 && c.Next != 0 })
	c.Next = max(c.Next, 1)
	return c, err
}

func (c cursor) text() (mailbox.Cursor, error) { return json.Marshal(c) }

// olderCursor is the position of reading a folder backwards.
type olderCursor struct {
	Validity uint32   `json:"validity"`
	Before   imap.UID `json:"before"`
}

func parseOlder(text mailbox.Cursor) (olderCursor, error) {
	return mailbox.ParseCursor(text, "older messages", func(c olderCursor) bool { return c.Validity != 0 && c.Before != 0 })
}
