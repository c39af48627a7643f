package maildir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/listing"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

// Config configures a Reader and a Writer.
type Config struct {
	// MaxSize limits the bytes of a message; 0 means 32 MiB.
	MaxSize int64
	// Interval is the longest wait of a Reader; 0 means a minute.
	Interval time.Duration
}

// Reader reads a Maildir. It has no method that changes one.
type Reader struct {
	account account
	memory  map[string]*listing.Memory
	watcher listing.Watcher
}

// NewReader returns a reader of the Maildir in a folder of the file system.
func NewReader(dir string, c Config) (*Reader, error) {
	a, err := open(dir, c.MaxSize)
	if err != nil {
		return nil, err
	}
	return &Reader{account: a, memory: map[string]*listing.Memory{}, watcher: listing.Watcher{Interval: c.Interval}}, nil
}

// Close closes the folder and ends the notifications.
func (r *Reader) Close() error {
	return errors.Join(r.watcher.Close(), r.account.root.Close())
}

// Folders returns INBOX and the subfolders, in both layouts.
func (r *Reader) Folders(ctx context.Context) ([]mailbox.Folder, error) {
	_, folders, err := r.account.folders()
	return folders, errors.Join(ctx.Err(), err)
}

// folder returns a folder for the package listing.
func (r *Reader) folder(ctx context.Context, name string) (dir string, folder listing.Folder, err error) {
	if err := ctx.Err(); err != nil {
		return "", folder, err
	}
	dir, err = r.account.dir(name)
	if err != nil {
		return "", folder, err
	}
	return dir, listing.Folder{
		List: func(each func(listing.Entry)) error {
			return errors.Join(r.account.list(dir, each), ctx.Err())
		},
		Touched: func(e listing.Entry) (int64, error) {
			info, err := r.account.root.Lstat(fileOf(dir, e))
			if errors.Is(err, fs.ErrNotExist) {
				return listing.Renamed, nil
			} else if err != nil {
				return 0, err
			}
			return listing.Touched(info), nil
		},
	}, nil
}

// End returns the cursor after all present messages.
func (r *Reader) End(ctx context.Context, folder string) (mailbox.Cursor, error) {
	_, listed, err := r.folder(ctx, folder)
	if err != nil {
		return nil, err
	}
	return listing.End(listed)
}

// Changes lists the folder and compares it with the cursor. It calls known if
// something changed that this Reader does not remember.
func (r *Reader) Changes(ctx context.Context, folder string, since mailbox.Cursor, limit int, known func(context.Context) ([]mailbox.Location, error)) (mailbox.Changes, error) {
	dir, listed, err := r.folder(ctx, folder)
	if err != nil {
		return mailbox.Changes{}, err
	}
	r.memory[folder] = cmp.Or(r.memory[folder], new(listing.Memory))
	diff, err := r.memory[folder].Changes(ctx, listed, since, limit, listing.Keys(known))
	if err != nil {
		return mailbox.Changes{}, fmt.Errorf("changes of folder %q: %w", folder, err)
	}
	changes := mailbox.Changes{Next: diff.Next, More: diff.More}
	if changes.New, err = r.items(folder, dir, diff.New); err != nil {
		return mailbox.Changes{}, err
	}
	if changes.Flagged, err = r.items(folder, dir, diff.Flagged); err != nil {
		return mailbox.Changes{}, err
	}
	for _, key := range diff.Gone {
		changes.Gone = append(changes.Gone, mailbox.Location{Folder: folder, Key: key})
	}
	return changes, nil
}

// Older returns messages ordered by the times in their names.
func (r *Reader) Older(ctx context.Context, folder string, before mailbox.Cursor, limit int) ([]mailbox.Item, mailbox.Cursor, error) {
	dir, listed, err := r.folder(ctx, folder)
	if err != nil {
		return nil, nil, err
	}
	for {
		entries, next, err := listing.Older(listed, before, limit)
		if err != nil || len(entries) == 0 {
			return nil, next, err
		}
		items, err := r.items(folder, dir, entries)
		if err != nil || len(items) > 0 {
			return items, next, err
		}
		before = next // all of them are gone, which is not yet the end
	}
}

// items completes entries to items. It omits messages that are gone.
func (r *Reader) items(folder, dir string, entries []listing.Entry) ([]mailbox.Item, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	names, err := r.account.keywords(dir)
	if err != nil {
		return nil, err
	}
	var items []mailbox.Item
	for _, e := range entries {
		e, err := r.account.find(dir, e)
		if errors.Is(err, mailbox.ErrGone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		info, err := r.account.root.Lstat(fileOf(dir, e))
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		items = append(items, mailbox.Item{
			Location: mailbox.Location{Folder: folder, Key: e.Key},
			Flags:    names.flags(lettersOf(e)), Received: info.ModTime().UTC(), Size: info.Size(),
		})
	}
	return items, nil
}

// Read reads the files of the items in order.
func (r *Reader) Read(ctx context.Context, items []mailbox.Item, each func(item mailbox.Item, raw []byte, err error) error) error {
	listed := map[string]map[string]listing.Entry{}
	for _, item := range items {
		if err := ctx.Err(); err != nil {
			return err
		}
		raw, err := r.read(item, items, listed)
		if err != nil && !errors.Is(err, mailbox.ErrGone) && !errors.Is(err, mailbox.ErrTooLarge) {
			return err
		}
		if err := each(item, raw, err); err != nil {
			return err
		}
	}
	return nil
}

// read reads one message, first under the name that its flags suggest. It lists
// a folder at most twice for all items.
func (r *Reader) read(item mailbox.Item, items []mailbox.Item, listed map[string]map[string]listing.Entry) ([]byte, error) {
	dir, err := r.account.dir(item.Folder)
	if err != nil || !validKey(item.Key) {
		return nil, mailbox.ErrGone
	}
	if item.Size > r.account.maxSize {
		return nil, mailbox.ErrTooLarge
	}
	names, err := r.account.keywords(dir)
	if err != nil {
		return nil, err
	}
	letters, _ := names.letters(item.Flags)
	for _, flags := range []string{"cur:2," + letters, "new"} {
		raw, err := r.account.read(fileOf(dir, listing.Entry{Key: item.Key, Flags: flags}))
		if !errors.Is(err, mailbox.ErrGone) {
			return raw, err
		}
	}
	for range 2 { // again, after a concurrent rename
		if listed[dir] == nil {
			if listed[dir], err = r.wanted(item.Folder, dir, items); err != nil {
				return nil, err
			}
		}
		e, ok := listed[dir][item.Key]
		if !ok {
			return nil, mailbox.ErrGone
		}
		raw, err := r.account.read(fileOf(dir, e))
		if !errors.Is(err, mailbox.ErrGone) {
			return raw, err
		}
		delete(listed, dir)
	}
	return nil, mailbox.ErrGone
}

// wanted lists the entries of the items of a folder.
func (r *Reader) wanted(folder, dir string, items []mailbox.Item) (map[string]listing.Entry, error) {
	keys := map[string]bool{}
	for _, item := range items {
		if item.Folder == folder {
			keys[item.Key] = true
		}
	}
	found := map[string]listing.Entry{}
	err := r.account.list(dir, func(e listing.Entry) {
		if keys[e.Key] {
			found[e.Key] = e
		}
	})
	return found, err
}

// Wait waits for the notifications of the file system.
func (r *Reader) Wait(ctx context.Context, folders []string) error {
	var dirs []string
	for _, folder := range folders {
		dir, err := r.account.dir(folder)
		if err != nil {
			return err
		}
		for _, part := range []string{"new", "cur"} {
			dirs = append(dirs, filepath.Join(r.account.root.Name(), filepath.FromSlash(path.Join(dir, part))))
		}
	}
	return r.watcher.Wait(ctx, dirs)
}
