package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/triage/measure"
)

// step is what failed about a message that is set aside.
type step string

const (
	stepList  step = "list"
	stepRead  step = "read"
	stepStore step = "store"
)

const (
	// maxAside bounds the messages set aside that a run skips and reads again, and
	// maxUnread those that cannot be read, one after the other, before it is checked
	// that the account gives any.
	maxAside  = 10_000
	maxUnread = 3
	// controls is how many messages that were read before are tried for that.
	controls = 3
)

// contentError is an error that a message causes by what it holds: judging or
// encoding it failed.
type contentError struct{ err error }

// Error implements error.
func (e *contentError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *contentError) Unwrap() error { return e.err }

// unreadError is an error of the account while it gave messages: of one of them,
// or of the account.
type unreadError struct{ err error }

// Error implements error.
func (e *unreadError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *unreadError) Unwrap() error { return e.err }

// ofMessages reports whether an error may be that of single messages.
func ofMessages(err error) bool {
	if _, ok := errors.AsType[*contentError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*unreadError](err); ok {
		return true
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && len(pg.Code) == 5 {
		// Cardinality violations, data exceptions, violated constraints, exceeded limits.
		return slices.Contains([]string{"21", "22", "23", "54"}, pg.Code[:2])
	}
	return false
}

// unread returns the error of a Read. What is no answer about messages is that of
// the account.
func unread(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	if _, ok := errors.AsType[*contentError](err); ok {
		return err
	}
	for _, account := range []error{mailbox.ErrDenied, mailbox.ErrBusy, mailbox.ErrNoFolder, mailbox.ErrInvalid} {
		if errors.Is(err, account) {
			return err
		}
	}
	return &unreadError{err}
}

// contained calls a function about one message. Its error is a contentError, and
// so is a panic: a bug that one message meets must not end the process for all.
func (r *run) contained(about func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			text := "the program failed on the message"
			if bug, ok := cause.(runtime.Error); ok {
				text += ": " + bug.Error() // of the runtime, without text of the mail
			}
			r.log.Error("message not judged", slog.String("error", text), slog.String("stack", string(debug.Stack())))
			err = &contentError{errors.New(text)}
		}
	}()
	if err := about(); err != nil {
		return &contentError{err}
	}
	return nil
}

// batch is what is committed together: messages of a folder to read, and such as
// were read before.
type batch struct {
	folder mailbox.Folder
	items  []mailbox.Item
	kept   []mail
	// again has the messages that are decided again, by identity; nil for others.
	again map[string]dueMessage
	// with adds to the transaction; nil adds nothing.
	with func(pgx.Tx) error
	// done is called with each chunk that was committed; nil for none.
	done func(*chunk)
}

// singly returns a batch of each message.
func (b batch) singly() (all []batch) {
	for i := range b.items {
		all = append(all, batch{folder: b.folder, items: b.items[i : i+1], again: b.again, done: b.done})
	}
	for i := range b.kept {
		all = append(all, batch{folder: b.folder, kept: b.kept[i : i+1], again: b.again, done: b.done})
	}
	return all
}

// item returns the message of a batch of one.
func (b batch) item() mailbox.Item {
	if len(b.items) > 0 {
		return b.items[0]
	}
	return b.kept[0].item
}

// commit reads messages, decides about those that are new, and commits all of it in
// one transaction. If that fails because of messages, each is tried alone, and
// those that fail again are set aside. Those set aside before are left out.
func (p *pass) commit(ctx context.Context, b batch) error {
	unusable, aside := []asideRow(nil), b.again == nil && len(p.aside) > 0
	b.items = slices.DeleteFunc(slices.Clone(b.items), func(it mailbox.Item) bool {
		if aside && p.aside[it.Location] {
			return true
		}
		if it.Unusable != "" {
			unusable = append(unusable, asideOf(it, stepList, it.Unusable))
		}
		return it.Unusable != ""
	})
	if len(unusable) > 0 {
		if err := p.setAside(ctx, b.folder, unusable); err != nil {
			return err
		}
	}
	if len(b.items)+len(b.kept) == 0 {
		if b.with == nil {
			return nil
		}
		return p.write(ctx, b.with)
	}
	err := p.commitOnce(ctx, b)
	if ctx.Err() != nil || !ofMessages(err) {
		return err
	}
	p.log.WarnContext(ctx, "messages tried singly", slog.Int("messages", len(b.items)+len(b.kept)), slog.String("error", problem(err)))
	return p.commitEach(ctx, b)
}

// commitEach commits messages one by one. Messages that cannot be read are set
// aside if the account gives others: else the account fails.
func (p *pass) commitEach(ctx context.Context, b batch) error {
	gives := false
	var failed []asideRow
	var first error // of those in failed
	for _, one := range b.singly() {
		err := p.commitOnce(ctx, one)
		switch _, isUnread := errors.AsType[*unreadError](err); {
		case err == nil:
			gives = gives || len(one.items) > 0
		case ctx.Err() != nil || !ofMessages(err):
			return err
		case !isUnread:
			if err := p.setAside(ctx, b.folder, []asideRow{asideOf(one.item(), stepStore, problem(err))}); err != nil {
				return err
			}
		default:
			failed = append(failed, asideOf(one.item(), stepRead, problem(err)))
			if first == nil {
				first = err
			}
			if len(failed) >= maxUnread && !gives {
				if gives = p.gives(ctx, b.folder); !gives {
					return first
				}
			}
		}
	}
	if len(failed) > 0 {
		if !gives && !p.gives(ctx, b.folder) {
			return first
		}
		if err := p.setAside(ctx, b.folder, failed); err != nil {
			return err
		}
	}
	if b.with == nil {
		return nil
	}
	return p.write(ctx, b.with)
}

// gives reports whether the account gives a message of a folder that it gave
// before.
func (p *pass) gives(ctx context.Context, f mailbox.Folder) bool {
	var known []mailbox.Item
	err := p.engine.tx(ctx, func(tx pgx.Tx) (err error) {
		known, err = latest(ctx, tx, p.run, f.Name)
		return err
	})
	for _, it := range known {
		given := false
		if err == nil && p.reader.Read(ctx, []mailbox.Item{it}, func(_ mailbox.Item, _ []byte, err error) error {
			given = err == nil
			return nil
		}) == nil && given {
			return true
		}
	}
	return false
}

// setAside records messages of a folder that are not tried again until a person
// asks for it.
func (p *pass) setAside(ctx context.Context, f mailbox.Folder, rows []asideRow) error {
	err := p.write(ctx, func(tx pgx.Tx) error {
		return errors.Join(putAside(ctx, tx, p.run, f, rows), countSkipped(ctx, tx, p, len(rows)))
	})
	if err != nil {
		return fmt.Errorf("set messages aside: %w", err)
	}
	p.counted = true
	p.noteAside(f, rows)
	p.engine.metrics.Chunk(ctx, measure.Counts{SetAside: len(rows)}, 0)
	for _, row := range rows {
		p.log.WarnContext(ctx, "message set aside", slog.String("run_id", p.id.String()), slog.String("step", string(row.Step)), slog.String("error", row.Reason))
	}
	return nil
}

func (r *run) noteAside(f mailbox.Folder, rows []asideRow) {
	for _, row := range rows {
		if row.Key != "" {
			r.aside[mailbox.Location{Folder: f.Name, Key: row.Key}] = true
		}
	}
}

// readAside reads the messages again that a person asked for. Those that are read,
// or are gone, are set aside no more.
func (p *pass) readAside(ctx context.Context) error {
	for _, f := range p.folders {
		items := p.readAgain[f.Name]
		if items == nil {
			continue
		}
		delete(p.readAgain, f.Name)
		for _, it := range items {
			delete(p.aside, it.Location)
		}
		all := chunks(slices.DeleteFunc(items, func(it mailbox.Item) bool { return it.Key == "" }))
		for _, part := range all {
			if err := p.commit(ctx, batch{folder: f, items: part}); err != nil {
				return err
			}
		}
		// A message that was set aside anew is not asked for any more.
		if err := p.write(ctx, func(tx pgx.Tx) error { return clearAsked(ctx, tx, p.run, f.Name) }); err != nil {
			return err
		}
	}
	return nil
}
