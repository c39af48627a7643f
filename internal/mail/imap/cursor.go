package imap

import (
	"encoding/json"
	"fmt"

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

func parseCursor(text mailbox.Cursor) (c cursor, err error) {
	if len(text) == 0 {
		return cursor{Next: 1}, nil
	}
	if err := json.Unmarshal(text, &c); err != nil || c.Validity == 0 || c.Next == 0 {
		return cursor{}, fmt.Errorf("cursor of an IMAP folder: %w", mailbox.ErrInvalid)
	}
	return c, nil
}

func (c cursor) text() (mailbox.Cursor, error) {
	raw, err := json.Marshal(c)
	return mailbox.Cursor(raw), err
}

// olderCursor is the position of reading a folder backwards.
type olderCursor struct {
	Validity uint32   `json:"validity"`
	Before   imap.UID `json:"before"`
}

func parseOlder(text mailbox.Cursor) (c olderCursor, err error) {
	if len(text) == 0 {
		return olderCursor{}, nil
	}
	if err := json.Unmarshal(text, &c); err != nil || c.Validity == 0 || c.Before == 0 {
		return olderCursor{}, fmt.Errorf("cursor of older messages: %w", mailbox.ErrInvalid)
	}
	return c, nil
}
