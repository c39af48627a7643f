package imap

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/emersion/go-imap/v2"

	"github.com/countersign-dev/countersign/internal/mail/listing"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

// pass compares a folder with a cursor. Its view of the folder and the next
// cursor come from the EXAMINE at its start, so that the next pass finds
// changes made in the meantime.
type pass struct {
	*connection
	folder string
	limit  int
	known  func(context.Context) ([]mailbox.Location, error)

	since  cursor
	reset  bool
	data   *imap.SelectData
	digest listing.Digest
}

func (p *pass) begin(ctx context.Context, since mailbox.Cursor) (err error) {
	if p.since, err = parseCursor(since); err != nil {
		return err
	}
	if p.data, err = p.examine(ctx, p.folder); err != nil {
		return err
	}
	if p.since.Validity != 0 && p.since.Validity != p.data.UIDValidity {
		p.reset, p.since = true, cursor{Next: 1}
	}
	return nil
}

// end returns the cursor after all messages.
func (p *pass) end(ctx context.Context) (mailbox.Cursor, error) {
	there, err := p.between(ctx, 1, 0)
	if err != nil {
		return nil, err
	}
	next := cursor{Validity: p.data.UIDValidity, Next: max(p.data.UIDNext, 1), Count: count(there), ModSeq: p.data.HighestModSeq}
	if n := len(there); n > 0 {
		next.Next = max(next.Next, there[n-1].Stop+1)
	}
	if next.ModSeq == 0 {
		if _, err := p.scan(ctx, next.Next); err != nil {
			return nil, err
		}
		next.Digest = &p.digest
	}
	return next.text()
}

func (p *pass) changes(ctx context.Context) (mailbox.Changes, error) {
	changes := mailbox.Changes{Reset: p.reset}
	fresh, err := p.fresh(ctx)
	if err != nil {
		return changes, err
	}
	next := cursor{Validity: p.data.UIDValidity, Next: max(p.since.Next, p.data.UIDNext), ModSeq: p.data.HighestModSeq}
	if changes.Flagged, err = p.flagged(ctx); err != nil {
		return changes, err
	}
	old := uint64(p.data.NumMessages) - min(count(p.before(fresh)), uint64(p.data.NumMessages))
	if old != p.since.Count && p.since.Next > 1 {
		if changes.Gone, old, err = p.gone(ctx); err != nil {
			return changes, err
		}
	}
	chosen := lowest(fresh, p.limit)
	if changes.New, err = p.list(ctx, imap.UIDSetNum(chosen...), 0); err != nil {
		return changes, err
	}
	if changes.More = uint64(len(chosen)) < count(fresh); changes.More {
		next.Next = p.since.Next
	}
	if n := len(chosen); n > 0 {
		next.Next = max(next.Next, chosen[n-1]+1)
	}
	next.Count = old + uint64(len(chosen))
	if next.ModSeq == 0 {
		for _, item := range changes.New {
			p.digest.Add(item.Key, strings.Join(item.Flags, " "))
		}
		next.Digest = &p.digest
	}
	changes.Next, err = next.text()
	return changes, err
}

// fresh returns the UIDs after the cursor.
func (p *pass) fresh(ctx context.Context) (imap.UIDSet, error) {
	if p.data.NumMessages == 0 || p.data.UIDNext != 0 && p.data.UIDNext <= p.since.Next {
		return nil, nil
	}
	return p.between(ctx, p.since.Next, 0)
}

// before returns the new messages that existed at the EXAMINE.
func (p *pass) before(fresh imap.UIDSet) imap.UIDSet {
	if p.data.UIDNext == 0 {
		return fresh
	}
	return clip(fresh, 1, p.data.UIDNext-1)
}

// flagged returns the messages before the cursor whose flags may have changed.
func (p *pass) flagged(ctx context.Context) ([]mailbox.Item, error) {
	if p.since.Next <= 1 || p.data.NumMessages == 0 {
		return nil, nil
	}
	old := imap.UIDSet{{Start: 1, Stop: p.since.Next - 1}}
	if p.data.HighestModSeq > 0 && p.since.ModSeq > 0 {
		if p.data.HighestModSeq == p.since.ModSeq {
			return nil, nil
		}
		return p.list(ctx, old, p.since.ModSeq)
	}
	there, err := p.scan(ctx, p.since.Next)
	if err != nil {
		return nil, err
	}
	if p.since.Digest != nil {
		there = slices.DeleteFunc(there, func(uid imap.UID) bool {
			return !p.digest.MayDiffer(p.since.Digest, keyOf(p.data.UIDValidity, uid))
		})
	}
	return p.list(ctx, imap.UIDSetNum(there...), 0)
}

// scan adds the flags of all messages below a UID to the digest, for servers
// that do not report which changed.
func (p *pass) scan(ctx context.Context, below imap.UID) (there []imap.UID, err error) {
	if below <= 1 || p.data.NumMessages == 0 {
		return nil, nil
	}
	old := imap.UIDSet{{Start: 1, Stop: below - 1}}
	err = p.fetch(ctx, old, &imap.FetchOptions{UID: true, Flags: true}, func(m *fetched) {
		there = append(there, m.uid)
		p.digest.Add(keyOf(p.data.UIDValidity, m.uid), strings.Join(m.flags, " "))
	})
	return there, err
}

// gone returns the known locations before the cursor that are empty, and the
// number of the others.
func (p *pass) gone(ctx context.Context) ([]mailbox.Location, uint64, error) {
	there, err := p.between(ctx, 1, p.since.Next-1)
	if err != nil || p.known == nil {
		return nil, count(there), err
	}
	known, err := p.known(ctx)
	if err != nil {
		return nil, 0, err
	}
	var gone []mailbox.Location
	for _, at := range known {
		validity, uid, err := splitKey(at.Key)
		if err != nil || validity != p.data.UIDValidity || uid < p.since.Next && !there.Contains(uid) {
			gone = append(gone, at)
		}
	}
	return gone, count(there), nil
}

// maxRounds limits how often found messages may all be gone before they are
// listed.
const maxRounds = 5

// older returns the messages before a cursor, newest first.
func (conn *connection) older(ctx context.Context, folder string, before mailbox.Cursor, limit int) ([]mailbox.Item, mailbox.Cursor, error) {
	at, err := parseOlder(before)
	if err != nil {
		return nil, nil, err
	}
	data, err := conn.examine(ctx, folder)
	if err != nil {
		return nil, nil, err
	}
	if at.Validity != data.UIDValidity {
		at = olderCursor{Validity: data.UIDValidity}
	}
	for range maxRounds {
		if data.NumMessages == 0 || at.Before == 1 {
			return nil, before, nil
		}
		last := imap.UID(0) // the end
		if at.Before > 1 {
			last = at.Before - 1
		}
		there, err := conn.between(ctx, 1, last)
		if err != nil {
			return nil, nil, err
		}
		chosen := highest(there, limit)
		if len(chosen) == 0 {
			return nil, before, nil
		}
		at.Before = chosen[len(chosen)-1]
		items, err := conn.list(ctx, imap.UIDSetNum(chosen...), 0)
		if err != nil {
			return nil, nil, err
		}
		if len(items) > 0 {
			slices.Reverse(items)
			next, err := json.Marshal(at)
			return items, next, err
		}
	}
	return nil, nil, fmt.Errorf("IMAP server %s finds messages and does not list them: %w", conn.config.Address, errConnection)
}
