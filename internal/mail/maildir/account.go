// Package maildir reads and changes Maildirs: a folder with new, cur and tmp,
// and subfolders, either as ".Name.Sub" (Maildir++) or as "Name/Sub". A message
// is a file: its base name is its key, and its flags are the letters after
// ":2,". Keywords are the lower-case letters that the file dovecot-keywords
// maps to names, which is the only convention for them; the package writes no
// other file of its own. It follows no symbolic link out of the account's
// folder.
package maildir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/countersign-dev/countersign/internal/mail/listing"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

const (
	inbox          = "INBOX"
	defaultMaxSize = 32 << 20
	maxDepth       = 10 // of nested folders
)

// account is the root folder of a Maildir.
type account struct {
	root    *os.Root
	maxSize int64
}

func open(dir string, maxSize int64) (account, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return account{}, fmt.Errorf("open Maildir: %w", err)
	}
	if maxSize <= 0 {
		maxSize = defaultMaxSize
	}
	return account{root, maxSize}, nil
}

// folders returns the folders with their paths.
func (a account) folders() (map[string]string, []mailbox.Folder, error) {
	paths := map[string]string{}
	var folders []mailbox.Folder
	add := func(name, dir, separator string) {
		if _, twice := paths[name]; !twice && a.isMaildir(dir) {
			paths[name] = dir
			folders = append(folders, mailbox.Folder{Name: name, Use: mailbox.UseOf(name, separator)})
		}
	}
	add(inbox, ".", "")
	entries, err := a.readDir(".")
	if err != nil {
		return nil, nil, err
	}
	for _, entry := range entries {
		if name, ok := strings.CutPrefix(entry.Name(), "."); ok && name != "" {
			add(name, entry.Name(), ".")
		}
	}
	return paths, folders, a.walk(".", 0, func(dir string) { add(dir, dir, "/") })
}

// walk visits the subfolders that are not part of a Maildir.
func (a account) walk(dir string, depth int, visit func(dir string)) error {
	if depth == maxDepth {
		return nil
	}
	entries, err := a.readDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		if !entry.IsDir() || strings.HasPrefix(name, ".") || name == "cur" || name == "new" || name == "tmp" {
			continue
		}
		below := path.Join(dir, name)
		visit(below)
		if err := a.walk(below, depth+1, visit); err != nil {
			return err
		}
	}
	return nil
}

func (a account) readDir(dir string) ([]os.DirEntry, error) {
	f, err := a.root.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("list folders: %w", err)
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil, fmt.Errorf("list folders: %w", err)
	}
	return entries, nil
}

func (a account) isMaildir(dir string) bool {
	return !slices.ContainsFunc([]string{"cur", "new"}, func(part string) bool {
		info, err := a.root.Stat(path.Join(dir, part))
		return err != nil || !info.IsDir()
	})
}

// dir returns the path of a folder.
func (a account) dir(folder string) (string, error) {
	var candidates []string
	switch {
	case folder == inbox:
		candidates = []string{"."}
	case folder == "", strings.Contains("/"+folder, "/."): // hidden, or outside the account
	case strings.Contains(folder, "/"):
		candidates = []string{folder}
	default:
		candidates = []string{"." + folder, folder}
	}
	for _, dir := range candidates {
		if fs.ValidPath(dir) && a.isMaildir(dir) {
			return dir, nil
		}
	}
	return "", fmt.Errorf("folder %q: %w", folder, mailbox.ErrNoFolder)
}

// list calls each with every message of a folder. Flags of an entry are the
// subfolder and the rest of the name after the base name, which together lead
// to the file. Files that are not regular are listed too, and fail to read: a
// stat of each name would take longer than everything else.
func (a account) list(dir string, each func(listing.Entry)) error {
	// List new first: a message that moves from new to cur in the meantime is
	// then seen twice rather than not at all.
	for _, part := range []string{"new", "cur"} {
		f, err := a.root.Open(path.Join(dir, part))
		if err != nil {
			return fmt.Errorf("list messages: %w", err)
		}
		for err == nil {
			var names []string
			names, err = f.Readdirnames(1024)
			for _, name := range names {
				if !strings.HasPrefix(name, ".") {
					each(entryOf(part, name))
				}
			}
		}
		f.Close()
		if !errors.Is(err, io.EOF) {
			return fmt.Errorf("list messages: %w", err)
		}
	}
	return nil
}

func entryOf(part, name string) listing.Entry {
	base, suffix := name, ""
	if i := strings.IndexByte(name, ':'); i >= 0 {
		base, suffix = name[:i], name[i:]
	}
	var seconds int64
	for i := 0; i < len(base) && i < 18 && '0' <= base[i] && base[i] <= '9'; i++ {
		seconds = seconds*10 + int64(base[i]-'0')
	}
	return listing.Entry{Key: base, Flags: part + suffix, Time: seconds}
}

// fileOf returns the path of an entry.
func fileOf(dir string, e listing.Entry) string {
	return path.Join(dir, e.Flags[:3], e.Key+e.Flags[3:])
}

// lettersOf returns the letters of an entry's flags.
func lettersOf(e listing.Entry) string {
	letters, _ := strings.CutPrefix(e.Flags[3:], ":2,")
	return letters
}

// find returns the entry of a base name. It tries a likely entry first.
func (a account) find(dir string, likely listing.Entry) (listing.Entry, error) {
	if validKey(likely.Key) && likely.Flags != "" && a.isRegular(fileOf(dir, likely)) {
		return likely, nil
	}
	var found *listing.Entry
	err := a.list(dir, func(e listing.Entry) {
		if e.Key == likely.Key {
			found = &e
		}
	})
	switch {
	case err != nil:
		return listing.Entry{}, err
	case found == nil || !a.isRegular(fileOf(dir, *found)):
		return listing.Entry{}, mailbox.ErrGone
	}
	return *found, nil
}

func (a account) isRegular(file string) bool {
	info, err := a.root.Lstat(file)
	return err == nil && info.Mode().IsRegular()
}

// validKey reports whether a key is a valid base name.
func validKey(key string) bool {
	return key != "" && key[0] != '.' && !strings.ContainsAny(key, "/:\x00")
}

// read returns the content of a message.
func (a account) read(file string) ([]byte, error) {
	f, err := a.open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, a.maxSize+1))
	if err != nil {
		return nil, fmt.Errorf("read message: %w", err)
	}
	if int64(len(raw)) > a.maxSize {
		return nil, mailbox.ErrTooLarge
	}
	return raw, nil
}

// open opens the regular file of a message. A named pipe must not block the
// reader.
func (a account) open(file string) (*os.File, error) {
	f, err := a.root.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, mailbox.ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("open message: %w", err)
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, mailbox.ErrGone
	}
	return f, nil
}

// header returns the beginning of a message with its header.
func (a account) header(file string) ([]byte, error) {
	f, err := a.open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 64<<10))
}
