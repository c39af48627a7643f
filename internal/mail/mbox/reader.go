package mbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/listing"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

const (
	inbox          = "INBOX"
	defaultMaxSize = 32 << 20
)

// Config configures a Reader.
type Config struct {
	// MaxSize limits the bytes of a message; 0 means 32 MiB.
	MaxSize int64
	// Interval is the longest wait; 0 means a minute.
	Interval time.Duration
}

// Reader reads one mbox or a folder of them.
type Reader struct {
	root *os.Root
	// single is the name of the file for INBOX; empty for a folder of files.
	single  string
	maxSize int64
	watcher listing.Watcher
}

// NewReader returns a reader of a single file, which is INBOX, or of the files
// in a directory, which are folders of the same names.
func NewReader(path string, c Config) (*Reader, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open mbox: %w", err)
	}
	r := &Reader{maxSize: c.MaxSize, watcher: listing.Watcher{Interval: c.Interval}}
	if r.maxSize <= 0 {
		r.maxSize = defaultMaxSize
	}
	if !info.IsDir() {
		path, r.single = filepath.Dir(path), filepath.Base(path)
	}
	if r.root, err = os.OpenRoot(path); err != nil {
		return nil, fmt.Errorf("open mbox: %w", err)
	}
	return r, nil
}

// Close closes the folder and ends the notifications.
func (r *Reader) Close() error { return errors.Join(r.watcher.Close(), r.root.Close()) }

// Folders returns the files that are empty or begin like an mbox.
func (r *Reader) Folders(ctx context.Context) ([]mailbox.Folder, error) {
	if err := ctx.Err(); err != nil || r.single != "" {
		return []mailbox.Folder{{Name: inbox, Use: mailbox.UseInbox}}, err
	}
	entries, err := fs.ReadDir(r.root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("list mboxes: %w", err)
	}
	var folders []mailbox.Folder
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			continue
		}
		f, err := r.open(ctx, entry.Name())
		if err != nil {
			continue // hidden, or deleted
		}
		start, err := f.isStart(0)
		if start && err == nil || f.size == 0 {
			folders = append(folders, mailbox.Folder{Name: entry.Name(), Use: mailbox.UseOf(entry.Name(), "")})
		}
		f.Close()
	}
	return folders, nil
}

func (r *Reader) open(ctx context.Context, folder string) (*file, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	name, err := r.name(folder)
	if err != nil {
		return nil, err
	}
	f, err := openFile(r.root, name)
	if err != nil {
		return nil, fmt.Errorf("folder %q: %w", folder, err)
	}
	return f, nil
}

// name returns the name of a folder's file.
func (r *Reader) name(folder string) (string, error) {
	if r.single != "" && folder == inbox {
		return r.single, nil
	}
	if r.single != "" || folder == "" || folder[0] == '.' || strings.ContainsAny(folder, "/\x00") {
		return "", fmt.Errorf("folder %q: %w", folder, mailbox.ErrNoFolder)
	}
	return folder, nil
}

// cursor is the position in a file: the offset up to which it was read, with a
// digest over the bytes before it.
type cursor struct {
	Inode  uint64 `json:"inode"`
	Offset int64  `json:"offset"`
	Digest string `json:"digest"`
}

func parse(text mailbox.Cursor) (cursor, error) {
	return mailbox.ParseCursor(text, "an mbox", func(c cursor) bool { return c.Offset >= 0 })
}

func (f *file) cursor(offset int64) (mailbox.Cursor, error) {
	digest, err := f.digest(offset)
	if err != nil {
		return nil, err
	}
	return json.Marshal(cursor{f.inode, offset, digest})
}

// holds reports whether the file is unchanged up to the cursor.
func (f *file) holds(c cursor) (bool, error) {
	if c.Inode != f.inode || c.Offset > f.size {
		return false, nil
	}
	digest, err := f.digest(c.Offset)
	return digest == c.Digest, err
}

// End returns the cursor after the last message.
func (r *Reader) End(ctx context.Context, folder string) (mailbox.Cursor, error) {
	f, err := r.open(ctx, folder)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.cursor(f.size)
}

// Changes reads the file from the cursor. All locations are void if the file
// was rewritten: by a program that changed or deleted a message, or while the
// last message was still being written.
func (r *Reader) Changes(ctx context.Context, folder string, since mailbox.Cursor, limit int, _ func(context.Context) ([]mailbox.Location, error)) (mailbox.Changes, error) {
	at, err := parse(since)
	if err != nil {
		return mailbox.Changes{}, err
	}
	f, err := r.open(ctx, folder)
	if err != nil {
		return mailbox.Changes{}, err
	}
	defer f.Close()
	var changes mailbox.Changes
	start, err := f.next(at.Offset)
	if err != nil {
		return changes, err
	}
	if len(since) > 0 {
		holds, err := f.holds(at)
		if err != nil {
			return changes, err
		}
		if !holds || !f.onlyBlank(at.Offset, start) {
			changes.Reset = true
			if start, err = f.next(0); err != nil {
				return changes, err
			}
		}
	}
	for ; start < f.size && len(changes.New) < limit; err = ctx.Err() {
		if err != nil {
			return mailbox.Changes{}, err
		}
		end, err := f.next(start + 1)
		if err != nil {
			return mailbox.Changes{}, err
		}
		item, err := f.item(folder, start, end)
		if err != nil {
			return mailbox.Changes{}, err
		}
		changes.New = append(changes.New, item)
		start = end
	}
	changes.More = start < f.size
	changes.Next, err = f.cursor(start)
	return changes, err
}

// onlyBlank reports whether there are only empty lines between two offsets, the
// first of which is the end of a message. Otherwise that message was continued.
func (f *file) onlyBlank(from, to int64) bool {
	if to-from > maxLine {
		return false
	}
	text, err := f.part(from, to-from)
	return err == nil && strings.Trim(string(text), "\r\n") == ""
}

// Older reads the file backwards.
func (r *Reader) Older(ctx context.Context, folder string, before mailbox.Cursor, limit int) ([]mailbox.Item, mailbox.Cursor, error) {
	at, err := parse(before)
	if err != nil {
		return nil, nil, err
	}
	f, err := r.open(ctx, folder)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	holds, err := f.holds(at)
	if err != nil {
		return nil, nil, err
	}
	end := at.Offset
	if len(before) == 0 || !holds {
		end = f.size
	}
	var items []mailbox.Item
	for len(items) < limit {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		start, err := f.previous(end)
		if err != nil {
			return nil, nil, err
		}
		if start < 0 {
			break
		}
		item, err := f.item(folder, start, end)
		if err != nil {
			return nil, nil, err
		}
		items = append(items, item)
		end = start
	}
	next, err := f.cursor(end)
	return items, next, err
}

// Read reads each message at its offset.
func (r *Reader) Read(ctx context.Context, items []mailbox.Item, each func(item mailbox.Item, raw []byte, err error) error) error {
	for _, item := range items {
		raw, err := r.read(ctx, item)
		if err != nil && !errors.Is(err, mailbox.ErrGone) && !errors.Is(err, mailbox.ErrTooLarge) {
			return err
		}
		if err := each(item, raw, err); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reader) read(ctx context.Context, item mailbox.Item) ([]byte, error) {
	offset, err := strconv.ParseInt(item.Key, 10, 64)
	if err != nil || offset < 0 {
		return nil, mailbox.ErrGone
	}
	f, err := r.open(ctx, item.Folder)
	if errors.Is(err, mailbox.ErrNoFolder) {
		return nil, mailbox.ErrGone
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.content(offset, r.maxSize)
}

// Wait waits for the notifications of the file system about the directory of
// the files, since a program may write a new file and rename it.
func (r *Reader) Wait(ctx context.Context, folders []string) error {
	for _, folder := range folders {
		if _, err := r.name(folder); err != nil {
			return err
		}
	}
	return r.watcher.Wait(ctx, []string{r.root.Name()})
}
