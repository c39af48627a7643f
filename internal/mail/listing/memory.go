package listing

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

// Entry is one message of a listing.
type Entry struct {
	Key string
	// Flags is any text that differs when the flags differ.
	Flags string
	// Time orders the messages of a folder, oldest first.
	Time int64
}

func (e Entry) compare(other Entry) int {
	return cmp.Or(cmp.Compare(e.Time, other.Time), strings.Compare(e.Key, other.Key))
}

// Folder lists the contents of a folder.
type Folder struct {
	// List calls each for every present message, in any order. It may be called
	// more than once.
	List func(each func(Entry)) error
	// Touched returns the time at which a message got its name, in any
	// increasing unit, or Renamed.
	Touched func(Entry) (int64, error)
}

// Renamed is the time of a message that lost its name after it was listed: it is
// later than every other time.
const Renamed int64 = math.MaxInt64

// cursor is the position in a folder.
type cursor struct {
	// Digest is over the messages accounted for: reported, or present before
	// After.
	Digest Digest `json:"digest"`
	// After, unless 0, is the end before which messages are not reported.
	After int64 `json:"after,omitempty"`
}

// Difference holds the changes of a folder.
type Difference struct {
	New, Flagged []Entry
	Gone         []string
	Next         mailbox.Cursor
	More         bool
}

// Memory holds hashes of the names that a reader has accounted for in a folder
// between two calls. The zero Memory is empty and then calls known.
type Memory struct {
	cursor string
	keys   []uint64
}

// End returns the cursor after everything in the folder.
func End(folder Folder) (mailbox.Cursor, error) {
	var c cursor
	var failed error
	err := folder.List(func(e Entry) {
		c.Digest.Add(e.Key, e.Flags)
		at, err := folder.Touched(e)
		if err != nil {
			failed = err
		}
		if at != Renamed { // else nothing would be new after it
			c.After = max(c.After, at)
		}
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

// Changes returns the changes since a cursor, with at most limit new messages.
// known returns the caller's keys; it is called only if something changed that
// the memory does not hold.
func (m *Memory) Changes(ctx context.Context, folder Folder, since mailbox.Cursor, limit int, known func(context.Context) ([]string, error)) (Difference, error) {
	var c cursor
	if len(since) > 0 {
		if err := json.Unmarshal(since, &c); err != nil {
			return Difference{}, fmt.Errorf("cursor of changes: %w", mailbox.ErrInvalid)
		}
	}
	p := pass{Folder: folder, since: c, limit: limit, known: func() ([]string, error) { return known(ctx) }, remembered: len(since) == 0}
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

// first keeps the first entries of an order in bounded memory.
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

// sorted sorts the kept entries and cuts them at the limit.
func (f *first) sorted() []Entry {
	slices.SortFunc(f.entries, f.compare)
	f.entries = slices.CompactFunc(f.entries, func(a, b Entry) bool { return a.Key == b.Key })
	if len(f.entries) > f.limit {
		clear(f.entries[f.limit:])
		f.entries, f.cut = f.entries[:f.limit], true
	}
	return f.entries
}

// Keys converts the caller's locations into a list of keys.
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
