package imap

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

// Reader reads an account. It has no method that changes one and sends only
// reading commands: it opens folders by EXAMINE and fetches bodies by PEEK.
type Reader struct {
	config   Config
	work     dialer
	unusable unusable

	// changed holds one pending notification of an idling connection.
	changed chan struct{}
	idlers  map[string]*idler
	stop    context.CancelFunc
	running sync.WaitGroup
	idling  context.Context
}

// NewReader returns a reader of an account. It connects on first use.
func NewReader(c Config) (*Reader, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	remaining := unusable{}
	r := &Reader{config: c, work: dialer{config: c, unusable: remaining}, unusable: remaining, changed: make(chan struct{}, 1), idlers: map[string]*idler{}}
	r.idling, r.stop = context.WithCancel(context.Background())
	return r, nil
}

// Close ends all connections.
func (r *Reader) Close() error {
	r.stop()
	r.work.close()
	r.running.Wait()
	return nil
}

// Folders returns the folders that can hold messages, with the uses that the
// server assigns or that their names suggest.
func (r *Reader) Folders(ctx context.Context) (folders []mailbox.Folder, err error) {
	err = r.run(ctx, func(conn *connection) error {
		folders, err = conn.folders(ctx)
		return err
	})
	return folders, err
}

// End returns the cursor after all present messages.
func (r *Reader) End(ctx context.Context, folder string) (next mailbox.Cursor, err error) {
	err = r.run(ctx, func(conn *connection) error {
		p := pass{connection: conn, folder: folder}
		if err := p.begin(ctx, nil); err != nil {
			return err
		}
		next, err = p.end(ctx)
		return err
	})
	return next, err
}

// Changes returns the changes since the cursor. It calls known if messages are
// gone.
func (r *Reader) Changes(ctx context.Context, folder string, since mailbox.Cursor, limit int, known func(context.Context) ([]mailbox.Location, error)) (changes mailbox.Changes, err error) {
	err = r.run(ctx, func(conn *connection) error {
		p := pass{connection: conn, folder: folder, limit: limit, known: known}
		if err := p.begin(ctx, since); err != nil {
			return err
		}
		changes, err = p.changes(ctx)
		return err
	})
	if err != nil {
		return mailbox.Changes{}, err
	}
	return changes, nil
}

// Older returns messages ordered by UID.
func (r *Reader) Older(ctx context.Context, folder string, before mailbox.Cursor, limit int) (items []mailbox.Item, next mailbox.Cursor, err error) {
	err = r.run(ctx, func(conn *connection) error {
		items, next, err = conn.older(ctx, folder, before, limit)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return items, next, nil
}

// Read fetches bodies in batches of bounded number and size, and calls each
// between batches.
func (r *Reader) Read(ctx context.Context, items []mailbox.Item, each func(item mailbox.Item, raw []byte, err error) error) error {
	remaining := make([]mailbox.Item, 0, len(items))
	for _, item := range items {
		if _, _, err := splitKey(item.Key); err != nil || item.Size > r.config.MaxSize {
			err = cmp.Or(err, mailbox.ErrTooLarge)
			if err := errors.Join(ctx.Err(), each(item, nil, err)); err != nil {
				return err
			}
			continue
		}
		remaining = append(remaining, item)
	}
	bodies := &bodies{tooLarge: map[mailbox.Location]bool{}}
	for len(remaining) > 0 {
		var results []result
		batch := nextBatch(remaining)
		err := r.run(ctx, func(conn *connection) (err error) {
			results, err = bodies.read(ctx, conn, batch)
			return err
		})
		if err != nil {
			return err
		}
		for _, result := range results {
			if err := each(result.item, result.raw, result.err); err != nil {
				return err
			}
		}
		remaining = remaining[len(batch):]
	}
	return ctx.Err()
}
