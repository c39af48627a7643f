package reader

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

// step is the step at which a message that is set aside failed.
type step string

const (
	stepList  step = "list"
	stepRead  step = "read"
	stepStore step = "store"
)

const (
	// maxAside limits the messages set aside that a run skips or reads again.
	// After maxUnread consecutive unreadable messages, it is checked that the
	// account returns any.
	maxAside  = 10_000
	maxUnread = 3
	// controls is the number of messages, read before, that this check tries.
	controls = 3
)

// messageError is an error caused by the content of a message, in judging or
// encoding it. If unread is set, it is an error of the account when reading
// messages, which one of them or the account may have caused.
type messageError struct {
	err    error
	unread bool
}

// Error implements error.
func (e *messageError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *messageError) Unwrap() error { return e.err }

// ofMessages reports whether single messages may have caused an error.
func ofMessages(err error) bool {
	if _, ok := errors.AsType[*messageError](err); ok {
		return true
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && len(pg.Code) == 5 {
		// Cardinality violations, data exceptions, violated constraints,
		// exceeded limits.
		return slices.Contains([]string{"21", "22", "23", "54"}, pg.Code[:2])
	}
	return false
}

// unread converts the error of a Read: unless it is about the account, it
// becomes a messageError.
func unread(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	if _, ok := errors.AsType[*messageError](err); ok {
		return err
	}
	for _, account := range []error{mailbox.ErrDenied, mailbox.ErrBusy, mailbox.ErrNoFolder, mailbox.ErrInvalid} {
		if errors.Is(err, account) {
			return err
		}
	}
	return &messageError{err, true}
}

// contained calls a function about one message. It returns an error or a panic
// as a messageError: a bug that one message triggers must not end the process.
func (r *Reader) contained(about func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			text := "the program failed on the message"
			if bug, ok := cause.(runtime.Error); ok {
				text += ": " + bug.Error() // a runtime error, without text of the mail
			}
			r.lease.Log.Error("message not judged", slog.String("error", text), slog.String("stack", string(debug.Stack())))
			err = &messageError{err: errors.New(text)}
		}
	}()
	if err := about(); err != nil {
		return &messageError{err: err}
	}
	return nil
}

// readable reports whether the account still returns a message of a folder that
// was read before.
func (r *Reader) readable(ctx context.Context, f mailbox.Folder) bool {
	var known []mailbox.Item
	err := r.lease.Tx(ctx, func(tx pgx.Tx) (err error) {
		known, err = latest(ctx, tx, r.lease, f.Name)
		return err
	})
	for _, it := range known {
		given := false
		if err == nil && r.mailbox.Read(ctx, []mailbox.Item{it}, func(_ mailbox.Item, _ []byte, err error) error {
			given = err == nil
			return nil
		}) == nil && given {
			return true
		}
	}
	return false
}

// setAside records messages of a folder that are not retried until a person
// asks for it.
func (r *Reader) setAside(ctx context.Context, run *Run, f mailbox.Folder, rows []asideRow) error {
	err := r.lease.Write(ctx, func(tx pgx.Tx) error {
		return errors.Join(putAside(ctx, tx, r.lease, f, rows), count(ctx, tx, r.lease, run, runCounts{skipped: len(rows)}))
	})
	if err != nil {
		return fmt.Errorf("set messages aside: %w", err)
	}
	run.counted = true
	r.noteAside(f, rows)
	r.cfg.Metrics.Chunk(ctx, measure.Counts{SetAside: len(rows)}, 0)
	for _, row := range rows {
		r.lease.Log.WarnContext(ctx, "message set aside", slog.String("run_id", run.id.String()), slog.String("step", string(row.Step)), slog.String("error", row.Reason))
	}
	return nil
}

func (r *Reader) noteAside(f mailbox.Folder, rows []asideRow) {
	for _, row := range rows {
		if row.Key != "" {
			r.aside[mailbox.Location{Folder: f.Name, Key: row.Key}] = true
		}
	}
}

// readAside reads the messages again that a person asked for. Messages that
// succeed or are gone are no longer set aside.
func (r *Reader) readAside(ctx context.Context, run *Run) error {
	for _, f := range r.folders {
		items := r.readAgain[f.Name]
		if items == nil {
			continue
		}
		delete(r.readAgain, f.Name)
		for _, it := range items {
			delete(r.aside, it.Location)
		}
		all := chunks(slices.DeleteFunc(items, func(it mailbox.Item) bool { return it.Key == "" }))
		for _, part := range all {
			if err := r.commit(ctx, run, batch{folder: f, items: part}); err != nil {
				return err
			}
		}
		// A message that failed again is no longer requested.
		if err := r.lease.Write(ctx, func(tx pgx.Tx) error { return clearAsked(ctx, tx, r.lease, f.Name) }); err != nil {
			return err
		}
	}
	return nil
}
