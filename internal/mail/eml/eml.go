// Package eml reads a folder of .eml files, one message each, and its
// subfolders. A key consists of the name, size and time of a file: a file that
// is rewritten is another message. The package has no flags, never writes, and
// follows no symbolic link out of the folder.
package eml

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/listing"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

const (
	defaultMaxSize = 32 << 20
	maxDepth       = 10 // of nested folders
	inbox          = "INBOX"
)

// Config configures a Reader.
type Config struct {
	// MaxSize limits the bytes of a message; 0 means 32 MiB.
	MaxSize int64
	// Interval is the longest wait; 0 means a minute.
	Interval time.Duration
}

// Reader reads folders of .eml files. The folder itself is INBOX; subfolders
// are named by their paths.
type Reader struct {
	root    *os.Root
	maxSize int64
	memory  map[string]*listing.Memory
	watcher listing.Watcher
}

// NewReader returns a reader of the files in a folder.
func NewReader(dir string, c Config) (*Reader, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open folder of .eml files: %w", err)
	}
	if c.MaxSize <= 0 {
		c.MaxSize = defaultMaxSize
	}
	return &Reader{
		root: root, maxSize: c.MaxSize, memory: map[string]*listing.Memory{}, watcher: listing.Watcher{Interval: c.Interval},
	}, nil
}

// Close closes the folder and ends the notifications.
func (r *Reader) Close() error { return errors.Join(r.watcher.Close(), r.root.Close()) }

// Folders returns INBOX and the subfolders.
func (r *Reader) Folders(ctx context.Context) ([]mailbox.Folder, error) {
	folders := []mailbox.Folder{{Name: inbox, Use: mailbox.UseInbox}}
	err := r.walk(ctx, ".", 0, func(dir string) {
		folders = append(folders, mailbox.Folder{Name: dir, Use: mailbox.UseOf(dir, "/")})
	})
	return folders, err
}

func (r *Reader) walk(ctx context.Context, dir string, depth int, visit func(string)) error {
	if err := ctx.Err(); err != nil || depth == maxDepth {
		return err
	}
	f, err := r.root.Open(dir)
	if err != nil {
		return fmt.Errorf("list folders: %w", err)
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return fmt.Errorf("list folders: %w", err)
	}
	for _, entry := range entries {
		if !entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		below := path.Join(dir, entry.Name())
		visit(below)
		if err := r.walk(ctx, below, depth+1, visit); err != nil {
			return err
		}
	}
	return nil
}

// dir returns the path of a folder.
func (r *Reader) dir(folder string) (string, error) {
	if folder == inbox {
		return ".", nil
	}
	if folder != "." && fs.ValidPath(folder) && !strings.Contains("/"+folder, "/.") {
		if info, err := r.root.Stat(folder); err == nil && info.IsDir() {
			return folder, nil
		}
	}
	return "", fmt.Errorf("folder %q: %w", folder, mailbox.ErrNoFolder)
}

// folder returns a folder for the package listing.
func (r *Reader) folder(ctx context.Context, name string) (folder listing.Folder, err error) {
	if err := ctx.Err(); err != nil {
		return folder, err
	}
	dir, err := r.dir(name)
	return listing.Folder{
		List: func(each func(listing.Entry)) error { return r.list(ctx, dir, each) },
		Touched: func(e listing.Entry) (int64, error) {
			file, _, _, _ := splitKey(e.Key)
			info, err := r.root.Lstat(path.Join(dir, file))
			if errors.Is(err, fs.ErrNotExist) {
				return listing.Renamed, nil
			} else if err != nil {
				return 0, err
			}
			return listing.Touched(info), nil
		},
	}, err
}

func (r *Reader) list(ctx context.Context, dir string, each func(listing.Entry)) error {
	f, err := r.root.Open(dir)
	if err != nil {
		return fmt.Errorf("list messages: %w", err)
	}
	defer f.Close()
	for err == nil {
		var entries []os.DirEntry
		entries, err = f.ReadDir(1024)
		for _, entry := range entries {
			if !isMessage(entry) {
				continue
			}
			if info, err := r.root.Lstat(path.Join(dir, entry.Name())); err == nil {
				each(listing.Entry{Key: keyOf(info), Time: info.ModTime().UnixNano()})
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("list messages: %w", err)
	}
	return nil
}

func isMessage(entry os.DirEntry) bool {
	name := entry.Name()
	return entry.Type().IsRegular() && !strings.HasPrefix(name, ".") && strings.EqualFold(path.Ext(name), ".eml")
}

// keyOf returns the key of a file. Size and time come last, so that any file
// name can be split off.
func keyOf(info fs.FileInfo) string {
	return fmt.Sprintf("%s:%d:%d", info.Name(), info.Size(), info.ModTime().UnixNano())
}

func splitKey(key string) (name string, size int64, modified time.Time, err error) {
	rest, nanos := cutLast(key)
	name, bytes := cutLast(rest)
	n, errN := strconv.ParseInt(nanos, 10, 64)
	size, errSize := strconv.ParseInt(bytes, 10, 64)
	if errN != nil || errSize != nil || name == "" || strings.ContainsAny(name, "/\x00") || name[0] == '.' {
		return "", 0, time.Time{}, mailbox.ErrGone
	}
	return name, size, time.Unix(0, n).UTC(), nil
}

func cutLast(s string) (before, after string) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return s, ""
	}
	return s[:i], s[i+1:]
}

// End returns the cursor after all present files.
func (r *Reader) End(ctx context.Context, folder string) (mailbox.Cursor, error) {
	listed, err := r.folder(ctx, folder)
	if err != nil {
		return nil, err
	}
	return listing.End(listed)
}

// Changes lists the folder and compares it with the cursor. A rewritten file is
// both gone and new.
func (r *Reader) Changes(ctx context.Context, folder string, since mailbox.Cursor, limit int, known func(context.Context) ([]mailbox.Location, error)) (mailbox.Changes, error) {
	listed, err := r.folder(ctx, folder)
	if err != nil {
		return mailbox.Changes{}, err
	}
	r.memory[folder] = cmp.Or(r.memory[folder], new(listing.Memory))
	diff, err := r.memory[folder].Changes(ctx, listed, since, limit, listing.Keys(known))
	if err != nil {
		return mailbox.Changes{}, fmt.Errorf("changes of folder %q: %w", folder, err)
	}
	changes := mailbox.Changes{Next: diff.Next, More: diff.More, New: items(folder, diff.New)}
	for _, key := range diff.Gone {
		changes.Gone = append(changes.Gone, mailbox.Location{Folder: folder, Key: key})
	}
	return changes, nil
}

// Older returns files ordered by time.
func (r *Reader) Older(ctx context.Context, folder string, before mailbox.Cursor, limit int) ([]mailbox.Item, mailbox.Cursor, error) {
	listed, err := r.folder(ctx, folder)
	if err != nil {
		return nil, nil, err
	}
	entries, next, err := listing.Older(listed, before, limit)
	return items(folder, entries), next, err
}

func items(folder string, entries []listing.Entry) []mailbox.Item {
	var items []mailbox.Item
	for _, e := range entries {
		_, size, modified, err := splitKey(e.Key)
		if err == nil {
			items = append(items, mailbox.Item{
				Location: mailbox.Location{Folder: folder, Key: e.Key}, Received: modified, Size: size,
			})
		}
	}
	return items
}

// Read reads the files of the items in order.
func (r *Reader) Read(ctx context.Context, items []mailbox.Item, each func(item mailbox.Item, raw []byte, err error) error) error {
	for _, item := range items {
		if err := ctx.Err(); err != nil {
			return err
		}
		raw, err := r.read(item)
		if err != nil && !errors.Is(err, mailbox.ErrGone) && !errors.Is(err, mailbox.ErrTooLarge) {
			return err
		}
		if err := each(item, raw, err); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reader) read(item mailbox.Item) ([]byte, error) {
	name, size, _, err := splitKey(item.Key)
	if err != nil {
		return nil, err
	}
	dir, err := r.dir(item.Folder)
	if err != nil {
		return nil, mailbox.ErrGone
	}
	if size > r.maxSize {
		return nil, mailbox.ErrTooLarge
	}
	// A named pipe in place of the file must not block the reader.
	f, err := r.root.OpenFile(path.Join(dir, name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, mailbox.ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("open message: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || keyOf(info) != item.Key {
		return nil, mailbox.ErrGone
	}
	raw, err := io.ReadAll(io.LimitReader(f, size))
	if err != nil {
		return nil, fmt.Errorf("read message: %w", err)
	}
	return raw, nil
}

// Wait waits for the notifications of the file system.
func (r *Reader) Wait(ctx context.Context, folders []string) error {
	var dirs []string
	for _, folder := range folders {
		dir, err := r.dir(folder)
		if err != nil {
			return err
		}
		dirs = append(dirs, filepath.Join(r.root.Name(), filepath.FromSlash(dir)))
	}
	return r.watcher.Wait(ctx, dirs)
}
