package imap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/emersion/go-imap/v2"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

// The commands of this file do not change a mailbox. A Reader sends no others.

// folders lists the folders that can hold messages.
func (conn *connection) folders(ctx context.Context) ([]mailbox.Folder, error) {
	var options *imap.ListOptions
	if conn.caps.Has(imap.CapSpecialUse) && conn.caps.Has(imap.CapListExtended) {
		options = &imap.ListOptions{ReturnSpecialUse: true}
	}
	var listed []*imap.ListData
	err := conn.do(ctx, "LIST", func() (err error) {
		listed, err = conn.client.List("", "*", options).Collect()
		return err
	})
	if err != nil {
		return nil, err
	}
	return foldersOf(listed), nil
}

func foldersOf(listed []*imap.ListData) []mailbox.Folder {
	var folders []mailbox.Folder
	special := map[mailbox.Use]bool{}
	for _, data := range listed {
		if slices.Contains(data.Attrs, imap.MailboxAttrNoSelect) || slices.Contains(data.Attrs, imap.MailboxAttrNonExistent) {
			continue
		}
		use := useOf(data)
		special[use] = true
		folders = append(folders, mailbox.Folder{Name: data.Mailbox, Use: use})
	}
	// Guess from the name the uses that the server assigns to no folder.
	for i, folder := range folders {
		if folder.Use != mailbox.UseOther {
			continue
		}
		separator := ""
		if j := slices.IndexFunc(listed, func(d *imap.ListData) bool { return d.Mailbox == folder.Name }); listed[j].Delim != 0 {
			separator = string(listed[j].Delim)
		}
		if use := mailbox.UseOf(folder.Name, separator); !special[use] {
			folders[i].Use, special[use] = use, true
		}
	}
	return folders
}

// attrSnoozed is the attribute of a folder for snoozed messages, in IANA's
// registry of mailbox attributes.
const attrSnoozed imap.MailboxAttr = `\Snoozed`

// useOf returns the use that the server assigns to a folder.
func useOf(data *imap.ListData) mailbox.Use {
	if strings.EqualFold(data.Mailbox, "INBOX") {
		return mailbox.UseInbox
	}
	for _, attr := range data.Attrs {
		switch attr {
		case imap.MailboxAttrSent:
			return mailbox.UseSent
		case imap.MailboxAttrDrafts:
			return mailbox.UseDrafts
		case imap.MailboxAttrArchive:
			return mailbox.UseArchive
		case imap.MailboxAttrTrash:
			return mailbox.UseTrash
		case imap.MailboxAttrJunk:
			return mailbox.UseJunk
		case imap.MailboxAttrAll:
			return mailbox.UseAll
		case attrSnoozed:
			return mailbox.UseSnoozed
		}
	}
	return mailbox.UseOther
}

// examine opens a folder for reading.
func (conn *connection) examine(ctx context.Context, folder string) (*imap.SelectData, error) {
	return conn.open(ctx, folder, "EXAMINE", &imap.SelectOptions{ReadOnly: true, CondStore: conn.caps.Has(imap.CapCondStore)})
}

func (conn *connection) open(ctx context.Context, folder, command string, options *imap.SelectOptions) (*imap.SelectData, error) {
	if folder == "" || strings.ContainsAny(folder, "\r\n\x00") {
		return nil, fmt.Errorf("folder %q: %w", folder, mailbox.ErrNoFolder)
	}
	var data *imap.SelectData
	err := conn.do(ctx, command, func() (err error) {
		data, err = conn.client.Select(folder, options).Wait()
		if answer, ok := errors.AsType[*imap.Error](err); ok && answer.Type == imap.StatusResponseTypeNo {
			switch answer.Code {
			case "", imap.ResponseCodeNonExistent, imap.ResponseCodeCannot, imap.ResponseCodeTryCreate:
				if conn.config.busy(answer) == nil {
					return fmt.Errorf("folder %q: %w", folder, mailbox.ErrNoFolder)
				}
			}
		}
		return err
	})
	if err == nil && data.UIDValidity == 0 {
		err = conn.unsupported("UIDVALIDITY, so a message could not be found again")
	}
	if err == nil {
		conn.opened = opened{folder, data.UIDValidity}
	}
	return data, err
}

// search returns the UIDs that match.
func (conn *connection) search(ctx context.Context, criteria *imap.SearchCriteria) (imap.UIDSet, error) {
	var options *imap.SearchOptions
	if conn.caps.Has(imap.CapESearch) {
		options = &imap.SearchOptions{ReturnAll: true} // ranges instead of single numbers
	}
	var found imap.UIDSet
	err := conn.do(ctx, "SEARCH", func() error {
		data, err := conn.client.UIDSearch(criteria, options).Wait()
		if err != nil {
			return err
		}
		found, _ = data.All.(imap.UIDSet)
		if found.Dynamic() {
			return errConnection // no server may answer "*"
		}
		return nil
	})
	return found, err
}

// between returns the existing UIDs of a range; 0 means the end.
func (conn *connection) between(ctx context.Context, from, to imap.UID) (imap.UIDSet, error) {
	if to != 0 && to < from {
		return nil, nil
	}
	found, err := conn.search(ctx, &imap.SearchCriteria{UID: []imap.UIDSet{{{Start: from, Stop: to}}}})
	to = cmp.Or(to, math.MaxUint32)
	// "n:*" matches the last message even if its UID is less than n.
	return clip(found, from, to), err
}

// clip returns the part of a set within a range.
func clip(set imap.UIDSet, from, to imap.UID) imap.UIDSet {
	var part imap.UIDSet
	for _, r := range set {
		if start, stop := max(r.Start, from), min(r.Stop, to); start <= stop {
			part = append(part, imap.UIDRange{Start: start, Stop: stop})
		}
	}
	return part
}

// count returns the number of UIDs in a set.
func count(set imap.UIDSet) (n uint64) {
	for _, r := range set {
		n += uint64(r.Stop) - uint64(r.Start) + 1
	}
	return n
}

// lowest and highest return the first and the last UIDs of a set. They never
// expand a range, since a server may send any.
func lowest(set imap.UIDSet, n int) (uids []imap.UID) {
	for _, r := range set {
		for uid := uint64(r.Start); uid <= uint64(r.Stop); uid++ {
			if len(uids) == n {
				return uids
			}
			uids = append(uids, imap.UID(uid))
		}
	}
	return uids
}

func highest(set imap.UIDSet, n int) (uids []imap.UID) {
	for _, r := range slices.Backward(set) {
		for uid := uint64(r.Stop); uid >= uint64(r.Start) && uid > 0; uid-- {
			if len(uids) == n {
				return uids
			}
			uids = append(uids, imap.UID(uid))
		}
	}
	return uids
}

// maxRanges bounds the length of a command: servers refuse long lines.
const maxRanges = 200

// list returns the items of a set ordered by UID. Items deleted in the meantime
// are missing; those without readable metadata are Unusable.
func (conn *connection) list(ctx context.Context, set imap.UIDSet, changedSince uint64) ([]mailbox.Item, error) {
	items := map[imap.UID]mailbox.Item{}
	for _, uid := range conn.unusable[conn.opened] {
		if set.Contains(uid) {
			items[uid] = unusableItem(conn.opened, uid)
		}
	}
	for part := range slices.Chunk(set, maxRanges) {
		options := &imap.FetchOptions{UID: true, Flags: true, InternalDate: true, RFC822Size: true, ChangedSince: changedSince}
		for range 2 {
			var partial imap.UIDSet
			err := conn.fetch(ctx, part, options, func(m *fetched) {
				if m.date.IsZero() || !m.flagged {
					// The library takes an unsolicited change for the answer.
					partial.AddNum(m.uid)
					return
				}
				items[m.uid] = m.item(conn.opened)
			})
			if err != nil {
				return nil, err
			}
			if part, options.ChangedSince = partial, 0; len(part) == 0 {
				break
			}
		}
		if count(part) >= maxFailed && len(items) == 0 {
			return nil, conn.unsupported("dates or flags of messages")
		}
		for _, uid := range lowest(part, math.MaxInt) {
			items[uid] = unusableItem(conn.opened, uid)
		}
	}
	return sortedItems(items), nil
}

func sortedItems(items map[imap.UID]mailbox.Item) []mailbox.Item {
	sorted := make([]mailbox.Item, 0, len(items))
	for _, uid := range slices.Sorted(maps.Keys(items)) {
		sorted = append(sorted, items[uid])
	}
	return sorted
}

// fetch sends UID FETCH for metadata and calls each for every answer with a UID
// of the set. Messages without readable metadata are omitted.
func (conn *connection) fetch(ctx context.Context, set imap.UIDSet, options *imap.FetchOptions, each func(*fetched)) error {
	for part := range slices.Chunk(without(set, conn.unusable[conn.opened]), maxRanges) {
		if err := conn.fetchBodies(ctx, part, options, nil, each); err != nil {
			return conn.fetchFault(ctx, part, options, err)
		}
	}
	return nil
}

// fetchBodies is fetch with limits on the bytes of bodies. After a body over
// its limit the connection is closed, because the rest would have to be read.
func (conn *connection) fetchBodies(ctx context.Context, set imap.UIDSet, options *imap.FetchOptions, limits map[imap.UID]int64, each func(*fetched)) error {
	return conn.do(ctx, "FETCH", func() error {
		command := conn.client.Fetch(set, options)
		for data := command.Next(); data != nil; data = command.Next() {
			m := read(data, limits)
			if m.tooLarge {
				conn.socket.Close()
			}
			if m.uid != 0 && set.Contains(m.uid) {
				each(m)
			}
		}
		return command.Close()
	})
}
