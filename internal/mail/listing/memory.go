package listing

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

// Entry is one message of a listing.
type Entry struct {
	Key string
	// Flags is any text that is another one when the flags are.
	Flags string
	// Time orders the messages of a folder, older ones first.
	Time int64
}

func (e Entry) compare(other Entry) int {
	return cmp.Or(cmp.Compare(e.Time, other.Time), strings.Compare(e.Key, other.Key))
}

// Folder is what can be asked of a folder.
type Folder struct {
	// List calls each with every message that is there, in any order. It may be
	// called more than once.
	List func(each func(Entry)) error
	// Touched returns when a message came to its name, in any unit that only grows.
	Touched func(Entry) (int64, error)
}

// cursor is how far a folder was read.
type cursor struct {
	// Digest is over what was accounted for: reported, or there before After.
	Digest Digest `json:"digest"`
	// After, unless 0, is the end of what the caller did not want to be told.
	After int64 `json:"after,omitempty"`
}

// Difference is what changed in a folder.
type Difference struct {
	New, Flagged []Entry
	Gone         []string
	Next         mailbox.Cursor
	More         bool
}

// Memory is what a reader remembers of a folder between two calls: hashes of
// the names that it accounted for. The zero Memory remembers nothing, and then
// asks the caller.
type Memory struct {
	cursor string
	keys   []uint64
}

// End returns the cursor behind everything that is in the folder.
func End(folder Folder) (mailbox.Cursor, error) {
	var c cursor
	var failed error
	err := folder.List(func(e Entry) {
		c.Digest.Add(e.Key, e.Flags)
		at, err := folder.Touched(e)
		if err != nil {
			failed = err
		}
		c.After = max(c.After, at)
	})
	if err := firstError(err, failed); err != nil {
		return nil, err
	}
	return json.Marshal(&c)
}

// Older returns up to limit messages before a cursor, newest first, and the
// next cursor.
func Older(folder Folder, before mailbox.Cursor, limit int) ([]Entry, mailbox.Cursor, error) {
	var last *Entry
	if len(before) > 0 {
		last = new(Entry)
		if err := json.Unmarshal(before, last); err != nil {
			return nil, nil, fmt.Errorf("cursor of older messages: %w", mailbox.ErrInvalid)
		}
	}
	newest := first{limit: limit, compare: func(a, b Entry) int { return b.compare(a) }}
	err := folder.List(func(e Entry) {
		if last == nil || e.compare(*last) < 0 {
			newest.add(e)
		}
	})
	if err != nil {
		return nil, nil, err
	}
	entries := newest.sorted()
	if len(entries) == 0 {
		return nil, before, nil
	}
	next, err := json.Marshal(entries[len(entries)-1])
	return entries, next, err
}

// Changes returns what changed since a cursor, with at most limit new messages.
// known are the keys that the caller believes in; it is asked only if something
// changed that the memory does not know.
func (m *Memory) Changes(ctx context.Context, folder Folder, since mailbox.Cursor, limit int, known func(context.Context) ([]string, error)) (Difference, error) {
	var c cursor
	if len(since) > 0 {
		if err := json.Unmarshal(since, &c); err != nil {
			return Difference{}, fmt.Errorf("cursor of changes: %w", mailbox.ErrInvalid)
		}
	}
	p := pass{Folder: folder, ctx: ctx, since: c, limit: limit, known: known, remembered: len(since) == 0}
	if len(since) > 0 && m.cursor == string(since) {
		p.accounted, p.remembered = m.keys, true
	}
	diff, err := p.run()
	if err != nil {
		return Difference{}, err
	}
	m.cursor, m.keys = string(diff.Next), p.accounted
	return diff, nil
}

// first keeps the first entries of an order, in memory bounded by the limit.
type first struct {
	limit   int
	compare func(a, b Entry) int
	entries []Entry
	cut     bool
}

func (f *first) add(e Entry) {
	f.entries = append(f.entries, e)
	if len(f.entries) >= 2*f.limit+64 {
		f.sorted()
	}
}

// sorted sorts what is kept and cuts it at the limit.
func (f *first) sorted() []Entry {
	slices.SortFunc(f.entries, f.compare)
	f.entries = slices.CompactFunc(f.entries, func(a, b Entry) bool { return a.Key == b.Key })
	if len(f.entries) > f.limit {
		clear(f.entries[f.limit:])
		f.entries, f.cut = f.entries[:f.limit], true
	}
	return f.entries
}

// Keys makes the locations that a caller believes in a list of keys.
func Keys(known func(context.Context) ([]mailbox.Location, error)) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		locations, err := known(ctx)
		keys := make([]string, 0, len(locations))
		for _, at := range locations {
			keys = append(keys, at.Key)
		}
		return keys, err
	}
}
