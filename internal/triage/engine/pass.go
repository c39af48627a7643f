package engine

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/countersign-dev/countersign/internal/mail/authenticate"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

const (
	// pageItems is how many messages are listed at once, and chunkItems and
	// chunkBytes how many are read, decided and committed together: what a process
	// that dies has to read again.
	pageItems  = 200
	chunkItems = 50
	chunkBytes = 8 << 20
	// unknownBytes is what a message counts as whose size the account does not say.
	unknownBytes = 1 << 20
)

type kind string

const (
	kindChanges  kind = "changes"
	kindBackfill kind = "backfill"
	kindAsked    kind = "asked"
)

// pass is a reading of the account's folders. It has a row of triage_runs once it
// found something.
type pass struct {
	*run
	id   uuid.UUID
	kind kind
	// counted says that the pass has a row.
	counted bool
	err     error
}

func newPass(r *run, k kind) *pass { return &pass{run: r, id: uuid.Must(uuid.NewV7()), kind: k} }

// end records the end of a pass that has a row.
func (p *pass) end(ctx context.Context) {
	if !p.counted {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := p.engine.tx(ctx, func(tx pgx.Tx) error { return endRun(ctx, tx, p, problem(p.err)) }); err != nil {
		p.log.WarnContext(ctx, "end of a run not recorded", slog.Any("error", err))
	}
}

// newer reads what happened in a folder since the last time. The first time it
// notes where the folder ends: what was before is backfill's.
func (p *pass) newer(ctx context.Context, f mailbox.Folder) error {
	at, err := p.position(ctx, f)
	if err != nil {
		return err
	}
	for more := true; more; {
		known := func(ctx context.Context) ([]mailbox.Location, error) { return p.known(ctx, f.Name) }
		changes, err := p.reader.Changes(ctx, f.Name, at.cursor, pageItems, known)
		if err != nil {
			return err
		}
		if changes.Reset || len(changes.Flagged)+len(changes.Gone) > 0 {
			if err := p.moved(ctx, f, changes); err != nil {
				return err
			}
		}
		if at.voided = at.voided || changes.Reset; at.voided {
			changes.New = p.wanted(changes.New)
		}
		for _, chunk := range chunks(changes.New) {
			if err := p.commit(ctx, batch{folder: f, items: chunk}); err != nil {
				return err
			}
		}
		if string(changes.Next) != string(at.cursor) {
			at.cursor = changes.Next
			if err := p.write(ctx, func(tx pgx.Tx) error { return putPosition(ctx, tx, p.run, f, at) }); err != nil {
				return err
			}
		}
		more = changes.More
	}
	if !at.voided {
		return nil
	}
	return p.write(ctx, func(tx pgx.Tx) error { return deleteVoided(ctx, tx, p.run, f.Name) })
}

// wanted returns the messages that are not older than the account, and than the
// days that backfill reads, with a day for clocks that differ.
func (p *pass) wanted(items []mailbox.Item) (wanted []mailbox.Item) {
	oldest := p.account.CreatedAt.AddDate(0, 0, -p.account.BackfillDays-1)
	for _, it := range items {
		if it.Received.After(oldest) {
			wanted = append(wanted, it)
		}
	}
	return wanted
}

// page reads a page of what is older in the first folder that is not done, newest
// first. It reports whether there may be more.
func (p *pass) page(ctx context.Context, folders []mailbox.Folder) (more bool, err error) {
	oldest := time.Now().AddDate(0, 0, -p.account.BackfillDays)
	for _, f := range folders {
		at, err := p.position(ctx, f)
		if err != nil {
			return false, err
		}
		if at.olderDone {
			continue
		}
		items, next, err := p.reader.Older(ctx, f.Name, at.older, pageItems)
		if err != nil {
			return false, err
		}
		var wanted []mailbox.Item
		for _, it := range items {
			if it.Received.After(oldest) {
				wanted = append(wanted, it)
			}
		}
		// The order is the server's: old mail that was brought in lately lies before
		// newer mail. A list costs little, so that all of them are looked at.
		at.older, at.olderDone = next, len(items) == 0
		done := func(tx pgx.Tx) error { return putPosition(ctx, tx, p.run, f, at) }
		all := chunks(wanted)
		for i, chunk := range all {
			var with func(pgx.Tx) error
			if i == len(all)-1 {
				with = done
			}
			if err := p.commit(ctx, batch{folder: f, items: chunk, with: with}); err != nil {
				return false, err
			}
		}
		if len(all) == 0 {
			return true, p.write(ctx, done)
		}
		return true, nil
	}
	return false, nil
}

// position is how far a folder was read.
type position struct {
	cursor, older mailbox.Cursor
	olderDone     bool
	// voided says that all locations became void, and that the messages that are
	// there now have not all been read again.
	voided bool
}

func (p *pass) position(ctx context.Context, f mailbox.Folder) (position, error) {
	var at position
	err := p.engine.tx(ctx, func(tx pgx.Tx) (err error) {
		at, err = positionOf(ctx, tx, p.run, f.Name)
		return err
	})
	if err != nil || len(at.cursor) > 0 {
		return at, err
	}
	if at.cursor, err = p.reader.End(ctx, f.Name); err != nil {
		return at, err
	}
	at.olderDone = p.account.BackfillDays == 0
	return at, p.write(ctx, func(tx pgx.Tx) error { return putPosition(ctx, tx, p.run, f, at) })
}

func (p *pass) known(ctx context.Context, folder string) (all []mailbox.Location, err error) {
	err = p.engine.tx(ctx, func(tx pgx.Tx) (err error) {
		all, err = knownLocations(ctx, tx, p.run, folder)
		return err
	})
	for at := range p.aside {
		if at.Folder == folder {
			all = append(all, at)
		}
	}
	return all, err
}

// write runs fn in a transaction that requires that the run still holds the
// account.
func (p *pass) write(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return p.engine.tx(ctx, func(tx pgx.Tx) error {
		if err := require(ctx, tx, p.run); err != nil {
			return err
		}
		return fn(tx)
	})
}

// commitOnce commits a batch in one transaction.
func (p *pass) commitOnce(ctx context.Context, b batch) (err error) {
	c := &chunk{pass: p, folder: b.folder, again: b.again}
	began := time.Now()
	ctx, span := p.engine.cfg.Tracer.Start(ctx, "read mail", trace.WithAttributes(attribute.String("run_id", p.id.String())))
	defer func() {
		span.SetAttributes(attribute.Int("read", len(c.mails)), attribute.Int("decided", len(c.decisions)), attribute.Int("proposed", c.proposed))
		endSpan(span, err)
	}()
	if err := c.read(ctx, b.items, began); err != nil {
		return err
	}
	c.mails = append(c.mails, b.kept...)
	err = p.write(ctx, func(tx pgx.Tx) error {
		if err := c.store(ctx, tx); err != nil || b.with == nil {
			return err
		}
		return b.with(tx)
	})
	if err != nil {
		return err
	}
	p.counted = true
	p.recent.keep(c)
	p.noteAside(b.folder, c.skipped)
	p.engine.metrics.Chunk(ctx, c.counts(), time.Since(began))
	p.log.DebugContext(ctx, "mail read", slog.String("run_id", p.id.String()), slog.Int("read", len(c.mails)),
		slog.Int("decided", len(c.decisions)), slog.Int("proposed", c.proposed), slog.Int("skipped", len(c.skipped)))
	if b.done != nil {
		b.done(c)
	}
	return nil
}

// read reads and parses messages, and checks who sent them.
func (c *chunk) read(ctx context.Context, items []mailbox.Item, now time.Time) error {
	if len(items) == 0 {
		return nil // all of them are kept
	}
	err := c.reader.Read(ctx, items, func(it mailbox.Item, raw []byte, err error) error {
		switch {
		case errors.Is(err, mailbox.ErrGone):
		case errors.Is(err, mailbox.ErrTooLarge), errors.Is(err, mailbox.ErrUnreadable):
			c.skipped = append(c.skipped, asideOf(it, stepRead, problem(err)))
		case err != nil:
			return err
		default:
			return c.contained(func() error {
				c.mails = append(c.mails, newMail(it, raw))
				return nil
			})
		}
		return nil
	})
	if err != nil {
		return unread(ctx, err)
	}
	for i := range c.mails {
		if err := c.contained(func() error { return c.authenticate(ctx, &c.mails[i], now) }); err != nil {
			return err
		}
	}
	return ctx.Err() // DNS that was not asked to the end gives no result to decide by
}

// authenticate checks who sent a message, for which its original is needed.
func (c *chunk) authenticate(ctx context.Context, m *mail, now time.Time) error {
	if m.item.Built {
		m.raw, m.authentication = nil, unproven()
		return nil
	}
	m.authentication = authenticate.Check(ctx, m.raw, m.message, authenticate.Config{
		TrustedHost: c.account.Connection.TrustedHost, Resolver: c.engine.cfg.Resolver, Now: now,
	})
	m.raw = nil
	return nil
}

// chunks divides items into what is read and committed together.
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
