package mcpmail

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

// Read reads the items in order. Items for which the tool fails are retried at
// the end: they are unreadable if the server returned others; otherwise it is
// an outage.
func (r *Reader) Read(ctx context.Context, items []mailbox.Item, each func(item mailbox.Item, raw []byte, err error) error) error {
	s, err := r.open(ctx)
	if err != nil {
		return err
	}
	var failed []mailbox.Item
	answered := false
	for _, item := range items {
		c, err := r.read(ctx, s, item)
		switch {
		case errors.Is(err, errTool) || errors.Is(err, mailbox.ErrUnreadable):
			failed = append(failed, item)
			continue
		case !settled(err):
			return err
		}
		answered = answered || err == nil
		if err := r.pass(item, c, err, each); err != nil {
			return err
		}
	}
	for _, item := range failed {
		c, err := r.read(ctx, s, item)
		switch {
		case errors.Is(err, errTool) && answered:
			err = mailbox.ErrUnreadable
		case err != nil && !settled(err) && !(answered && errors.Is(err, mailbox.ErrUnreadable)):
			return err
		}
		if err := r.pass(item, c, err, each); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (r *Reader) pass(item mailbox.Item, c content, err error, each func(mailbox.Item, []byte, error) error) error {
	item.Built = c.built
	return each(item, c.raw, err)
}

// settled reports whether an error is final for one message.
func settled(err error) bool {
	return err == nil || errors.Is(err, mailbox.ErrGone) || errors.Is(err, mailbox.ErrTooLarge)
}

// read returns the content of a message.
func (r *Reader) read(ctx context.Context, s *server, item mailbox.Item) (content, error) {
	if err := ctx.Err(); err != nil {
		return content{}, err
	}
	if c, ok := r.kept[item.Location]; ok {
		delete(r.kept, item.Location)
		r.keptBytes -= len(c.raw)
		return c, nil
	}
	if item.Size > r.config.MaxSize {
		return content{}, mailbox.ErrTooLarge
	}
	doc, err := s.read(ctx, item.Location)
	if err != nil {
		return content{}, err
	}
	return r.content(s, doc)
}

// read calls the tool for one message.
func (s *server) read(ctx context.Context, at mailbox.Location) (any, error) {
	key, ok := keyOf(at.Key)
	if !ok {
		return nil, mailbox.ErrGone
	}
	args := map[string]any{s.profile.names["arg.id"]: key}
	if s.profile.numbered {
		if n, err := json.Number(key).Int64(); err != nil || n <= 0 {
			return nil, mailbox.ErrGone
		}
		args[s.profile.names["arg.id"]] = json.Number(key)
	}
	if name := s.profile.names["arg.folder"]; name != "" {
		args[name] = at.Folder
	}
	return s.call(ctx, readMail, args)
}

func (r *Reader) content(s *server, doc any) (content, error) {
	raw, built, err := s.message(doc)
	switch {
	case err != nil:
		return content{}, err
	case int64(len(raw)) > r.config.MaxSize:
		return content{}, mailbox.ErrTooLarge
	}
	return content{raw, built}, nil
}

// date reads a message whose listing has no time, and keeps it until Read
// returns it.
func (r *Reader) date(ctx context.Context, s *server, e *entry) error {
	doc, err := s.read(ctx, e.Location)
	if err != nil {
		return err
	}
	full, ok := s.entry(doc, e.Folder, now())
	if !ok || full.Location != e.Location || !full.dated {
		return s.fault("a message has neither a date nor an id", mailbox.ErrUnreadable)
	}
	*e = full
	c, err := r.content(s, doc)
	if err == nil && r.keptBytes+len(c.raw) <= maxKept {
		r.kept[e.Location] = c
		r.keptBytes += len(c.raw)
	}
	return nil // Read reports the error in its content
}
