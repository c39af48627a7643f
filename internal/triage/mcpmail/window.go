package mcpmail

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

const (
	// maxPages limits one listing, and maxSeen the hashes in a cursor.
	maxPages = 1000
	maxSeen  = 2000
)

// hash returns the hash of an id in a cursor.
func hash(key string) string {
	sum := sha256.Sum256([]byte(key))
	return base64.RawStdEncoding.EncodeToString(sum[:6])
}

// window is a part of a folder: from one time to before another. A zero time is
// no bound.
type window struct {
	since, before time.Time
	limit         int
	cursor        string
}

// listing requests a page.
func (s *server) listing(ctx context.Context, folder string, w window) (any, error) {
	args := map[string]any{}
	s.set(args, "arg.limit", cmp.Or(w.limit, listed))
	if w.cursor != "" {
		s.set(args, "arg.cursor", w.cursor)
	}
	if s.profile.query != nil {
		s.set(args, "arg.query", s.profile.query(folder, w.since, w.before))
		return s.call(ctx, listMail, args)
	}
	s.set(args, "arg.folder", folder)
	if !w.since.IsZero() {
		s.set(args, "arg.since", s.profile.written(w.since))
	}
	if !w.before.IsZero() {
		s.set(args, "arg.before", s.profile.written(w.before.Add(s.profile.grain)))
	}
	return s.call(ctx, listMail, args)
}

// pages calls each with every distinct message of a window, in the order of the
// server, newest first, until each wants no more. A page without new messages
// ends the listing.
func (s *server) pages(ctx context.Context, folder string, w window, each func(entry) (more bool, err error)) error {
	seen := map[string]bool{}
	for page := 0; page < s.maxPages && len(seen) < s.maxPages*listed; page++ {
		doc, err := s.listing(ctx, folder, w)
		if err != nil {
			return err
		}
		entries, err := s.entries(doc, "list", folder, now())
		if err != nil {
			return err
		}
		before := len(seen)
		for _, e := range entries {
			h := hash(e.Key)
			if seen[h] {
				continue
			}
			seen[h] = true
			if e.dated && (e.Received.Before(w.since) || !w.before.IsZero() && e.Received.After(w.before)) {
				continue // servers compare days, or ignore the times
			}
			if more, err := each(e); err != nil || !more {
				return err
			}
		}
		next, err := s.cursor(doc, "list.next")
		if err != nil || next == "" || next == w.cursor || len(seen) == before {
			return err
		}
		w.cursor = next
	}
	return s.fault(fmt.Sprintf("it lists more than %d pages or %d messages", s.maxPages, s.maxPages*listed), errOutage)
}

// arrived returns the oldest messages since a cursor.
func (r *Reader) arrived(ctx context.Context, s *server, folder string, c cursor, limit int) (mailbox.Changes, error) {
	since := c.begin(s.profile.overlap())
	seen := map[string]bool{}
	for _, h := range c.Seen {
		seen[h] = true
	}
	var fresh, old []entry
	err := s.pages(ctx, folder, window{since: since}, func(e entry) (bool, error) {
		if seen[hash(e.Key)] {
			old = append(old, e)
		} else {
			fresh = append(fresh, e)
		}
		return true, nil
	})
	if err != nil {
		return mailbox.Changes{}, err
	}
	chosen, more := oldest(fresh, limit)
	for i := range chosen {
		if err := r.dated(ctx, s, &chosen[i], now()); err != nil {
			return mailbox.Changes{}, err
		}
	}
	chosen = slices.DeleteFunc(chosen, func(e entry) bool { return !e.dated }) // they are gone
	next := cursor{After: c.After, From: c.From}
	changes := mailbox.Changes{More: more}
	slices.SortStableFunc(chosen, byTime)
	for _, e := range chosen {
		changes.New = append(changes.New, e.Item)
		if e.Received.After(next.After) {
			next.After = e.Received
		}
	}
	next.remember(slices.Concat(chosen, old), s.profile.overlap())
	changes.Next, err = next.text()
	return changes, err
}

// oldest returns the end of a listing, which is the oldest part, and whether
// there are others. Messages without times stay in the order of the server.
func oldest(listing []entry, limit int) (chosen []entry, more bool) {
	if !slices.ContainsFunc(listing, func(e entry) bool { return !e.dated }) {
		slices.SortStableFunc(listing, func(a, b entry) int { return byTime(b, a) })
	}
	cut := max(len(listing)-limit, 0)
	return listing[cut:], cut > 0
}

func byTime(a, b entry) int { return a.Received.Compare(b.Received) }

// begin returns where a listing begins; the zero time is before everything.
func (c cursor) begin(overlap time.Duration) time.Time {
	if c.After.IsZero() {
		return time.Time{}
	}
	if from := c.After.Add(-overlap); from.After(c.From) {
		return from
	}
	return c.From
}

// remember sets the hashes of the messages that need no further report: all in
// the overlap. A message without a time counts as one of them. If there are too
// many, the overlap is shortened, so that none is reported repeatedly.
func (c *cursor) remember(accounted []entry, overlap time.Duration) {
	from := c.begin(overlap)
	all := slices.DeleteFunc(accounted, func(e entry) bool { return e.dated && e.Received.Before(from) })
	slices.SortStableFunc(all, func(a, b entry) int { return byTime(b, a) })
	if len(all) > maxSeen {
		all = all[:maxSeen]
		if c.From = all[maxSeen-1].Received; c.From.IsZero() {
			c.From = c.After
		}
	}
	for _, e := range all {
		c.Seen = append(c.Seen, hash(e.Key))
	}
}

// dated sets the time of a message. A message that is gone stays without one,
// and an unreadable one gets the given time.
func (r *Reader) dated(ctx context.Context, s *server, e *entry, unread time.Time) error {
	if e.dated {
		return nil
	}
	err := r.date(ctx, s, e)
	switch {
	case errors.Is(err, mailbox.ErrGone):
		return nil
	case errors.Is(err, mailbox.ErrTooLarge) || errors.Is(err, mailbox.ErrUnreadable) || errors.Is(err, errTool):
		e.Received, e.dated = unread, true
		return nil
	}
	return err
}

// olderCursor is the position of reading a folder backwards: Seen holds the
// reported messages of its time.
type olderCursor struct {
	Before time.Time `json:"before"`
	Seen   []string  `json:"seen,omitempty"`
}

// Older returns the messages before a time, newest first. A server that cannot
// list up to a time has none.
func (r *Reader) Older(ctx context.Context, folder string, before mailbox.Cursor, limit int) ([]mailbox.Item, mailbox.Cursor, error) {
	c, err := mailbox.ParseCursor(before, "older messages", func(c olderCursor) bool { return !c.Before.IsZero() })
	if err != nil {
		return nil, nil, err
	}
	s, err := r.in(ctx, folder)
	if err != nil || s.profile.names["arg.before"] == "" && s.profile.query == nil {
		return nil, before, err
	}
	var items []mailbox.Item
	err = s.pages(ctx, folder, window{before: c.Before}, func(e entry) (bool, error) {
		if slices.Contains(c.Seen, hash(e.Key)) {
			return true, nil
		}
		if err := r.dated(ctx, s, &e, cmp.Or(c.Before, now())); err != nil {
			return false, err
		}
		if e.dated && (c.Before.IsZero() || !e.Received.After(c.Before)) {
			items = append(items, e.Item)
		}
		return len(items) < limit, nil
	})
	if err != nil || len(items) == 0 {
		return nil, before, err
	}
	slices.SortStableFunc(items, func(a, b mailbox.Item) int { return b.Received.Compare(a.Received) })
	next := olderCursor{Before: items[len(items)-1].Received}
	for _, item := range items {
		if item.Received.Equal(next.Before) {
			next.Seen = append(next.Seen, hash(item.Key))
		}
	}
	if next.Before.Equal(c.Before) {
		next.Seen = append(next.Seen, c.Seen...)
	}
	raw, err := json.Marshal(next)
	return items, mailbox.Cursor(raw), err
}
