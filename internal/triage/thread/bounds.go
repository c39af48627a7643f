package thread

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// This file bounds every value that a sender or a mail server chooses, so that
// no value makes a statement fail. Rows are made of instants and texts that
// went through it, and an account is read through Bounded.

const (
	// maxNamed limits the messages and the participants of one message,
	// maxIdentifier a Message-ID, maxAddress an address, maxName a display
	// name, and maxList the id of a list. All of these are in an index.
	maxNamed      = 50
	maxIdentifier = 500
	maxAddress    = 320
	maxName       = 200
	maxList       = 300
	// maxSubject and maxBody limit the texts of a message, and maxThreadSubject
	// the normalised subject.
	maxSubject       = 2000
	maxThreadSubject = 500
	maxBody          = 64 << 10
	// maxFolder and maxKey limit a location, which is the key of an index.
	// maxFlags and maxFlag limit the flags of a message, which an envelope
	// repeats.
	maxFolder = 500
	maxKey    = 1000
	maxFlags  = 200
	maxFlag   = 250
	// maxSize exceeds the size of any message.
	maxSize = 1 << 40
	// ahead is how far in the future a message may have been received, to allow
	// for clock differences.
	ahead = 24 * time.Hour
)

// Instant is a time that JSON and PostgreSQL can hold. InstantOf returns one.
type Instant struct{ time.Time }

// InstantOf returns the instant of a time in UTC, from 1970 to 9999.
func InstantOf(t time.Time) Instant {
	t = t.UTC()
	first, last := time.Unix(0, 0).UTC(), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	switch {
	case t.Before(first):
		t = first
	case t.After(last):
		t = last
	}
	return Instant{t}
}

// sentAt returns the Date of a message, or nil if it is implausible.
func sentAt(date time.Time) *Instant {
	if sent := InstantOf(date); sent.Equal(date) && sent.Unix() > 0 {
		return &sent
	}
	return nil
}

// identifier returns a Message-ID that can be stored, or "" if it is too long.
func identifier(id string) string {
	if len(id) > maxIdentifier {
		return ""
	}
	return postgres.Text(id)
}

func address(a message.Address) string { return postgres.Clip(a.Addr, maxAddress) }

// participants returns the distinct addresses of a message.
func participants(m *message.Message) []string {
	all := []string{}
	for _, a := range slices.Concat(m.From, m.To, m.Cc) {
		if addr := address(a); addr != "" && !slices.Contains(all, addr) && len(all) < maxNamed {
			all = append(all, addr)
		}
	}
	return all
}

// list returns the id of a message's list, or "".
func list(m *message.Message) string {
	for _, f := range m.Fields {
		if strings.EqualFold(f.Name, "List-Id") {
			id := f.Value[strings.LastIndexByte(f.Value, '<')+1:]
			id, _, _ = strings.Cut(id, ">")
			return postgres.Clip(strings.ToLower(strings.TrimSpace(id)), maxList)
		}
	}
	return ""
}

// Bounded is a mailbox whose answers are within the bounds. An entry without a
// valid key is Unusable, and of several with the same key the first counts.
type Bounded struct{ mailbox.Reader }

// Folders implements mailbox.Reader. It omits folders whose names cannot be
// stored.
func (b Bounded) Folders(ctx context.Context) ([]mailbox.Folder, error) {
	folders, err := b.Reader.Folders(ctx)
	return slices.DeleteFunc(folders, func(f mailbox.Folder) bool { return !storable(f.Name, maxFolder) }), err
}

// Changes implements mailbox.Reader.
func (b Bounded) Changes(ctx context.Context, folder string, since mailbox.Cursor, limit int, known func(context.Context) ([]mailbox.Location, error)) (mailbox.Changes, error) {
	changes, err := b.Reader.Changes(ctx, folder, since, limit, known)
	changes.New, changes.Flagged = entries(changes.New), entries(changes.Flagged)
	changes.Flagged = slices.DeleteFunc(changes.Flagged, func(it mailbox.Item) bool { return it.Unusable != "" })
	changes.Gone = slices.DeleteFunc(changes.Gone, func(at mailbox.Location) bool { return !storable(at.Key, maxKey) })
	return changes, err
}

// Older implements mailbox.Reader.
func (b Bounded) Older(ctx context.Context, folder string, before mailbox.Cursor, limit int) ([]mailbox.Item, mailbox.Cursor, error) {
	items, next, err := b.Reader.Older(ctx, folder, before, limit)
	return entries(items), next, err
}

// entries returns the distinct messages of a listing, within the bounds.
func entries(items []mailbox.Item) []mailbox.Item {
	if len(items) == 0 {
		return items
	}
	latest := time.Now().Add(ahead)
	seen := make(map[string]bool, len(items))
	kept := make([]mailbox.Item, 0, len(items))
	for _, it := range items {
		if it.Unusable == "" && !storable(it.Key, maxKey) {
			it.Unusable = "the account gives the message a key that is empty, too long or no text"
		}
		it.Key = postgres.Clip(it.Key, maxKey)
		if seen[it.Key] {
			continue
		}
		seen[it.Key] = true
		if it.Received = InstantOf(it.Received).Time; it.Received.After(latest) {
			it.Received = latest
		}
		it.Size = min(max(it.Size, 0), maxSize)
		it.Flags = flags(it.Flags)
		kept = append(kept, it)
	}
	return kept
}

// flags returns the flags that can be stored and repeated in an envelope.
func flags(all []string) []string {
	kept := slices.DeleteFunc(slices.Clone(all), func(flag string) bool { return !storable(flag, maxFlag) })
	return kept[:min(len(kept), maxFlags)]
}

// storable reports whether a name from a server can be stored unchanged.
func storable(name string, most int) bool {
	return name != "" && len(name) <= most && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl)
}
