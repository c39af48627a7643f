package imap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/emersion/go-imap/v2"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

// maxCandidates limits how many messages with the same Message-ID are compared.
const maxCandidates = 20

// Writer changes an account over one connection.
type Writer struct {
	config   Config
	work     dialer
	identify mailbox.Identify
}

// NewWriter returns a writer of an account. It connects on first use.
func NewWriter(c Config, identify mailbox.Identify) (*Writer, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Writer{config: c, work: dialer{config: c}, identify: identify}, nil
}

// Close ends the connection.
func (w *Writer) Close() error {
	w.work.close()
	return nil
}

// Folders returns the folders that can hold messages.
func (w *Writer) Folders(ctx context.Context) (folders []mailbox.Folder, err error) {
	err = w.work.run(ctx, func(conn *connection) error {
		folders, err = conn.folders(ctx)
		return err
	})
	return folders, err
}

// Find reads the location, then searches all folders for the Message-ID, those
// with copies of all mail last.
func (w *Writer) Find(ctx context.Context, at mailbox.Location, messageID string, identity []byte) (state mailbox.State, err error) {
	err = w.work.run(ctx, func(conn *connection) error {
		state, err = w.find(ctx, conn, at, messageID, identity)
		return err
	})
	return state, err
}

func (w *Writer) find(ctx context.Context, conn *connection, at mailbox.Location, messageID string, identity []byte) (mailbox.State, error) {
	validity, uid, err := splitKey(at.Key)
	if err == nil {
		var data *imap.SelectData
		data, err = conn.examine(ctx, at.Folder)
		if err == nil && data.UIDValidity == validity {
			state, err := w.match(ctx, conn, at.Folder, validity, []imap.UID{uid}, identity)
			if !errors.Is(err, mailbox.ErrGone) {
				return state, err
			}
		}
	}
	if err != nil && !errors.Is(err, mailbox.ErrGone) && !errors.Is(err, mailbox.ErrNoFolder) {
		return mailbox.State{}, err
	}
	if !searchable(messageID) {
		return mailbox.State{}, mailbox.ErrGone
	}
	folders, err := conn.folders(ctx)
	if err != nil {
		return mailbox.State{}, err
	}
	slices.SortStableFunc(folders, func(a, b mailbox.Folder) int { return distance(a, at.Folder) - distance(b, at.Folder) })
	for _, folder := range folders {
		state, err := w.findIn(ctx, conn, folder.Name, messageID, identity)
		if !errors.Is(err, mailbox.ErrGone) && !errors.Is(err, mailbox.ErrNoFolder) {
			return state, err
		}
	}
	return mailbox.State{}, mailbox.ErrGone
}

// distance orders folders for a search.
func distance(folder mailbox.Folder, from string) int {
	switch {
	case folder.Name == from:
		return 0
	case folder.Use == mailbox.UseAll:
		return 2
	}
	return 1
}

// searchable reports whether a server without charsets can search for a
// Message-ID.
func searchable(messageID string) bool {
	return messageID != "" && len(messageID) < 1000 && !strings.ContainsFunc(messageID, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

func (w *Writer) findIn(ctx context.Context, conn *connection, folder, messageID string, identity []byte) (mailbox.State, error) {
	data, err := conn.examine(ctx, folder)
	if err != nil {
		return mailbox.State{}, err
	}
	found, err := conn.withMessageID(ctx, messageID)
	if err != nil {
		return mailbox.State{}, err
	}
	return w.match(ctx, conn, folder, data.UIDValidity, found, identity)
}

// withMessageID returns the messages of the open folder that may have a
// Message-ID: a server also matches substrings.
func (conn *connection) withMessageID(ctx context.Context, messageID string) ([]imap.UID, error) {
	set, err := conn.search(ctx, &imap.SearchCriteria{
		Header: []imap.SearchCriteriaHeaderField{{Key: "Message-ID", Value: messageID}},
	})
	return highest(set, maxCandidates), err
}

// match returns the state of the first message that has the identity.
func (w *Writer) match(ctx context.Context, conn *connection, folder string, validity uint32, uids []imap.UID, identity []byte) (mailbox.State, error) {
	for _, uid := range uids {
		found := false
		state := mailbox.State{Location: mailbox.Location{Folder: folder, Key: keyOf(validity, uid)}}
		item := mailbox.Item{Location: state.Location}
		results, err := (&bodies{tooLarge: map[mailbox.Location]bool{}}).read(ctx, conn, []mailbox.Item{item})
		if err != nil {
			return mailbox.State{}, err
		}
		if results[0].err != nil || !bytes.Equal(w.identify(results[0].raw), identity) {
			continue
		}
		err = conn.fetch(ctx, imap.UIDSetNum(uid), &imap.FetchOptions{UID: true, Flags: true}, func(m *fetched) {
			found, state.Flags = m.flagged, m.flags
		})
		if err != nil {
			return mailbox.State{}, err
		}
		if found {
			return state, nil
		}
	}
	return mailbox.State{}, mailbox.ErrGone
}

// Content reads the message at a location.
func (w *Writer) Content(ctx context.Context, at mailbox.Location) (raw []byte, err error) {
	err = w.work.run(ctx, func(conn *connection) error {
		results, err := (&bodies{tooLarge: map[mailbox.Location]bool{}}).read(ctx, conn, []mailbox.Item{{Location: at}})
		if err != nil {
			return err
		}
		raw = results[0].raw
		return results[0].err
	})
	return raw, err
}

// Locate searches a folder for a Message-ID.
func (w *Writer) Locate(ctx context.Context, folder, messageID string) (at mailbox.Location, err error) {
	if !searchable(messageID) {
		return at, mailbox.ErrGone
	}
	err = w.work.run(ctx, func(conn *connection) error {
		at, err = conn.locate(ctx, folder, messageID)
		return err
	})
	return at, err
}

// Append stores a message. It needs UIDPLUS to return the location.
func (w *Writer) Append(ctx context.Context, folder string, flags []string, raw []byte) (at mailbox.Location, err error) {
	if err := (mailbox.Change{Add: flags}).Check(); err != nil {
		return at, err
	}
	var conn *connection
	err = w.work.run(ctx, func(c *connection) error {
		conn = c
		at, err = c.prepareAppend(ctx, folder, mailbox.MessageID(raw))
		return err
	})
	if err != nil {
		return at, err
	}
	// Nothing is retried from here on.
	var data *imap.AppendData
	err = conn.do(ctx, "APPEND", func() (err error) {
		data, err = conn.append(folder, flags, withCRLF(raw))
		return err
	})
	if err != nil {
		w.work.close() // the rest of the literal may be unsent
		return mailbox.Location{}, err
	}
	return mailbox.Location{Folder: folder, Key: keyOf(data.UIDValidity, data.UID)}, nil
}

// prepareAppend checks all preconditions of an APPEND.
func (conn *connection) prepareAppend(ctx context.Context, folder, messageID string) (mailbox.Location, error) {
	if !conn.caps.Has(imap.CapUIDPlus) {
		return mailbox.Location{}, conn.unsupported("UIDPLUS, so the location of the message would be unknown")
	}
	if !searchable(messageID) {
		_, err := conn.examine(ctx, folder)
		return mailbox.Location{}, err
	}
	at, err := conn.locate(ctx, folder, messageID)
	if errors.Is(err, mailbox.ErrGone) {
		return mailbox.Location{}, nil
	}
	if err == nil {
		err = mailbox.ErrExists
	}
	return at, err
}

// locate returns the location of a message of a folder with exactly a Message-ID.
func (conn *connection) locate(ctx context.Context, folder, messageID string) (mailbox.Location, error) {
	data, err := conn.examine(ctx, folder)
	if err != nil {
		return mailbox.Location{}, err
	}
	uids, err := conn.withMessageID(ctx, messageID)
	if err != nil {
		return mailbox.Location{}, err
	}
	if len(uids) == 0 {
		return mailbox.Location{}, mailbox.ErrGone
	}
	var found imap.UID
	section := &imap.FetchItemBodySection{Peek: true, Specifier: imap.PartSpecifierHeader, HeaderFields: []string{"Message-ID"}}
	limits := map[imap.UID]int64{}
	for _, uid := range uids {
		limits[uid] = unknownSize
	}
	options := &imap.FetchOptions{UID: true, BodySection: []*imap.FetchItemBodySection{section}}
	err = conn.fetchBodies(ctx, imap.UIDSetNum(uids...), options, limits, func(m *fetched) {
		if mailbox.MessageID(m.body) == messageID {
			found = m.uid
		}
	})
	if err == nil && found == 0 {
		err = mailbox.ErrGone
	}
	if err != nil {
		return mailbox.Location{}, err
	}
	return mailbox.Location{Folder: folder, Key: keyOf(data.UIDValidity, found)}, nil
}

func (conn *connection) append(folder string, flags []string, raw []byte) (*imap.AppendData, error) {
	options := &imap.AppendOptions{}
	for _, flag := range mailbox.Flags(flags...) {
		options.Flags = append(options.Flags, imap.Flag(flag))
	}
	command := conn.client.Append(folder, int64(len(raw)), options)
	_, err := command.Write(raw)
	if closed := command.Close(); err == nil {
		err = closed
	}
	data, answered := command.Wait()
	if answered != nil {
		err = answered
	}
	if err == nil && data.UID == 0 {
		err = conn.unsupported("APPENDUID, so the location of the message is unknown")
	}
	return data, err
}

func (conn *connection) unsupported(capability string) error {
	return fmt.Errorf("IMAP server %s has no %s: %w", conn.config.Address, capability, mailbox.ErrUnsupported)
}

// withCRLF returns a message with CRLF line ends, which IMAP requires.
func withCRLF(raw []byte) []byte {
	bare := bytes.Count(raw, []byte("\n")) - bytes.Count(raw, []byte("\r\n"))
	if bare == 0 {
		return raw
	}
	out := make([]byte, 0, len(raw)+bare)
	for i, b := range raw {
		if b == '\n' && (i == 0 || raw[i-1] != '\r') {
			out = append(out, '\r')
		}
		out = append(out, b)
	}
	return out
}
