package imap

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

// fetched is the server's answer about one message.
type fetched struct {
	uid     imap.UID
	flagged bool
	flags   []string
	date    time.Time
	size    int64
	modSeq  uint64
	// body is nil unless it was requested and complete.
	body []byte
	// tooLarge reports whether the body is over its limit, regardless of the
	// size that the server reported before.
	tooLarge bool
}

// read reads an answer, and no body over the limit of its UID.
func read(data *imapclient.FetchMessageData, limits map[imap.UID]int64) *fetched {
	m := new(fetched)
	for part := data.Next(); part != nil; part = data.Next() {
		switch part := part.(type) {
		case imapclient.FetchItemDataUID:
			m.uid = part.UID
		case imapclient.FetchItemDataFlags:
			m.flagged = true
			for _, flag := range part.Flags {
				m.flags = append(m.flags, string(flag))
			}
			m.flags = mailbox.Flags(m.flags...)
		case imapclient.FetchItemDataInternalDate:
			m.date = part.Time.UTC()
		case imapclient.FetchItemDataRFC822Size:
			m.size = part.Size
		case imapclient.FetchItemDataModSeq:
			m.modSeq = part.ModSeq
		case imapclient.FetchItemDataBodySection:
			if part.Literal == nil {
				continue
			}
			if m.tooLarge = part.Literal.Size() > limits[m.uid]; m.tooLarge {
				return m
			}
			body, err := io.ReadAll(part.Literal)
			if err == nil && int64(len(body)) == part.Literal.Size() {
				m.body = body
			}
		}
	}
	return m
}

func (m *fetched) item(in opened) mailbox.Item {
	return mailbox.Item{
		Location: mailbox.Location{Folder: in.folder, Key: keyOf(in.validity, m.uid)},
		Flags:    m.flags, Received: m.date, Size: m.size,
	}
}

func keyOf(validity uint32, uid imap.UID) string { return fmt.Sprintf("%d:%d", validity, uid) }

// splitKey is the inverse of keyOf. It returns ErrGone for every other key.
func splitKey(key string) (validity uint32, uid imap.UID, err error) {
	left, right, _ := strings.Cut(key, ":")
	v, errV := strconv.ParseUint(left, 10, 32)
	u, errU := strconv.ParseUint(right, 10, 32)
	if errV != nil || errU != nil || v == 0 || u == 0 {
		return 0, 0, mailbox.ErrGone
	}
	return uint32(v), imap.UID(u), nil
}
