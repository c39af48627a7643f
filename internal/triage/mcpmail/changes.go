package mcpmail

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

func now() time.Time { return time.Now().UTC() }

// cursor is the position in a folder: the server's cursor, or a time.
type cursor struct {
	// Server is the server's own cursor.
	Server string `json:"server,omitempty"`
	// After is the time of the newest reported message, and Seen holds the
	// hashes of those in the overlap before it.
	After time.Time `json:"after,omitzero"`
	Seen  []string  `json:"seen,omitempty"`
	// From is where the overlap begins, if it has more messages than fit in a
	// cursor.
	From time.Time `json:"from,omitzero"`
}

func parseCursor(text mailbox.Cursor) (cursor, error) {
	return mailbox.ParseCursor(text, "a folder over MCP", func(cursor) bool { return true })
}

func (c cursor) text() (mailbox.Cursor, error) { return json.Marshal(c) }

// End returns the server's cursor, or one of the present time.
func (r *Reader) End(ctx context.Context, folder string) (mailbox.Cursor, error) {
	s, err := r.in(ctx, folder)
	if err != nil {
		return nil, err
	}
	if s.has(listChanges) {
		doc, err := s.listing(ctx, folder, window{limit: 1})
		if err != nil {
			return nil, err
		}
		end, err := s.cursor(doc, "list.end")
		if err != nil {
			return nil, err
		}
		if end != "" {
			return cursor{Server: end}.text()
		}
	}
	c := cursor{After: now()}
	var there []entry
	err = s.pages(ctx, folder, window{since: c.begin(s.profile.overlap())}, func(e entry) (bool, error) {
		there = append(there, e)
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	c.remember(there, s.profile.overlap())
	return c.text()
}

// Changes returns the changes since the server's cursor, or the messages since
// a time. By time, deletions and changes of flags are not reported.
func (r *Reader) Changes(ctx context.Context, folder string, since mailbox.Cursor, limit int, _ func(context.Context) ([]mailbox.Location, error)) (mailbox.Changes, error) {
	c, err := parseCursor(since)
	if err != nil {
		return mailbox.Changes{}, err
	}
	s, err := r.in(ctx, folder)
	if err != nil {
		return mailbox.Changes{}, err
	}
	switch {
	case c.Server != "" && !s.has(listChanges):
		return mailbox.Changes{}, s.fault("the server has no tool for changes any more, which gave the cursor", mailbox.ErrUnsupported)
	case s.has(listChanges) && c.After.IsZero():
		return s.changed(ctx, folder, c, limit)
	}
	return r.arrived(ctx, s, folder, c, limit)
}

// changed queries the server for changes. It gives up on a server that keeps
// reporting more without returning any.
func (s *server) changed(ctx context.Context, folder string, c cursor, limit int) (mailbox.Changes, error) {
	var all mailbox.Changes
	for range maxEmpty {
		got, next, err := s.changedPage(ctx, folder, c, limit)
		if err != nil {
			return mailbox.Changes{}, err
		}
		got.Reset = got.Reset || all.Reset
		found := len(got.New)+len(got.Flagged)+len(got.Gone) > 0
		if got.More && next.Server == c.Server {
			return mailbox.Changes{}, s.fault("it announced another page and returned the same cursor", errOutage)
		}
		if got.Next, err = next.text(); err != nil || found || !got.More {
			return got, err
		}
		all, c = got, next
	}
	return mailbox.Changes{}, s.fault("it announced another page and returned an empty one", errOutage)
}

func (s *server) changedPage(ctx context.Context, folder string, c cursor, limit int) (got mailbox.Changes, next cursor, err error) {
	args := map[string]any{}
	s.set(args, "arg.folder", folder)
	s.set(args, "arg.limit", limit)
	if c.Server != "" {
		s.set(args, "arg.cursor", c.Server)
	}
	doc, err := s.call(ctx, listChanges, args)
	if err != nil {
		return got, next, err
	}
	for _, list := range []struct {
		name string
		into *[]mailbox.Item
	}{{"changes.new", &got.New}, {"changes.changed", &got.Flagged}} {
		entries, err := s.entries(doc, list.name, folder, now())
		if err != nil {
			return got, next, err
		}
		undated := 0
		for _, e := range entries {
			if !e.dated {
				undated++
				e.Received, e.Unusable = now(), "the server does not say when the message came"
			}
			*list.into = append(*list.into, e.Item)
		}
		if undated >= maxFailed && undated == len(entries) {
			return got, next, s.fault("a message has no date of receipt", errOutage)
		}
	}
	if len(got.New) > limit {
		return got, next, s.fault("it returned more than requested", errOutage)
	}
	slices.SortStableFunc(got.New, func(a, b mailbox.Item) int { return a.Received.Compare(b.Received) })
	gone, err := s.list(doc, "changes.gone")
	if err != nil {
		return got, next, err
	}
	for _, id := range gone {
		if key, ok := keyOf(id); ok {
			got.Gone = append(got.Gone, mailbox.Location{Folder: folder, Key: key})
		}
	}
	got.Reset, got.More = s.truth(doc, "changes.reset"), s.truth(doc, "changes.more")
	if next.Server, err = s.cursor(doc, "changes.next"); err == nil && next.Server == "" {
		err = s.fault("it returns no cursor", errOutage)
	}
	return got, next, err
}

// set adds an argument that the profile names.
func (s *server) set(args map[string]any, name string, value any) {
	if named := s.profile.names[name]; named != "" {
		args[named] = value
	}
}
