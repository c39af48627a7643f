package reader

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

const (
	// pageItems limits the messages listed together, and chunkItems and
	// chunkBytes those read, decided and committed together, which a killed
	// process has to read again.
	pageItems  = 200
	chunkItems = 50
	chunkBytes = 8 << 20
	// unknownBytes is the assumed size of a message of unknown size.
	unknownBytes = 1 << 20
)

// newer reads the changes of a folder. The first call stores the end of the
// folder: earlier messages are left to backfill.
func (r *Reader) newer(ctx context.Context, run *Run, f mailbox.Folder) error {
	at, err := r.position(ctx, f)
	if err != nil {
		return err
	}
	for more := true; more; {
		known := func(ctx context.Context) ([]mailbox.Location, error) { return r.known(ctx, f.Name) }
		changes, err := r.mailbox.Changes(ctx, f.Name, at.cursor, pageItems, known)
		if err != nil {
			return err
		}
		if changes.Reset || len(changes.Flagged)+len(changes.Gone) > 0 {
			if err := r.moved(ctx, f, changes); err != nil {
				return err
			}
		}
		if at.voided = at.voided || changes.Reset; at.voided {
			// One more day allows for clock differences.
			changes.New = since(r.lease.Account.CreatedAt.AddDate(0, 0, -r.lease.Account.BackfillDays-1), changes.New)
		}
		for _, chunk := range chunks(changes.New) {
			if err := r.commit(ctx, run, batch{folder: f, items: chunk}); err != nil {
				return err
			}
		}
		if string(changes.Next) != string(at.cursor) {
			at.cursor = changes.Next
			if err := r.lease.Write(ctx, func(tx pgx.Tx) error { return putPosition(ctx, tx, r.lease, f, at) }); err != nil {
				return err
			}
		}
		more = changes.More
	}
	if !at.voided {
		return nil
	}
	return r.lease.Write(ctx, func(tx pgx.Tx) error { return deleteVoided(ctx, tx, r.lease, f.Name) })
}

// since returns the messages received after a time.
func since(oldest time.Time, items []mailbox.Item) []mailbox.Item {
	return slices.DeleteFunc(items, func(it mailbox.Item) bool { return !it.Received.After(oldest) })
}

// Older reads a page of older messages, newest first, of the first folder that
// is not done. It reports whether there may be more.
func (r *Reader) Older(ctx context.Context, run *Run) (more bool, err error) {
	oldest := time.Now().AddDate(0, 0, -r.lease.Account.BackfillDays)
	for _, f := range r.folders {
		at, err := r.position(ctx, f)
		if err != nil {
			return false, err
		}
		if at.olderDone {
			continue
		}
		items, next, err := r.mailbox.Older(ctx, f.Name, at.older, pageItems)
		if err != nil {
			return false, err
		}
		// The order is the server's: old mail that was imported recently comes
		// before newer mail. So every page is listed to the end, which is
		// cheap.
		at.older, at.olderDone = next, len(items) == 0
		all := chunks(since(oldest, items))
		for ; len(all) > 1; all = all[1:] {
			if err := r.commit(ctx, run, batch{folder: f, items: all[0]}); err != nil {
				return false, err
			}
		}
		done := func(tx pgx.Tx) error { return putPosition(ctx, tx, r.lease, f, at) }
		return true, r.commit(ctx, run, batch{folder: f, items: slices.Concat(all...), with: done})
	}
	return false, nil
}

// position is the position of reading a folder.
type position struct {
	cursor, older mailbox.Cursor
	olderDone     bool
	// voided reports whether all locations became void and the present messages
	// have not all been read again.
	voided bool
}

func (r *Reader) position(ctx context.Context, f mailbox.Folder) (position, error) {
	var at position
	err := r.lease.Tx(ctx, func(tx pgx.Tx) (err error) {
		at, err = positionOf(ctx, tx, r.lease, f.Name)
		return err
	})
	if err != nil || len(at.cursor) > 0 {
		return at, err
	}
	if at.cursor, err = r.mailbox.End(ctx, f.Name); err != nil {
		return at, err
	}
	at.olderDone = r.lease.Account.BackfillDays == 0
	return at, r.lease.Write(ctx, func(tx pgx.Tx) error { return putPosition(ctx, tx, r.lease, f, at) })
}

func (r *Reader) known(ctx context.Context, folder string) (all []mailbox.Location, err error) {
	err = r.lease.Tx(ctx, func(tx pgx.Tx) (err error) {
		all, err = knownLocations(ctx, tx, r.lease, folder)
		return err
	})
	for at := range r.aside {
		if at.Folder == folder {
			all = append(all, at)
		}
	}
	return all, err
}
