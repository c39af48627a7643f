package reader

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/triage/measure"
)

// batch is a set of messages that are committed together: messages of a folder
// to read, and messages kept from before.
type batch struct {
	folder mailbox.Folder
	items  []mailbox.Item
	kept   []mail
	// again holds the messages to decide again, by identity; nil for others.
	again map[string]Stored
	// with adds statements to the transaction, unless it is nil.
	with func(pgx.Tx) error
	// decided collects the messages that were decided again.
	decided map[uuid.UUID]bool
}

// singly returns one batch for each message.
func (b batch) singly() (all []batch) {
	for i := range b.items {
		all = append(all, batch{folder: b.folder, items: b.items[i : i+1], again: b.again, decided: b.decided})
	}
	for i := range b.kept {
		all = append(all, batch{folder: b.folder, kept: b.kept[i : i+1], again: b.again, decided: b.decided})
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

// commit reads messages, decides the new ones, and commits everything in one
// transaction. If messages make that fail, each is tried alone, and those that
// fail again are set aside. Messages set aside before are skipped.
func (r *Reader) commit(ctx context.Context, run *Run, b batch) error {
	unusable, aside := []asideRow(nil), b.again == nil && len(r.aside) > 0
	b.items = slices.DeleteFunc(slices.Clone(b.items), func(it mailbox.Item) bool {
		if aside && r.aside[it.Location] {
			return true
		}
		if it.Unusable != "" {
			unusable = append(unusable, asideOf(it, stepList, it.Unusable))
		}
		return it.Unusable != ""
	})
	if len(unusable) > 0 {
		if err := r.setAside(ctx, run, b.folder, unusable); err != nil {
			return err
		}
	}
	if len(b.items)+len(b.kept) == 0 {
		if b.with == nil {
			return nil
		}
		return r.lease.Write(ctx, b.with)
	}
	err := r.commitOnce(ctx, run, b)
	if ctx.Err() != nil || !ofMessages(err) {
		return err
	}
	r.lease.Log.WarnContext(ctx, "messages tried singly", slog.Int("messages", len(b.items)+len(b.kept)), slog.String("error", measure.Problem(err)))
	return r.commitEach(ctx, run, b)
}

// commitEach commits messages one by one. If the account returns other
// messages, it sets unreadable ones aside; otherwise it fails.
func (r *Reader) commitEach(ctx context.Context, run *Run, b batch) error {
	readable := false
	var failed []asideRow
	var first error // of the messages in failed
	for _, one := range b.singly() {
		err := r.commitOnce(ctx, run, one)
		switch failure, ok := errors.AsType[*messageError](err); {
		case err == nil:
			readable = readable || len(one.items) > 0
		case ctx.Err() != nil || !ofMessages(err):
			return err
		case !ok || !failure.unread:
			if err := r.setAside(ctx, run, b.folder, []asideRow{asideOf(one.item(), stepStore, measure.Problem(err))}); err != nil {
				return err
			}
		default:
			failed = append(failed, asideOf(one.item(), stepRead, measure.Problem(err)))
			first = cmp.Or(first, err)
			if len(failed) >= maxUnread && !readable {
				if readable = r.readable(ctx, b.folder); !readable {
					return first
				}
			}
		}
	}
	if len(failed) > 0 {
		if !readable && !r.readable(ctx, b.folder) {
			return first
		}
		if err := r.setAside(ctx, run, b.folder, failed); err != nil {
			return err
		}
	}
	if b.with == nil {
		return nil
	}
	return r.lease.Write(ctx, b.with)
}

// commitOnce commits a batch in one transaction.
func (r *Reader) commitOnce(ctx context.Context, run *Run, b batch) (err error) {
	c := &chunk{reader: r, run: run, lease: r.lease, folder: b.folder, again: b.again}
	began := time.Now()
	ctx, span := r.cfg.Tracer.Start(ctx, "read mail", trace.WithAttributes(attribute.String("run_id", run.id.String())))
	defer func() {
		span.SetAttributes(attribute.Int("read", len(c.mails)), attribute.Int("decided", len(c.decisions)), attribute.Int("proposed", c.proposed))
		measure.EndSpan(span, err)
	}()
	if err := c.read(ctx, b.items, began); err != nil {
		return err
	}
	c.mails = append(c.mails, b.kept...)
	err = r.lease.Write(ctx, func(tx pgx.Tx) error {
		if err := c.store(ctx, tx); err != nil || b.with == nil {
			return err
		}
		return b.with(tx)
	})
	if err != nil {
		return err
	}
	run.counted = true
	r.recent.keep(c)
	r.noteAside(b.folder, c.skipped)
	r.cfg.Metrics.Chunk(ctx, c.counts(), time.Since(began))
	r.lease.Log.DebugContext(ctx, "mail read", slog.String("run_id", run.id.String()), slog.Int("read", len(c.mails)),
		slog.Int("decided", len(c.decisions)), slog.Int("proposed", c.proposed), slog.Int("skipped", len(c.skipped)))
	for _, d := range c.decisions {
		if b.again != nil {
			b.decided[d.Message] = true
		}
	}
	return nil
}

// chunks splits items into sets that are read and committed together.
func chunks(items []mailbox.Item) (all [][]mailbox.Item) {
	var size int64
	from := 0
	for i, it := range items {
		bytes := cmp.Or(it.Size, unknownBytes)
		if i > from && (i-from == chunkItems || size+bytes > chunkBytes) {
			all = append(all, items[from:i])
			from, size = i, 0
		}
		size += bytes
	}
	if from < len(items) {
		all = append(all, items[from:])
	}
	return all
}
